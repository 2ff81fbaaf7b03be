// The best of many scored items, in room that the caller gives: a heap whose top is the worst of the best so far.
//
//   std::vector<Recommendation> room(10);
//   TopK top(room);
//   top.OfferAll(0, scores, [&](size_t id) { return taken[id] != 0; });
//   room.resize(top.Finish());       // best first
//   // among what was offered was a score that is no number, or infinite: it is left out
//   if (!top.all_finite()) ...
#ifndef WISP_RUNTIME_INFERENCE_TOP_K_H_
#define WISP_RUNTIME_INFERENCE_TOP_K_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace wisp {

struct Recommendation {
  int32_t item;
  float score;  // a logit: comparable within one call only
};

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

  // Whether every score that was offered is finite, but for -infinity below the worst.
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

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_TOP_K_H_
