// A double-array trie over bytes, used in place. tools/convert/trie_builder.h builds it.
//
//   Trie trie(units);
//   trie.Longest(text, at, [](int value, size_t end) { ... });   // each key that begins at `at`, shortest first
//
// A node is an index into the units. The child of node n for byte b is c = base[n] + b + 1, if check[c] is n. The child
// for byte 0 is a leaf, and its base is the value. Every index is checked against the number of units, so even
// malicious units cannot make it read outside.
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_TRIE_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "schema/generated/tokenizer_generated.h"

namespace wisp::text {

class Trie {
 public:
  static constexpr uint32_t kRoot = 0, kNone = 0xffffffff;

  Trie() = default;
  explicit Trie(std::span<const schema::TrieUnit> units) : units_(units) {}

  bool empty() const { return units_.empty(); }
  std::span<const schema::TrieUnit> units() const { return units_; }

  uint32_t Child(uint32_t node, uint8_t byte) const { return Next(node, uint32_t{byte} + 1); }
  // The value of the key that ends at the node, or -1 if no key does.
  int32_t Value(uint32_t node) const {
    const uint32_t leaf = Next(node, 0);
    return leaf == kNone ? -1 : units_[leaf].base();
  }
  // Follows the bytes of a text, starting at a node.
  uint32_t Walk(uint32_t node, std::string_view text) const {
    for (size_t i = 0; i < text.size() && node != kNone; ++i) node = Child(node, static_cast<uint8_t>(text[i]));
    return node;
  }
  int32_t Find(std::string_view key) const {
    const uint32_t node = empty() ? kNone : Walk(kRoot, key);
    return node == kNone ? -1 : Value(node);
  }
  // Calls seen(value, end) for each key text[at, end), shortest first, starting at `node`.
  template <typename Seen>
  void Prefixes(uint32_t node, std::string_view text, size_t at, const Seen& seen) const {
    if (empty()) return;
    while (at < text.size()) {
      node = Child(node, static_cast<uint8_t>(text[at]));
      if (node == kNone) return;
      ++at;
      if (const int32_t value = Value(node); value >= 0) seen(value, at);
    }
  }

 private:
  uint32_t Next(uint32_t node, uint32_t code) const {
    const uint32_t next = static_cast<uint32_t>(units_[node].base()) + code;
    return next < units_.size() && static_cast<uint32_t>(units_[next].check()) == node ? next : kNone;
  }

  std::span<const schema::TrieUnit> units_;
};

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_TRIE_H_
