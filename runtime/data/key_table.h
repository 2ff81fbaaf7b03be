// Numbers strings in the order of their arrival. Open addressing over 32 bits of hash, so that a look-up compares one
// string and allocates nothing. Not for untrusted servers: an attacker who chooses keys can choose colliding ones.
//
//   KeyTable table;
//   const auto [id, added] = table.Add("espresso");   // 0, true
#ifndef WISP_RUNTIME_DATA_KEY_TABLE_H_
#define WISP_RUNTIME_DATA_KEY_TABLE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace wisp::data {

// Holds at most 2^31 keys, which fit the callers' counters.
class KeyTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Added {
    uint32_t id;
    bool added;
  };

  uint32_t Find(std::string_view key) const { return slots_.empty() ? kNone : slots_[Probe(key, Hash(key))].id; }

  Added Add(std::string_view key) {
    if (keys_.size() * 2 >= slots_.size()) Grow();
    const uint32_t hash = Hash(key);
    Slot& slot = slots_[Probe(key, hash)];
    if (slot.id != kNone) return {slot.id, false};
    slot = {hash, static_cast<uint32_t>(keys_.size())};
    keys_.emplace_back(key);
    return {slot.id, true};
  }

  const std::vector<std::string>& keys() const { return keys_; }

 private:
  struct Slot {
    uint32_t hash = 0, id = kNone;
  };

  static uint32_t Hash(std::string_view key) {
    const uint64_t hash = std::hash<std::string_view>()(key);
    return static_cast<uint32_t>(hash ^ (hash >> 32));
  }

  // The slot of the key, or the empty slot in which it would be stored.
  size_t Probe(std::string_view key, uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at].id != kNone && (slots_[at].hash != hash || keys_[slots_[at].id] != key)) at = (at + 1) & mask;
    return at;
  }

  void Grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.id == kNone) continue;
      size_t at = slot.hash & mask;
      while (slots_[at].id != kNone) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two of slots, at most half full
  std::vector<std::string> keys_;
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_KEY_TABLE_H_
