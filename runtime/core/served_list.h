// The list of items that a person is shown: which items may be in it, their order, and its length. Serving, held-out
// evaluation and the choice of a candidate model all use this code, so that what is measured is what is shown.
//
//   ServedList list(num_items, model.lists());
//   std::vector<Recommendation> best(10);
//   const ServedList::Chosen chosen = list.Choose(scores, history, {}, best);
//   best.resize(chosen.count);                       // best first
//   // a score of an item that may be shown was not finite: such a list is not served
//   if (!chosen.all_finite) ...
//
// Where scores come in tiles or lie on a device, TakeUnoffered and TopK give the same list.
#ifndef WISP_RUNTIME_CORE_SERVED_LIST_H_
#define WISP_RUNTIME_CORE_SERVED_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace wisp {

struct Recommendation {
  int32_t item;
  float score;  // a logit: compare it only within one call
};

// A model knows pairs of items beside its weights: the score of item `to` rises by `score` after a history
// whose last item is `from`.
struct Succession {
  int32_t from, to;
  float score;
  bool operator==(const Succession&) const = default;
};

// Those of `successions` that begin with the last item of `history`. They are ascending by `from`.
std::span<const Succession> FindSuccessions(std::span<const Succession> successions, std::span<const int32_t> history);

// Adds the successions of `history` to the scores of the items from number `first` on. Scores are complete only with
// them: whoever scores items for a list calls this.
void AddSuccessions(std::span<const Succession> successions, std::span<const int32_t> history, std::span<float> scores,
                    size_t first = 0);

// The rules that a model sets for its lists (ModelFile::lists). Code that makes, tests or evaluates lists takes the
// rules from the model, so no evaluation can measure other lists than people are shown.
struct ModelLists {
  bool allow_seen = false;                  // lists may hold items of the history
  std::span<const int32_t> withheld = {};   // items that no list holds, ascending
  std::span<const int32_t> untrained = {};  // histories are read without these items (runtime/model/history_window.h)
  bool bias_is_popularity = false;          // the head's bias, if any, was made of item counts
  std::span<const Succession> successions = {};  // ascending by `from`, then `to`
};

// Says if items of the history may be recommended again. Only a call that serves a person may differ from the model.
enum class SeenItems { kAsModel, kExclude, kAllow };

// The default length of a list. Candidate models are evaluated with lists of this length.
inline constexpr size_t kListLength = 10;

struct RecommendOptions {
  size_t count = kListLength;
  SeenItems seen = SeenItems::kAsModel;
  std::span<const int32_t> excluded = {};    // never recommended, beside the model's withheld items
  std::span<const int32_t> candidates = {};  // if not empty, only these can be recommended
};

// Resolves a call's choice against the model's rule.
inline bool AllowsSeen(SeenItems seen, const ModelLists& model) {
  return seen == SeenItems::kAsModel ? model.allow_seen : seen == SeenItems::kAllow;
}

// Calls take(item) for each item that the model withholds from every list.
template <class Take>
void TakeExcluded(const RecommendOptions& options, const ModelLists& model, Take&& take) {
  for (const int32_t id : options.excluded) take(id);
  for (const int32_t id : model.withheld) take(id);
}

// Calls take(item) for each item of `history`, unless such items may be recommended again.
template <class Take>
void TakeSeen(std::span<const int32_t> history, SeenItems seen, const ModelLists& model, Take&& take) {
  if (AllowsSeen(seen, model)) return;
  for (const int32_t id : history) take(id);
}

// Does both: calls take(item) for each item that must not be shown after `history`. Ignores the candidates.
template <class Take>
void TakeUnoffered(std::span<const int32_t> history, const RecommendOptions& options, const ModelLists& model,
                   Take&& take) {
  TakeExcluded(options, model, take);
  TakeSeen(history, options.seen, model, take);
}

// Keeps the best of many scored items in the caller's memory: a heap whose top is the worst of the kept items.
class TopK {
 public:
  // `room` has one element for each wanted item; it must outlive the TopK.
  explicit TopK(std::span<Recommendation> room) : room_(room) {}

  void Offer(Recommendation r) {
    if (!(r.score - r.score == 0)) {
      all_finite_ = false;
    } else if (size_ < room_.size()) {
      room_[size_++] = r;
      std::push_heap(room_.begin(), room_.begin() + size(), Better);
    } else if (size_ > 0 && Better(r, room_.front())) {
      std::pop_heap(room_.begin(), room_.end(), Better);
      room_.back() = r;
      std::push_heap(room_.begin(), room_.end(), Better);
    }
  }

  // Offers the items first, first + 1, ... with `scores`, except those that are taken. Call it with ascending `first`.
  // Most scores are not above the worst kept one and cost one comparison. The comparison lets NaN through, so that
  // finding NaN costs nothing.
  template <class IsTaken>
  void OfferAll(size_t first, std::span<const float> scores, IsTaken&& is_taken) {
    float bar = Bar();
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] <= bar || is_taken(first + i)) continue;  // on equal scores the smaller id, which came first, wins
      Offer({static_cast<int32_t>(first + i), scores[i]});
      bar = Bar();
    }
  }

  // True if every offered score was finite, or was -infinity and below the worst kept score.
  bool all_finite() const { return all_finite_; }

  // Sorts the kept items, best first, ties by smaller id. Returns their number.
  size_t Finish() {
    std::sort_heap(room_.begin(), room_.begin() + size(), Better);
    return size_;
  }

 private:
  // A higher score is better, then a smaller id, so that results do not depend on the candidates' order.
  static bool Better(const Recommendation& a, const Recommendation& b) {
    return a.score != b.score ? a.score > b.score : a.item < b.item;
  }
  // The worst kept score: items not above it need not be offered. NaN while the heap is not full, as nothing compares
  // below NaN.
  float Bar() const {
    if (size_ < room_.size()) return std::numeric_limits<float>::quiet_NaN();
    return size_ > 0 ? room_.front().score : std::numeric_limits<float>::infinity();
  }
  std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(size_); }

  std::span<Recommendation> room_;
  size_t size_ = 0;
  bool all_finite_ = true;
};

// Chooses lists from the scores of all items. Owns the marks of taken items that this needs.
class ServedList {
 public:
  // The memory behind the spans of `model` must outlive the list.
  ServedList(size_t num_items, const ModelLists& model) : model_(model), taken_(num_items, 0) {}

  struct Chosen {
    size_t count = 0;         // length of the list; below the wanted length when too few items are left
    bool all_finite = false;  // false: weights are damaged; do not serve the list
  };
  // Writes the list after `history` to the front of `best`, whose size is the wanted length. `scores` has every item's
  // score; ids must have been checked.
  Chosen Choose(std::span<const float> scores, std::span<const int32_t> history, const RecommendOptions& options,
                std::span<Recommendation> best);

  // The position of `target`, from 0, in the list of options.count items. nullopt if it is not shown: its score is too
  // low, it may not be offered, or no list is served.
  std::optional<size_t> FindPosition(int32_t target, std::span<const float> scores, std::span<const int32_t> history,
                                     const RecommendOptions& options = {});

  size_t bytes() const { return taken_.capacity() + room_.capacity() * sizeof(Recommendation); }

 private:
  ModelLists model_;
  std::vector<uint8_t> taken_;
  std::vector<Recommendation> room_;  // memory for FindPosition
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_SERVED_LIST_H_
