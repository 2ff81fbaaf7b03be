// Implements `wisp generate --private`: tokens that are sampled and paid for.
#ifndef WISP_TOOLS_WISP_GENERATE_PRIVATE_H_
#define WISP_TOOLS_WISP_GENERATE_PRIVATE_H_

#include "runtime/text/generate.h"
#include "runtime/inference/session.h"
#include "runtime/text/tokenizers/tokenizer.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {

// Reads one text from each line, without a carriage return at its end. No line is refused, because a refusal would
// reveal something about private texts.
Result<std::vector<std::string>> ReadLines(const std::string& path);

// Returns true if the line is empty or has only blanks and tabs.
bool IsBlank(const std::string& line);

// Names the reason why a text ended, in the words of this program's options; JSON uses those of GetName.
const char* EndedInWords(Ended ended);

// Prints the text as it grows, and then its cost. A refused request charges nothing.
Status GeneratePrivately(const GenerateArguments& arguments, Session& session, const text::Tokenizer& tokenizer,
                         OutputFormat format);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_GENERATE_PRIVATE_H_
