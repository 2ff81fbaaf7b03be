// Runs one sequence on several threads: its rows are split into parts, one after another, each with its own buffers.
//
//   const std::unique_ptr<Helpers> helpers = graph.AllocateHelpers(2);      // beside the graph's buffers
//   RecordContext context{.weights = w, .buffers = b, .cache = &cache, .helpers = helpers.get()};
//   ...
//   const RowParts parts(context, cost);
//   parts.ForEach(context, [&](const RecordContext& part, size_t first) { ... });     // rows from `first` on
//
// A stack processes each row independently, except in attention, which reads the keys and values of other rows. Those
// lie in the cache, which the parts share; so the work after them is a separate ForEach. A row's result does not depend
// on the rows beside it in a product (kernels.h), so the bits equal those of one thread.
//
// Does not run several sequences at once: give each of those a thread.
#ifndef WISP_RUNTIME_LAYERS_PARTS_H_
#define WISP_RUNTIME_LAYERS_PARTS_H_

#include <array>
#include <vector>

#include "runtime/core/team.h"
#include "runtime/layers/context.h"

namespace wisp {

// Multiply-adds that are worth a fork and a join. They take 20 us on one AVX-512 core; fork and join take 1 to 2 us
// (Sapphire Rapids, November 2026).
inline constexpr double kMinPartWork = 1e6;

// The other threads and their buffers. The caller's buffers serve the first part.
struct Helpers {
  Helpers(size_t num_threads, Executor executor) : team(num_threads, std::move(executor)) {}
  mutable Team team;
  std::vector<Buffers> buffers;
  double least_of_part = kMinPartWork;  // tests lower it to share less work
};

// Costs in multiply-adds. kLoneRowAdds is the cost of one multiply-add in a product of a single row, whose weights
// are read for that row alone. kExponentialAdds is the cost of an exponential.
inline constexpr double kLoneRowAdds = 10, kExponentialAdds = 8;

// Multiply-adds of a row between two ForEach, and of a row with each position that it attends to.
struct RowCost {
  double row = 0, key = 0;
  bool causal = false;
};

// The number of threads that pays for `adds` multiply-adds: at least 1, at most the team.
size_t ThreadsFor(const Helpers* helpers, double adds);

class RowParts {
 public:
  // Splits the context's rows into parts of equal cost. There is one part without helpers, for too little work, for
  // growing texts, and if the cache holds one block at a time.
  RowParts(const RecordContext& context, const RowCost& cost);

  size_t count() const { return count_; }
  // Calls f(part, first) in parallel for each part that has a wanted row. `part` is the context of its rows, which
  // begin at row `first`.
  template <class F>
  void ForEach(const RecordContext& context, const F& f) const {
    if (count_ == 1) return f(context, size_t{0});
    const size_t skipped = FirstWanted(context);
    context.helpers->team.Run(count_ - skipped,
                              [&](size_t task) { f(GetPart(context, skipped + task), begin_[skipped + task]); });
  }

 private:
  size_t FirstWanted(const RecordContext& context) const;
  RecordContext GetPart(const RecordContext& context, size_t index) const;

  size_t count_ = 1;
  std::array<size_t, Team::kMaxTasks + 1> begin_;  // first row of each part, and the end; unused if there is one part
};

// Calls f(begin, end) in parallel for ranges of equal size of [0, count), or once for all where threads do not pay.
// `adds` is the cost of one element in multiply-adds.
template <class F>
void ForEachRange(const Helpers* helpers, size_t count, double adds, const F& f) {
  const size_t ranges = std::min(count, ThreadsFor(helpers, static_cast<double>(count) * adds));
  if (ranges <= 1) return f(size_t{0}, count);
  helpers->team.Run(ranges, [&](size_t r) { f(count * r / ranges, count * (r + 1) / ranges); });
}

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_PARTS_H_
