// The best of many scores, step by step (stages/top_k.h).
#include "kernels/cuda/fill.h"
#include "kernels/cuda/stages/top_k.h"

namespace wisp::kernels::cuda {
namespace {

size_t CountLists(size_t n) { return n <= kWarpKeys ? 1 : (n + kWarpKeys - 1) / kWarpKeys; }
size_t OfOne(size_t k) { return kWarpKeys / (k == 0 ? 1 : k); }
size_t ListsAfter(size_t lists, size_t k) { return (lists + OfOne(k) - 1) / OfOne(k); }

// Memory for the lists of two steps, which alternate.
size_t ScratchSize(size_t rows, size_t n, size_t k) {
  const size_t lists = CountLists(n);
  return lists == 1 ? 0 : rows * (lists + ListsAfter(lists, k)) * (k + 1);
}

void TopK(const TopKArgs& a) {
  if (a.rows == 0) return;
  const size_t first_lists = CountLists(a.n), scratch_of_first = a.rows * first_lists * (a.k + 1);
  TopKStep step = {.score_RN = a.score_RN,
                   .excluded_RW = a.excluded_RW,
                   .from = nullptr,
                   .to = nullptr,
                   .best_RK = a.best_RK,
                   .summary_R = a.summary_R,
                   .rows = static_cast<uint32_t>(a.rows),
                   .n = static_cast<uint32_t>(a.n),
                   .k = static_cast<uint32_t>(a.k),
                   .num_from = 0,
                   .num_to = static_cast<uint32_t>(first_lists),
                   .of_one = static_cast<uint32_t>(OfOne(a.k))};
  for (;;) {
    uint64_t* const next = step.from == a.scratch ? a.scratch + scratch_of_first : a.scratch;
    step.to = step.num_to == 1 ? nullptr : next;
    RunStage<TopKStage>(BlocksFor(a.rows * step.num_to * kWarp, kStageThreads), step);
    if (step.to == nullptr) return;
    step.from = step.to;
    step.num_from = step.num_to;
    step.num_to = static_cast<uint32_t>(ListsAfter(step.num_from, a.k));
  }
}

}  // namespace

void FillTopK(OpTable& table) {
  table.top_k_scratch_size = ScratchSize;
  table.top_k = TopK;
}

}  // namespace wisp::kernels::cuda
