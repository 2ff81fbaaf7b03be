// A cache of the ids of recent words. It has a fixed size and belongs to one thread. It never answers wrongly, because
// words are compared byte for byte.
//
//   if (!cache.Find(word, ids)) { ...; cache.Put(word, its_ids); }
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_WORD_CACHE_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_WORD_CACHE_H_

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace wisp::text {

class WordCache {
 public:
  static constexpr size_t kMaxBytes = 24, kMaxIds = 9;
  static constexpr size_t kEntries = 4096;  // of 64 bytes each: 256 KiB, allocated with the first word

  // Appends the ids of the word and returns true if the cache has it.
  bool Find(std::string_view word, std::vector<int32_t>& ids) const {
    if (entries_.empty() || word.size() > kMaxBytes) return false;
    const Key key(word);
    const Entry& entry = entries_[key.Slot()];
    if (entry.bytes != word.size() || std::memcmp(entry.key, key.words, sizeof entry.key) != 0) return false;
    ids.insert(ids.end(), entry.ids, entry.ids + entry.count);
    return true;
  }

  void Put(std::string_view word, std::span<const int32_t> ids) {
    if (word.size() > kMaxBytes || word.empty() || ids.size() > kMaxIds) return;
    if (entries_.empty()) entries_.resize(kEntries);
    const Key key(word);
    Entry& entry = entries_[key.Slot()];
    std::memcpy(entry.key, key.words, sizeof entry.key);
    entry.bytes = static_cast<uint8_t>(word.size());
    entry.count = static_cast<uint8_t>(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) entry.ids[i] = ids[i];
  }

  void Clear() { entries_.clear(); }

 private:
  struct Key {
    explicit Key(std::string_view word) { std::memcpy(words, word.data(), word.size()); }
    size_t Slot() const {
      // Multiplicative hashing; the constants are those of SplitMix64.
      uint64_t h = words[0] * 0x9e3779b97f4a7c15u;
      h = (h ^ h >> 32 ^ words[1]) * 0xbf58476d1ce4e5b9u;
      h = (h ^ h >> 32 ^ words[2]) * 0x94d049bb133111ebu;
      return (h >> 40) % kEntries;
    }
    uint64_t words[3] = {};
  };
  struct Entry {
    uint64_t key[3];
    uint8_t bytes = 0, count = 0;  // bytes 0: the entry is empty
    int32_t ids[kMaxIds];
  };

  std::vector<Entry> entries_;
};

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_WORD_CACHE_H_
