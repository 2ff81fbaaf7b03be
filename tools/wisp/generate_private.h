// wisp generate --private: tokens drawn and paid for.
#ifndef WISP_TOOLS_WISP_GENERATE_PRIVATE_H_
#define WISP_TOOLS_WISP_GENERATE_PRIVATE_H_

#include "runtime/inference/generate.h"
#include "runtime/inference/session.h"
#include "runtime/text/tokenizer.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {

// One text a line; a carriage return at its end is no part of it. No line is refused: of private texts that would tell
// of them.
Result<std::vector<std::string>> ReadLines(const std::string& path);

// Blanks and tabs alone, or nothing.
bool IsBlank(const std::string& line);

// What ended a text, by the names of this program's options; JSON has those of NameOf.
const char* EndedInWords(Ended ended);

// Prints the text as it grows, and then what it cost. What is refused charges nothing.
Status GeneratePrivately(const GenerateArguments& arguments, Session& session, const text::Tokenizer& tokenizer,
                         OutputFormat format);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_GENERATE_PRIVATE_H_
