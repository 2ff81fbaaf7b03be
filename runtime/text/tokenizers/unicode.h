// Characters: strict UTF-8, the reference's properties of each code point, and lower case. For normal forms see
// normal_form.h.
//
//   WISP_RETURN_IF_ERROR(CheckUtf8("review.txt", text));
//   for (size_t at = 0; at < text.size();) {
//     const Character c = CharacterAt(text, at);
//     if (Has(c.code, unicode::kLetter)) ...
//     at += c.size;
//   }
//
// The flags of a code point come from the reference itself (tools/tokenizers/unicode_tables.py), not from one version
// of Unicode, because parts of the reference use different versions.
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_UNICODE_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_UNICODE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace wisp::text {

namespace unicode {
#include "runtime/text/tokenizers/generated/unicode_flags.inc"
}  // namespace unicode

constexpr uint32_t kNoCharacter = 0xfffd;

struct Character {
  uint32_t code;
  uint32_t size;  // in bytes, at least 1
};

// kInvalidData with the offset of the first byte that is not UTF-8 (RFC 3629: no surrogates, shortest form).
Status CheckUtf8(std::string_view name, std::string_view text);
bool IsUtf8(std::string_view text);

// The character at a byte below text.size(). In text that is not UTF-8 each bad byte gives U+FFFD. Never reads past the
// end.
inline Character CharacterAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t left = text.size() - at;
  if (lead >= 0xc2 && lead < 0xe0 && left >= 2) return {(lead & 0x1f) << 6 | (byte(1) & 0x3fu), 2};
  if (lead >= 0xe0 && lead < 0xf0 && left >= 3)
    return {(lead & 0xf) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu), 3};
  if (lead >= 0xf0 && lead < 0xf5 && left >= 4) {
    const uint32_t code = (lead & 7) << 18 | (byte(1) & 0x3fu) << 12 | (byte(2) & 0x3fu) << 6 | (byte(3) & 0x3fu);
    return {code < 0x110000 ? code : kNoCharacter, 4};
  }
  return {kNoCharacter, 1};
}

// Start of the character before `at`; `at` must be above 0.
inline size_t Before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<uint8_t>(text[begin]) & 0xc0) == 0x80) --begin;
  return begin;
}

inline void Append(uint32_t code, std::string& text) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xe0 | code >> 12);
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3f));
    }
    add(0x80 | (code >> 6 & 0x3f));
  }
  add(0x80 | (code & 0x3f));
}

// `code` must be below 0x110000.
inline uint16_t GetFlags(uint32_t code) {
  return unicode::kFlagSets[unicode::kBlocks[unicode::kBlockIndex[code >> 7]][code & 127]];
}
inline bool Has(uint32_t code, unsigned flags) { return (GetFlags(code) & flags) != 0; }

// Appends the lower case: one code point, or two for U+0130.
void AppendLower(uint32_t code, std::string& text);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_UNICODE_H_
