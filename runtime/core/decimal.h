// Converts floating-point numbers to decimal text and back, with the same bytes on every platform: ledgers, checkpoints
// and statements store them. Uses std::to_chars and std::from_chars where the C++ library has them for floating point
// (libstdc++ 11, libc++ 20). Elsewhere (Apple, Android, WebAssembly) this file implements them.
//
//   char text[kDecimalBytes];
//   std::string_view shown(text, WriteDecimal(text, 0.1) - text);   // "0.1": the shortest that reads back
//   double number;
//   const auto [end, error] = ReadDecimal(begin, stop, number);     // as std::from_chars
#ifndef WISP_RUNTIME_CORE_DECIMAL_H_
#define WISP_RUNTIME_CORE_DECIMAL_H_

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "runtime/core/c_locale.h"

namespace wisp {

inline constexpr size_t kDecimalBytes = 32;  // the longest is -2.2250738585072014e-308

// Replacements for std::to_chars and std::from_chars, built on C's functions.
namespace decimal_by_hand {

[[gnu::cold]] inline double Parse(const char* text) {
  const InCLocale here;
  return std::strtod(text, nullptr);
}

// Prints by `format`, as printf does: "%.*e", "%.*f" or "%.*g". Returns the whole length; `text` holds what fits.
template <size_t kBytes>
[[gnu::cold]] int Print(char (&text)[kBytes], const char* format, int digits, double value) {
  const InCLocale here;
  return std::snprintf(text, kBytes, format, digits, value);
}

// Raises the last digit of d.ddde+xx by one, with carry. False if all digits are 9.
[[gnu::cold]] inline bool OneHigher(char* scientific) {
  for (char* at = std::strchr(scientific, 'e') - 1; at >= scientific; --at) {
    if (*at == '.' || *at == '-') continue;
    if (*at != '9') return ++*at, true;
    *at = '0';
  }
  return false;
}

// True if `value` has a decimal with this many digits after the point that reads back exactly; `scientific` then holds
// it. printf writes the nearest decimal. Just below a power of two doubles lie closer than above it, so the next
// decimal up may read back where the nearest does not.
[[gnu::cold]] inline bool ReadsBack(char (&scientific)[kDecimalBytes], int digits, double value) {
  Print(scientific, "%.*e", digits, value);
  if (Parse(scientific) == value) return true;
  return OneHigher(scientific) && Parse(scientific) == value;
}

// Writes the fewest digits that read back exactly.
[[gnu::cold]] inline char* Write(char* text, double value) {
  if (std::isnan(value) || std::isinf(value)) {
    const char* name = std::isnan(value) ? "nan" : "inf";
    if (std::signbit(value)) *text++ = '-';
    return std::copy_n(name, 3, text);
  }
  char scientific[kDecimalBytes];
  int digits = 0;
  while (!ReadsBack(scientific, digits++, value)) {}  // 17 digits always read back
  const int exponent = std::atoi(std::strchr(scientific, 'e') + 1);
  // Write without an exponent where that is no longer. A whole number then shows all its digits instead of rounded
  // zeros.
  char fixed[400];
  const int length = Print(fixed, "%.*f", std::max(0, digits - 1 - exponent), value);
  const char* shorter = length <= static_cast<int>(std::strlen(scientific)) ? fixed : scientific;
  return std::copy_n(shorter, std::strlen(shorter), text);
}

[[gnu::cold]] inline std::from_chars_result Read(const char* begin, const char* end, double& value) {
  const char* at = begin;
  const auto skip = [&](const char* which) {
    const char* const from = at;
    while (at != end && *at != '\0' && std::strchr(which, *at) != nullptr) ++at;
    return at - from;
  };
  const auto word = [&](const char* name) {
    const size_t length = std::strlen(name);
    const bool is = static_cast<size_t>(end - at) >= length &&
                    std::equal(name, name + length, at, [](char a, char b) { return a == (b | 0x20); });
    if (is) at += length;
    return is;
  };
  constexpr char kDigits[] = "0123456789";
  if (at != end && *at == '-') ++at;
  if (word("infinity") || word("inf") || word("nan")) {
    value = Parse(std::string(begin, at).c_str());
    return {at, std::errc()};
  }
  const char* const first = at;
  auto digits = skip(kDigits);
  if (at != end && *at == '.') {
    ++at;
    digits += skip(kDigits);
  }
  if (digits == 0) return {begin, std::errc::invalid_argument};
  const bool zero = std::all_of(first, at, [](char c) { return c == '0' || c == '.'; });
  const char* const mantissa_end = at;
  if (at != end && (*at | 0x20) == 'e') {
    ++at;
    if (at != end && (*at == '-' || *at == '+')) ++at;
    if (skip(kDigits) == 0) at = mantissa_end;
  }
  const double read = Parse(std::string(begin, at).c_str());
  if (std::isinf(read) || (read == 0 && !zero)) return {at, std::errc::result_out_of_range};
  value = read;
  return {at, std::errc()};
}

}  // namespace decimal_by_hand

// Writes the shortest text that reads back as `value`, without a trailing zero. Returns the end. `text` has
// kDecimalBytes.
inline char* WriteDecimal(char* text, double value) {
#if defined(__cpp_lib_to_chars)
  return std::to_chars(text, text + kDecimalBytes, value).ptr;
#else
  return decimal_by_hand::Write(text, value);
#endif
}

// Writes at most `digits` significant digits, as printf's %g; digits <= 17. Returns the end. `text` has kDecimalBytes.
inline char* WriteDecimal(char* text, double value, int digits) {
#if defined(__cpp_lib_to_chars)
  return std::to_chars(text, text + kDecimalBytes, value, std::chars_format::general, digits).ptr;
#else
  char all[kDecimalBytes];
  return std::copy_n(all, decimal_by_hand::Print(all, "%.*g", digits, value), text);
#endif
}

// Writes `digits` digits after the point and an exponent, as printf's %e: 1.50e-07. Otherwise as WriteDecimal.
inline char* WriteScientific(char* text, double value, int digits) {
#if defined(__cpp_lib_to_chars)
  return std::to_chars(text, text + kDecimalBytes, value, std::chars_format::scientific, digits).ptr;
#else
  char all[kDecimalBytes];
  return std::copy_n(all, decimal_by_hand::Print(all, "%.*e", digits, value), text);
#endif
}

// Behaves as std::from_chars, for whole numbers too.
template <class Number>
std::from_chars_result ReadDecimal(const char* begin, const char* end, Number& value) {
#if !defined(__cpp_lib_to_chars)
  if constexpr (std::floating_point<Number>) {
    static_assert(std::same_as<Number, double>, "a float would be rounded twice");
    return decimal_by_hand::Read(begin, end, value);
  } else
#endif
    return std::from_chars(begin, end, value);
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_DECIMAL_H_
