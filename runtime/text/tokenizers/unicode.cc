// Built for speed: every text that is encoded is read here first.
#include "runtime/text/tokenizers/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>

#include "runtime/core/text.h"

namespace wisp::text {
namespace {

// The offset of the first byte that is not UTF-8, or text.size().
size_t FirstFault(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight;
    if (text.size() - at >= sizeof eight) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & kHighBits) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const size_t length = static_cast<uint8_t>(text[at]) < 0x80 ? 1 : Utf8Length(text.substr(at, 4));
    if (length == 0) return at;
    at += length;
  }
  return at;
}

}  // namespace

bool IsUtf8(std::string_view text) { return FirstFault(text) == text.size(); }

Status CheckUtf8(std::string_view name, std::string_view text) {
  const size_t fault = FirstFault(text);
  if (fault == text.size()) return OkStatus();
  return InvalidData(name, ": byte ", fault, " of the text (value ",
                     static_cast<int>(static_cast<uint8_t>(text[fault])),
                     ") is not UTF-8, which is the only encoding allowed");
}

void AppendLower(uint32_t code, std::string& text) {
  if (!Has(code, unicode::kLowers)) return Append(code, text);
  if (code < 0x80) return Append(code + 0x20, text);
  if (code == 0x130) {
    text += 'i';
    return Append(0x307, text);
  }
  const auto* end = std::end(unicode::kLowerExceptions);
  const auto* found = std::lower_bound(std::begin(unicode::kLowerExceptions), end, code,
                                       [](const auto& entry, uint32_t upper) { return entry.upper < upper; });
  if (found != end && found->upper == code) return Append(found->lower, text);
  Append(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), text);
}

}  // namespace wisp::text
