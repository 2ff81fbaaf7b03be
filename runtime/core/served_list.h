// The list of items that people are shown: which items may stand in it, in which order, and how long it is. Serving,
// evaluation and the judging of a candidate all take it from here, so what is measured is what is shown.
//
//   ServedList list(num_items, model.lists());
//   std::vector<Recommendation> best(10);
//   const ServedList::Chosen chosen = list.Choose(scores, history, {}, best);
//   best.resize(chosen.count);                       // best first
//   // an item that may be shown had a score that is no number, or infinite: such a list is not served
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
  float score;  // a logit: comparable within one call only
};

// The rules that a model sets for lists made with it (ModelFile::lists). Everybody who makes, tests or judges lists
// takes it from the model: no option of an evaluation can ask for other lists than people are shown.
struct ModelLists {
  bool allow_seen = false;                  // they may hold items of the history
  std::span<const int32_t> withheld = {};   // items that none of them holds, ascending
  std::span<const int32_t> untrained = {};  // histories are read without these (runtime/model/history_window.h)
  bool bias_is_popularity = false;          // the head's bias, if it has one, was made of counts (ScoreNewcomer)
};

// May items of the history be recommended again? Only a call that serves a person may differ from the model.
enum class SeenItems { kAsModel, kExclude, kAllow };

// Items of a list, unless another number is asked for. Candidates are judged by lists of this length.
inline constexpr size_t kListLength = 10;

struct RecommendOptions {
  size_t count = kListLength;
  SeenItems seen = SeenItems::kAsModel;
  std::span<const int32_t> excluded = {};    // never recommended, beside the model's withheld items
  std::span<const int32_t> candidates = {};  // when not empty, only these are considered
};

// The rule of one call.
inline bool AllowsSeen(SeenItems seen, const ModelLists& model) {
  return seen == SeenItems::kAsModel ? model.allow_seen : seen == SeenItems::kAllow;
}

// Calls take(item) for each item that no history may bring.
template <class Take>
void TakeExcluded(const RecommendOptions& options, const ModelLists& model, Take&& take) {
  for (const int32_t id : options.excluded) take(id);
  for (const int32_t id : model.withheld) take(id);
}

// Calls take(item) for each item of `history`, unless it may come again.
template <class Take>
void TakeSeen(std::span<const int32_t> history, SeenItems seen, const ModelLists& model, Take&& take) {
  if (AllowsSeen(seen, model)) return;
  for (const int32_t id : history) take(id);
}

// Both: each item that must not be shown after `history`, whatever its score. Candidates are not looked at here.
template <class Take>
void TakeUnoffered(std::span<const int32_t> history, const RecommendOptions& options, const ModelLists& model,
                   Take&& take) {
  TakeExcluded(options, model, take);
  TakeSeen(history, options.seen, model, take);
}

// The best of many scored items, in room that the caller gives: a heap whose top is the worst of the best so far.
class TopK {
 public:
  // `room`: for as many as are wanted; must outlive the TopK.
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

  // Items first, first + 1, ... with `scores`, but those that are taken. Call with `first` ascending. Most are not
  // above the worst so far: they cost a comparison. NaN is not below it either, so that looking for it costs nothing.
  template <class IsTaken>
  void OfferAll(size_t first, std::span<const float> scores, IsTaken&& is_taken) {
    float bar = Bar();
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] <= bar || is_taken(first + i)) continue;  // equal scores: the smaller id came first
      Offer({static_cast<int32_t>(first + i), scores[i]});
      bar = Bar();
    }
  }

  // True if every score that was offered is finite, or is -infinity and below the worst.
  bool all_finite() const { return all_finite_; }

  // Sorts what was kept, best first, ties by smaller id. Returns how many there are.
  size_t Finish() {
    std::sort_heap(room_.begin(), room_.begin() + size(), Better);
    return size_;
  }

 private:
  // Better: higher score, then smaller id, so that results do not depend on the order of candidates.
  static bool Better(const Recommendation& a, const Recommendation& b) {
    return a.score != b.score ? a.score > b.score : a.item < b.item;
  }
  // What is not above it need not be offered. While there is room, NaN: nothing is below it.
  float Bar() const {
    if (size_ < room_.size()) return std::numeric_limits<float>::quiet_NaN();
    return size_ > 0 ? room_.front().score : std::numeric_limits<float>::infinity();
  }
  std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(size_); }

  std::span<Recommendation> room_;
  size_t size_ = 0;
  bool all_finite_ = true;
};

// Chooses lists from the scores of all items, and keeps the marks that this takes.
class ServedList {
 public:
  // The memory behind the spans of `model` must outlive the list.
  ServedList(size_t num_items, const ModelLists& model) : model_(model), taken_(num_items, 0) {}

  struct Chosen {
    size_t count = 0;         // items of the list: fewer than there is room for when not so many are left
    bool all_finite = false;  // false: damaged weights, and the list is not to be served
  };
  // The list after `history`, at the front of `best`, whose size is the length that is wanted. Scores are those of all
  // items; ids were checked.
  Chosen Choose(std::span<const float> scores, std::span<const int32_t> history, const RecommendOptions& options,
                std::span<Recommendation> best);

  // Where `target` stands in the list of options.count items, from 0. Nothing where it is not shown: because it is not
  // good enough, or may not be offered, or because no list is served.
  std::optional<size_t> PositionOf(int32_t target, std::span<const float> scores, std::span<const int32_t> history,
                                   const RecommendOptions& options = {});

  size_t bytes() const { return taken_.capacity() + room_.capacity() * sizeof(Recommendation); }

 private:
  ModelLists model_;
  std::vector<uint8_t> taken_;
  std::vector<Recommendation> room_;  // of PositionOf
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_SERVED_LIST_H_
