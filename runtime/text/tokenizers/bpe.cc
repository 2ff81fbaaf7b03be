// Built for speed: once for each word of a text.
#include <algorithm>
#include <functional>
#include <limits>

#include "runtime/text/tokenizers/models.h"
#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {
namespace {

using Symbol = WordWork::Symbol;
constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();
// Up to this length a word is merged by scanning all pairs for each merge; longer words use a queue.
constexpr size_t kShortWord = 32;

// Sets the rank and the result of merging two symbols.
void LookUp(const Image& image, int32_t left, int32_t right, Symbol& symbol) {
  const auto table = image.merges;
  const auto l = static_cast<uint32_t>(left), r = static_cast<uint32_t>(right);
  size_t slot = MergeSlot(l, r, table.size());
  for (;; slot = (slot + 1) & (table.size() - 1)) {  // ends: at least one entry is empty
    const schema::TokenMerge& merge = table[slot];
    if (merge.rank() == kNoRank) break;
    if (merge.left() != l || merge.right() != r) continue;
    symbol.rank = merge.rank();
    symbol.result = merge.result();
    return;
  }
  symbol.rank = kNoRank;
}

// The first symbols of a word: its bytes or characters. An unknown character becomes the tokens of its bytes, or the
// unknown token (neighbours may share one), or nothing if there is no such token.
class FirstSymbols {
 public:
  FirstSymbols(const Image& image, std::vector<Symbol>& symbols) : image_(image), symbols_(symbols) {
    symbols_.clear();
  }

  void Run(std::string_view word) {
    if (image_.Is(option::kByteLevel)) {
      for (const char c : word) {
        const int32_t id = image_.byte_ids[static_cast<uint8_t>(c)];
        id >= 0 ? Known(id) : Unknown();
      }
    } else {
      for (size_t at = 0; at < word.size();) {
        const std::string_view one = word.substr(at, CharacterAt(word, at).size);
        at += one.size();
        const int32_t id = image_.trie.Find(one);
        if (id >= 0) {
          Known(id);
        } else if (!Bytes(one)) {
          Unknown();
        }
      }
    }
    Flush();
  }

 private:
  void Add(int32_t id) { symbols_.push_back({.id = id}); }
  void Flush() {
    if (pending_) Add(image_.unk);
    pending_ = false;
  }
  void Known(int32_t id) {
    Flush();
    Add(id);
  }
  // Like the reference implementation, this drops a pending unknown token when bytes follow.
  bool Bytes(std::string_view one) {
    if (!image_.Is(option::kByteFallback)) return false;
    for (const char c : one) {
      if (image_.byte_ids[static_cast<uint8_t>(c)] < 0) return false;
    }
    for (const char c : one) Add(image_.byte_ids[static_cast<uint8_t>(c)]);
    return true;
  }
  void Unknown() {
    if (image_.unk < 0) return;
    if (!image_.Is(option::kFuseUnknown)) Flush();
    pending_ = true;
  }

  const Image& image_;
  std::vector<Symbol>& symbols_;
  bool pending_ = false;
};

// Merges the pair of lowest rank first, and the leftmost of equal ones. O(n^2), without a queue.
void MergeShort(const Image& image, std::vector<Symbol>& symbols) {
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) LookUp(image, symbols[i].id, symbols[i + 1].id, symbols[i]);
  symbols[count - 1].rank = kNoRank;
  for (;;) {
    size_t best = 0;
    for (size_t i = 1; i < count; ++i) {
      if (symbols[i].rank < symbols[best].rank) best = i;
    }
    if (symbols[best].rank == kNoRank) break;
    symbols[best].id = static_cast<int32_t>(symbols[best].result);
    std::copy(symbols.begin() + static_cast<ptrdiff_t>(best) + 2, symbols.begin() + static_cast<ptrdiff_t>(count),
              symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    --count;
    if (best > 0) LookUp(image, symbols[best - 1].id, symbols[best].id, symbols[best - 1]);
    if (best + 1 < count) {
      LookUp(image, symbols[best].id, symbols[best + 1].id, symbols[best]);
    } else {
      symbols[best].rank = kNoRank;
    }
  }
  symbols.resize(count);
}

// Merges as MergeShort does, in O(n log n). A queue entry holds a rank and a position. It is stale if the rank at that
// position has changed.
void MergeLong(const Image& image, WordWork& work) {
  auto& symbols = work.symbols;
  auto& queue = work.queue;
  queue.clear();
  const auto count = static_cast<int32_t>(symbols.size());
  const auto look_up = [&](int32_t at) {
    Symbol& symbol = symbols[static_cast<size_t>(at)];
    if (symbol.next >= count) {
      symbol.rank = kNoRank;
      return;
    }
    LookUp(image, symbol.id, symbols[static_cast<size_t>(symbol.next)].id, symbol);
    if (symbol.rank != kNoRank) queue.push_back(uint64_t{symbol.rank} << 32 | static_cast<uint32_t>(at));
  };
  for (int32_t i = 0; i < count; ++i) {
    symbols[static_cast<size_t>(i)].previous = i - 1;
    symbols[static_cast<size_t>(i)].next = i + 1;
  }
  for (int32_t i = 0; i < count; ++i) look_up(i);
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const uint64_t top = queue.back();
    queue.pop_back();
    const auto at = static_cast<int32_t>(top & 0xffffffff);
    Symbol& symbol = symbols[static_cast<size_t>(at)];
    if (symbol.rank != top >> 32) continue;
    Symbol& merged = symbols[static_cast<size_t>(symbol.next)];
    symbol.id = static_cast<int32_t>(symbol.result);
    symbol.next = merged.next;
    merged.rank = kNoRank;
    merged.id = -1;
    if (symbol.next < count) symbols[static_cast<size_t>(symbol.next)].previous = at;
    for (const int32_t changed : {symbol.previous, at}) {
      const size_t size = queue.size();
      if (changed >= 0) look_up(changed);
      if (queue.size() > size) std::push_heap(queue.begin(), queue.end(), std::greater<>());
    }
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.id < 0; });
}

// Byte-level: looks the word up in the reference's letters for bytes, for vocabularies that contain whole words.
int32_t WholeWord(const Image& image, std::string_view word) {
  if (!image.Is(option::kIgnoreMerges) || image.trie.empty()) return -1;
  return image.trie.Find(word);
}

}  // namespace

void AppendBpe(const Image& image, std::string_view word, WordWork& work, std::vector<int32_t>& ids) {
  if (const int32_t whole = WholeWord(image, word); whole >= 0) return ids.push_back(whole);
  FirstSymbols(image, work.symbols).Run(word);
  if (work.symbols.empty()) return;
  if (work.symbols.size() <= kShortWord) {
    MergeShort(image, work.symbols);
  } else {
    MergeLong(image, work);
  }
  for (const Symbol& symbol : work.symbols) ids.push_back(symbol.id);
}

}  // namespace wisp::text
