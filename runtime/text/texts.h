// The tokenizer that a model file contains, and texts encoded with it. For the encoding itself see
// runtime/text/tokenizers/tokenizer.h.
//
//   WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, FindTokenizer(file));
//   WISP_ASSIGN_OR_RETURN(const bool was_cut, tokenizer.EncodeWithin(text, file.architecture().max_length, {}, ids));
#ifndef WISP_RUNTIME_TEXT_TEXTS_H_
#define WISP_RUNTIME_TEXT_TEXTS_H_

#include <span>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/model_file.h"
#include "runtime/text/tokenizers/tokenizer.h"

namespace wisp {

// Valid as long as the file. kInvalidArgument: the model has no tokenizer. kInvalidData: it is damaged, or has more
// tokens than the model has items. kUnsupported: a newer version wrote it.
Result<text::Tokenizer> FindTokenizer(const ModelFile& file);

// Appends the tokens of a whole text, template included: 1 to `most` tokens. A longer text is cut at its end. Returns
// true if it was cut. kInvalidData: the text gives no token. Other errors are those of Tokenizer::Encode.
Result<bool> AppendText(const text::Tokenizer& tokenizer, std::string_view text, size_t most, text::Scratch* scratch,
                        std::vector<int32_t>& ids);

// Checks a limit of tokens for texts: it must leave space for one token beside the template's, and be no more than
// `most`, which the model reads. kInvalidArgument names `what`.
Status CheckTextRoom(const text::Tokenizer& tokenizer, const char* what, uint32_t max_length, uint32_t most);

// How a text becomes a decoder's record. kMarked appends the end token, for whole texts; kOpen does not, for pieces of
// one.
enum class TextEnd { kMarked, kOpen };

// Appends the tokens of a text. kOpen leaves out the template's tokens after the text, as for a prompt. kMarked keeps
// them, and appends the end token if there is one and the tokens do not already end with one. At most `most` tokens, 2
// or more: a longer text is cut at its end and loses its end token. Returns true if it was cut. Errors are those of
// Tokenizer::Encode.
Result<bool> AppendRecord(const text::Tokenizer& tokenizer, std::string_view text, TextEnd end, size_t most,
                          text::Scratch* scratch, std::vector<int32_t>& ids);

// The bytes of a record's text after its first token: those that a decoder predicts. An end token has no bytes. If the
// record was cut within a character, the result may be up to three too high.
Result<size_t> BytesAskedFor(const text::Tokenizer& tokenizer, std::span<const int32_t> record);

}  // namespace wisp

#endif  // WISP_RUNTIME_TEXT_TEXTS_H_
