// Unicode's normal forms as the reference has them: NFC, NFD, NFKC, NFKD. utf8proc says what a character decomposes to;
// the flags of unicode.h say which characters the reference knows to decompose.
//
//   AppendNormalForm(Form::kNfc, "e\u0301", out);   // out += "é"
#ifndef WISP_RUNTIME_TEXT_NORMAL_FORM_H_
#define WISP_RUNTIME_TEXT_NORMAL_FORM_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wisp::text {

enum class Form : uint32_t { kNfc = 0, kNfd = 1, kNfkc = 2, kNfkd = 3 };
inline bool Composes(Form form) { return form == Form::kNfc || form == Form::kNfkc; }
inline bool Compatible(Form form) { return form == Form::kNfkc || form == Form::kNfkd; }

// `text` is UTF-8 and does not lie in `out`.
void AppendNormalForm(Form form, std::string_view text, std::string& out);

// For callers that have code points: appends the full decomposition of one.
void AppendDecomposed(uint32_t code, bool compatible, std::vector<uint32_t>& codes);
// Sorts what follows a base by its combining class, as the canonical order asks.
void OrderMarks(std::vector<uint32_t>& codes);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_NORMAL_FORM_H_
