// Unicode's normal forms NFC, NFD, NFKC and NFKD, as in the reference. utf8proc gives each character's decomposition.
// The flags of unicode.h tell which characters the reference decomposes.
//
//   AppendNormalForm(Form::kNfc, "e\u0301", out);   // out += "é"
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_NORMAL_FORM_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_NORMAL_FORM_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wisp::text {

enum class Form : uint32_t { kNfc = 0, kNfd = 1, kNfkc = 2, kNfkd = 3 };
inline bool Composes(Form form) { return form == Form::kNfc || form == Form::kNfkc; }
inline bool Compatible(Form form) { return form == Form::kNfkc || form == Form::kNfkd; }

// `text` is UTF-8 and must not point into `out`.
void AppendNormalForm(Form form, std::string_view text, std::string& out);

// Appends the full decomposition of one code point.
void AppendDecomposed(uint32_t code, bool compatible, std::vector<uint32_t>& codes);
// Puts the marks after each base into canonical order, by combining class.
void OrderMarks(std::vector<uint32_t>& codes);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_NORMAL_FORM_H_
