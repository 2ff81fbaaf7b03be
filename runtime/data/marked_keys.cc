#include "runtime/data/marked_keys.h"

#include "runtime/core/text.h"

namespace wisp::data {

bool HasMark(std::string_view key) {
  for (size_t at = 0; at + 1 < key.size(); ++at) {
    const auto lead = static_cast<uint8_t>(key[at]), next = static_cast<uint8_t>(key[at + 1]);
    if ((lead == 0xcc && next >= 0x80) || (lead == 0xcd && next >= 0x80 && next < 0xb0)) return true;
  }
  return false;
}

std::string MarkedKeys::Warning() const {
  return Counted(count, "key") + " with accents as characters of their own, the first '" + OneLine(first) +
         "': the same letters written as one character are another key; write all in one form of Unicode (NFC)";
}

std::string SuggestMarkedKey(std::string_view key) {
  return HasMark(key) ? "; it has an accent as a character of its own, and the same letters written as one character "
                        "are another key (NFC)"
                      : "";
}

}  // namespace wisp::data
