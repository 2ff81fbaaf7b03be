// Finds keys that have an accent as a separate character behind the letter (Unicode's NFD, as some systems write file
// names). They look like keys with one combined character (NFC), but differ from them: logs, catalogues and lists
// compare keys byte by byte. Code that takes keys from people uses this to warn.
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

// A continuation of a sentence about an unknown key: says why it may be another key, or is empty.
std::string SuggestMarkedKey(std::string_view key);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_MARKED_KEYS_H_
