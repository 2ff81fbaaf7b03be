// Internals of wisp_text_model and of the generation structs, for the functions that sample privately.
#ifndef WISP_PORTS_C_TEXT_C_H_
#define WISP_PORTS_C_TEXT_C_H_

#include <string>

#include "ports/c/wisp_text.h"
#include "runtime/text/generate.h"

namespace wisp::ports {

// kInvalidArgument if the model is no decoder; `called` names the function in the message.
Result<Session*> GetDecoder(wisp_text_model& model, const char* called);
const text::Tokenizer& FindTokenizer(const wisp_text_model& model);
Result<GenerateOptions> MakeGenerateOptions(const wisp_generate_options* given);
// Fills a caller's struct, which may be NULL, from `made`, whose text is moved to `text`.
Status FillGenerated(Generated&& made, std::string& text, wisp_generated* out);
// Null for a NULL callback.
OnText ShowTo(wisp_on_text on_text, void* user_data);

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_TEXT_C_H_
