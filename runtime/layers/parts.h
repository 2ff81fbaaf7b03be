// One sequence on several threads: its rows in parts, one after the other, each with buffers of its own.
//
//   const std::unique_ptr<Helpers> helpers = graph.AllocateHelpers(2);      // beside the graph's buffers
//   RecordContext context{.weights = w, .buffers = b, .cache = &cache, .helpers = helpers.get()};
//   ...
//   const RowParts parts(context, cost);
//   parts.ForEach(context, [&](const RecordContext& part, size_t first) { ... });     // rows from `first` on
//
// All that a stack does with a row needs that row alone, but for attention, which reads keys and values of others. They
// lie in the cache, which the parts share; so what comes after them is a ForEach of its own. A row's result does not
// depend on the rows beside it in a product (kernels.h), so the bits are those of one thread.
//
// What it leaves to others: several sequences at once, which are for a thread each.
#ifndef WISP_RUNTIME_LAYERS_PARTS_H_
#define WISP_RUNTIME_LAYERS_PARTS_H_

#include <array>
#include <vector>

#include "runtime/core/team.h"
#include "runtime/layers/context.h"

namespace wisp {

// Multiply-adds that are worth a fork and a join: 20 us of one AVX-512 core, where these take one or two (Sapphire
// Rapids, November 2026).
inline constexpr double kLeastOfPart = 1e6;

// The caller's buffers are those of the first part.
struct Helpers {
  Helpers(size_t num_threads, Executor executor) : team(num_threads, std::move(executor)) {}
  mutable Team team;
  std::vector<Buffers> buffers;
  double least_of_part = kLeastOfPart;  // tests share smaller work too
};

// Costs in multiply-adds: of one in a product of a single row, whose weights are read for that row alone; of an
// exponential.
inline constexpr double kAddsOfLoneOne = 10, kAddsOfExponential = 8;

// Multiply-adds of a row between two ForEach, and of it with each position that it attends.
struct RowCost {
  double row = 0, key = 0;
  bool causal = false;
};

// How many threads are worth their while for so many multiply-adds: 1 to as many as there are.
size_t ThreadsFor(const Helpers* helpers, double adds);

class RowParts {
 public:
  // The context's rows in parts that cost the same. One part where there are no helpers, where too little is to be
  // done, where the cache holds one block at a time, and of texts that grow.
  RowParts(const RecordContext& context, const RowCost& cost);

  size_t count() const { return count_; }
  // f(part, first) for each part with a wanted row, at the same time: the context of its rows, which begin at `first`.
  template <class F>
  void ForEach(const RecordContext& context, const F& f) const {
    if (count_ == 1) return f(context, size_t{0});
    const size_t skipped = FirstWanted(context);
    context.helpers->team.Run(count_ - skipped,
                              [&](size_t task) { f(PartOf(context, skipped + task), begin_[skipped + task]); });
  }

 private:
  size_t FirstWanted(const RecordContext& context) const;
  RecordContext PartOf(const RecordContext& context, size_t index) const;

  size_t count_ = 1;
  std::array<size_t, Team::kMaxTasks + 1> begin_;  // of each part, and behind the last; not written for one
};

// f(begin, end) for ranges of [0, count) of equal size, at the same time; of all where that does not pay. `adds`: the
// multiply-adds of one.
template <class F>
void ForEachRange(const Helpers* helpers, size_t count, double adds, const F& f) {
  const size_t ranges = std::min(count, ThreadsFor(helpers, static_cast<double>(count) * adds));
  if (ranges <= 1) return f(size_t{0}, count);
  helpers->team.Run(ranges, [&](size_t r) { f(count * r / ranges, count * (r + 1) / ranges); });
}

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_PARTS_H_
