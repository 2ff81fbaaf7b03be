// The tokenizer that a model brings along. What it makes of texts: runtime/text/tokenizer.h.
//
//   WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, TokenizerOf(file));
//   WISP_ASSIGN_OR_RETURN(const bool was_cut, tokenizer.EncodeWithin(text, file.architecture().max_length, {}, ids));
#ifndef WISP_RUNTIME_INFERENCE_TEXTS_H_
#define WISP_RUNTIME_INFERENCE_TEXTS_H_

#include "runtime/core/status.h"
#include "runtime/model/model_file.h"
#include "runtime/text/tokenizer.h"

namespace wisp {

// Valid as long as the file. kInvalidArgument: the model brings none. kInvalidData: a damaged one, or one with more
// tokens than the model has items. kUnsupported: one of a newer version.
Result<text::Tokenizer> TokenizerOf(const ModelFile& file);

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_TEXTS_H_
