// The tokenizer that a model brings along. What it makes of texts: runtime/text/tokenizer.h.
//
//   WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, TokenizerOf(file));
//   WISP_ASSIGN_OR_RETURN(const bool was_cut, tokenizer.EncodeWithin(text, file.architecture().max_length, {}, ids));
#ifndef WISP_RUNTIME_INFERENCE_TEXTS_H_
#define WISP_RUNTIME_INFERENCE_TEXTS_H_

#include <span>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/model_file.h"
#include "runtime/text/tokenizer.h"

namespace wisp {

// Valid as long as the file. kInvalidArgument: the model brings none. kInvalidData: a damaged one, or one with more
// tokens than the model has items. kUnsupported: one of a newer version.
Result<text::Tokenizer> TokenizerOf(const ModelFile& file);

// Appends what the tokenizer makes of a whole text, 1 to `most` tokens with those that it puts around it; the end of a
// longer text is left out. Whether anything was. kInvalidData: not one token, and errors of Tokenizer::Encode.
Result<bool> AppendText(const text::Tokenizer& tokenizer, std::string_view text, size_t most, text::Scratch* scratch,
                        std::vector<int32_t>& ids);

// Whether texts of at most so many tokens have room for one of their own beside those that stand around every text, and
// are no longer than the model reads, `most`. kInvalidArgument names `what`.
Status CheckTextRoom(const text::Tokenizer& tokenizer, const char* what, uint32_t max_length, uint32_t most);

// How a text becomes a record of a decoder. Ends are marked where texts are whole: of a piece of one they are not.
enum class TextEnd { kMarked, kOpen };

// Appends what the tokenizer makes of a text, as a prompt is made tokens, and behind it the token for an end, where
// there is one, the text did not bring it and it is marked. At most `most` tokens, 2 or more: the end of a longer text
// is left out, and its mark with it. Whether anything was left out. Errors of Tokenizer::Encode.
Result<bool> AppendRecord(const text::Tokenizer& tokenizer, std::string_view text, TextEnd end, size_t most,
                          text::Scratch* scratch, std::vector<int32_t>& ids);

// Of such a record the bytes of text behind its first token, those that a decoder is asked for. A token for an end has
// none. Where the record was cut within a character up to three too many.
Result<size_t> BytesAskedFor(const text::Tokenizer& tokenizer, std::span<const int32_t> record);

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_TEXTS_H_
