// Bytes and numbers as lower-case hexadecimal digits.
//
//   ToHex(std::string("\x0a\xff"))   // "0aff"
//   ToHex(uint64_t{255})             // "00000000000000ff"
//   ToHex(uint64_t{255}, 4)          // "00ff"
#ifndef WISP_RUNTIME_CORE_HEX_H_
#define WISP_RUNTIME_CORE_HEX_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace wisp {

// The last `digits` hexadecimal digits of a number, with leading zeros.
[[gnu::cold]] inline std::string ToHex(uint64_t number, size_t digits = 16) {
  std::string text(digits, '0');
  for (size_t at = digits; at-- > 0; number >>= 4) text[at] = "0123456789abcdef"[number & 15];
  return text;
}

// Two digits for each byte.
template <class Bytes>
requires requires(const Bytes& bytes) { bytes.begin(); }
[[gnu::cold]] std::string ToHex(const Bytes& bytes) {
  static_assert(sizeof(*bytes.begin()) == 1);
  std::string text;
  for (const auto byte : bytes) text += ToHex(static_cast<unsigned char>(byte), 2);
  return text;
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_HEX_H_
