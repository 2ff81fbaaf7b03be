// Suggests names that are close to a mistyped one: a typing error away, or with the same beginning.
//
//   NearNames near("bagel-sesame");
//   for (const std::string_view key : keys) near.Add(key);
//   near.Question()   // "; did you mean bagel-salmon, bagel-spinach or bagel-avocado?", or nothing
//
// It passes over the names once, whatever their number, and holds three of them.
#ifndef WISP_TOOLS_WISP_RECIPE_NEAR_NAMES_H_
#define WISP_TOOLS_WISP_RECIPE_NEAR_NAMES_H_

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wisp::tools {

// Returns the insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; `most` + 1 if there
// are more than `most`.
inline size_t EditDistance(std::string_view a, std::string_view b, size_t most) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > most) return most + 1;
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    if (*std::min_element(row.begin(), row.end()) > most) return most + 1;
    before = std::exchange(last, row);
  }
  return std::min(last[b.size()], most + 1);
}

class NearNames {
 public:
  static constexpr size_t kMost = 3;
  enum class Beginnings { kCount, kDoNotCount };  // decides if a common beginning makes a name near

  explicit NearNames(std::string_view wanted, Beginnings beginnings = Beginnings::kCount)
      : wanted_(wanted.substr(0, kMaxBytes)),
        beginnings_(beginnings),
        edits_(std::max<size_t>(1, wanted_.size() / 4)) {}

  void Add(std::string_view name) {
    if (name.size() > kMaxBytes) return;
    const auto same = static_cast<size_t>(
        std::mismatch(wanted_.begin(), wanted_.end(), name.begin(), name.end()).first - wanted_.begin());
    const size_t edits = EditDistance(wanted_, name, edits_);
    const bool begins = beginnings_ == Beginnings::kCount && same >= 3 && 2 * same >= wanted_.size();
    if (edits > edits_ && !begins) return;
    const Near near{edits, same, std::string(name)};
    // Among equally near names, the first stays first.
    near_.insert(std::upper_bound(near_.begin(), near_.end(), near,
                                  [](const Near& a, const Near& b) {
                                    return a.edits != b.edits ? a.edits < b.edits : a.same > b.same;
                                  }),
                 near);
    if (near_.size() > kMost) near_.pop_back();
  }

  // Returns the nearest name first.
  std::vector<std::string> Found() const {
    std::vector<std::string> names;
    for (const Near& near : near_) names.push_back(near.name);
    return names;
  }

  // Returns the end of a sentence; empty if nothing is near.
  std::string Question() const {
    std::string list;
    for (size_t i = 0; i < near_.size(); ++i)
      list += (i == 0 ? "" : i + 1 == near_.size() ? " or " : ", ") + near_[i].name;
    return list.empty() ? "" : "; did you mean " + list + "?";
  }

 private:
  static constexpr size_t kMaxBytes = 64;  // the work for a name is at most the square of this
  struct Near {
    size_t edits, same;
    std::string name;
  };

  std::string wanted_;
  Beginnings beginnings_;
  size_t edits_;
  std::vector<Near> near_;
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_NEAR_NAMES_H_
