// Makes text safe for a terminal or a log file. Messages quote keys, names and paths from untrusted sources. Code that
// reads files, and the two exits of every message (the C interface and the program), pass them through here.
//
//   Printable("log\x1b[2J.db")    // "log?[2J.db"
#ifndef WISP_RUNTIME_CORE_TEXT_H_
#define WISP_RUNTIME_CORE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace wisp {

// Changes only ASCII letters, whatever the program's locale.
constexpr char AsciiLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }
constexpr bool IsAsciiLetter(char c) { return AsciiLower(c) >= 'a' && AsciiLower(c) <= 'z'; }
constexpr bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }

// Length of the UTF-8 character at the front; 0 if it is not well-formed (RFC 3629: no surrogates, shortest form).
[[gnu::cold]] inline size_t Utf8Length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : uint8_t{0}; };
  const auto tail = [&](size_t n) {
    for (size_t i = 1; i <= n; ++i) {
      if ((byte(i) & 0xc0) != 0x80) return false;
    }
    return true;
  };
  const uint8_t lead = byte(0), second = byte(1);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0 && tail(1)) return 2;
  if (lead >= 0xe0 && lead < 0xf0 && tail(2)) {
    return (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ? 0 : 3;
  }
  if (lead >= 0xf0 && lead < 0xf5 && tail(3)) {
    return (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90) ? 0 : 4;
  }
  return 0;
}

// True if the character of `length` bytes at the front is in U+0080 .. U+009F. Terminals treat these as escape
// sequences.
[[gnu::cold]] inline bool IsC1Control(std::string_view s, size_t length) {
  return length == 2 && static_cast<uint8_t>(s[0]) == 0xc2 && static_cast<uint8_t>(s[1]) < 0xa0;
}

// True if a terminal or viewer acts on the character of `length` bytes at the front instead of showing it. These are C0
// without the newline, DEL and C1; the marks that change the direction of text (U+061C, U+200E, U+200F, U+202A to
// U+202E, U+2066 to U+2069); and the line ends U+2028 and U+2029. Text and JSON both use this list.
[[gnu::cold]] inline bool IsControl(std::string_view s, size_t length) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  if (length == 1) return (byte(0) < 0x20 && byte(0) != '\n') || byte(0) == 0x7f;
  if (length == 2) return IsC1Control(s, length) || s.starts_with("\xd8\x9c");
  if (length != 3 || byte(0) != 0xe2) return false;
  const uint8_t last = byte(2);
  return (byte(1) == 0x80 && (last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae))) ||
         (byte(1) == 0x81 && last >= 0xa6 && last <= 0xa9);
}

// Quotes the text as one word for a shell: 'the cafe'\''s log'.
[[gnu::cold]] inline std::string InShell(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// The text with a '?' for each control character and for each byte that is not UTF-8.
[[gnu::cold]] inline std::string Printable(std::string text) {
  size_t to = 0;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const size_t length = Utf8Length(rest);
    if (length == 0 || IsControl(rest, length)) {
      text[to++] = '?';
      at += length == 0 ? 1 : length;
    } else {
      for (size_t i = 0; i < length; ++i) text[to++] = text[at++];
    }
  }
  text.resize(to);
  return text;
}

// A value on one line of a text: Printable, and with a '?' for each line end.
[[gnu::cold]] inline std::string OneLine(std::string value) {
  value = Printable(std::move(value));
  for (char& c : value) {
    if (c == '\n') c = '?';
  }
  return value;
}

// "1 token", "2 tokens", for words whose plural adds an s.
[[gnu::cold]] inline std::string Counted(uint64_t number, std::string_view what) {
  std::string text = std::to_string(number) + " ";
  text.append(what);
  return number == 1 ? text : text + "s";
}

// Counted with the verb: "1 token was", "2 tokens were".
[[gnu::cold]] inline std::string CountedWere(uint64_t number, std::string_view what) {
  return Counted(number, what) + (number == 1 ? " was" : " were");
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_TEXT_H_
