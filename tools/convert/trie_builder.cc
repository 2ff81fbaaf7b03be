#include "tools/convert/trie_builder.h"

#include <algorithm>

namespace wisp::convert {
namespace {

constexpr size_t kCodes = 257;  // the end of a key, and 256 bytes

// Sorted keys, of which those in [begin, end) share `depth` bytes.
struct Range {
  size_t begin, end, depth;
  int32_t node;
};

class Builder {
 public:
  explicit Builder(const std::vector<std::pair<std::string, int32_t>>& keys) : keys_(keys) {}

  std::vector<schema::TrieUnit> Run() {
    Reserve(1);
    Take(0);
    check_[0] = 0;
    std::vector<Range> waiting = {{0, keys_.size(), 0, 0}};
    while (!waiting.empty()) {
      const Range range = waiting.back();
      waiting.pop_back();
      Place(range, waiting);
    }
    std::vector<schema::TrieUnit> units;
    size_t used = check_.size();
    while (used > 1 && check_[used - 1] < 0) --used;
    units.reserve(used);
    for (size_t i = 0; i < used; ++i) units.emplace_back(base_[i], check_[i]);
    return units;
  }

 private:
  size_t GetCode(const Range& range, size_t key) const {
    const std::string& text = keys_[key].first;
    return text.size() == range.depth ? 0 : size_t{static_cast<uint8_t>(text[range.depth])} + 1;
  }

  // Places the children of a node.
  void Place(const Range& range, std::vector<Range>& waiting) {
    std::vector<size_t> codes;
    std::vector<size_t> begins;
    for (size_t key = range.begin; key < range.end; ++key) {
      const size_t code = GetCode(range, key);
      if (!codes.empty() && codes.back() == code) continue;
      codes.push_back(code);
      begins.push_back(key);
    }
    begins.push_back(range.end);
    const size_t base = FindBase(codes);
    base_[static_cast<size_t>(range.node)] = static_cast<int32_t>(base);
    for (size_t i = 0; i < codes.size(); ++i) {
      const size_t child = base + codes[i];
      Take(child);
      check_[child] = range.node;
      if (codes[i] == 0) {
        base_[child] = keys_[begins[i]].second;
      } else {
        waiting.push_back({begins[i], begins[i + 1], range.depth + 1, static_cast<int32_t>(child)});
      }
    }
  }

  // Returns the first base at which the places of all children are free. Free units form a list, so that full stretches
  // are skipped at once.
  size_t FindBase(const std::vector<size_t>& codes) {
    constexpr size_t kTries = 4096;  // after these, takes the end of the array: it loses a few units, but no time
    size_t tries = 0;
    for (size_t unit = next_free_; unit < check_.size() && tries < kTries; unit = next_[unit], ++tries) {
      if (unit <= codes[0]) continue;
      const size_t base = unit - codes[0];
      Reserve(base + kCodes);
      if (std::all_of(codes.begin(), codes.end(), [&](size_t code) { return check_[base + code] < 0; })) return base;
    }
    const size_t base = check_.size();
    Reserve(base + kCodes);
    return base;
  }

  void Reserve(size_t size) {
    while (check_.size() < size) {
      const size_t unit = check_.size();
      check_.push_back(-1);
      base_.push_back(0);
      next_.push_back(unit + 1);
      previous_.push_back(last_free_);
      if (last_free_ == kNone) {
        next_free_ = unit;
      } else {
        next_[last_free_] = unit;
      }
      last_free_ = unit;
    }
  }

  void Take(size_t unit) {
    const size_t before = previous_[unit], behind = next_[unit];
    if (before == kNone) {
      next_free_ = behind;
    } else {
      next_[before] = behind;
    }
    if (unit == last_free_) {
      last_free_ = before;
    } else {
      previous_[behind] = before;
    }
  }

  static constexpr size_t kNone = SIZE_MAX;
  const std::vector<std::pair<std::string, int32_t>>& keys_;
  std::vector<int32_t> base_, check_;  // check -1: free
  std::vector<size_t> next_, previous_;
  size_t next_free_ = 0, last_free_ = kNone;
};

}  // namespace

std::vector<schema::TrieUnit> BuildTrie(std::vector<std::pair<std::string, int32_t>> keys) {
  // The last of equal keys counts: reversed and sorted stably it comes first, and the others are dropped.
  std::reverse(keys.begin(), keys.end());
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  keys.erase(std::unique(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
             keys.end());
  if (keys.empty()) return {};
  return Builder(keys).Run();
}

}  // namespace wisp::convert
