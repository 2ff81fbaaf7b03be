// Keys with an accent as a character of its own behind the letter (Unicode's NFD, as some systems write files' names).
// To look at they are the keys with the same letters in one character (NFC), and yet they are other keys: keys are
// compared byte by byte, in logs, catalogues and lists. Who takes keys from people says so with this.
//
//   MarkedKeys marked;
//   for (const Event& e : events) marked.Look(e.user), marked.Look(e.item);
//   if (marked.count > 0) Show(marked.Warning());
#ifndef WISP_RUNTIME_DATA_MARKED_KEYS_H_
#define WISP_RUNTIME_DATA_MARKED_KEYS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace wisp::data {

// True if the key holds one of U+0300 to U+036F.
bool HasMark(std::string_view key);

struct MarkedKeys {
  uint64_t count = 0;
  std::string first;

  void Look(std::string_view key) {
    if (HasMark(key) && count++ == 0) first = key;
  }
  std::string Warning() const;
};

// To follow a sentence about a key that nobody has: empty, or why it may be another one.
std::string WhyNotThatKey(std::string_view key);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_MARKED_KEYS_H_
