// Float16 tables, read in place.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/stages/rows.h"

namespace wisp::kernels::cuda {
namespace {

void ScaleHalf(const ScaleHalfArgs& a) {
  ForEach(a.n, [a] __device__(size_t i) { Put(a.y[i], a.a * AsFloat(a.x[i]), a.store); });
}

void MultiplyHalf(const MultiplyHalfArgs& a) { RunStage<MultiplyHalfStage>(BlocksFor(a.n * kWarp, kStageThreads), a); }

}  // namespace

void FillHalf(OpTable& table) {
  table.scale_half = ScaleHalf;
  table.multiply_half = MultiplyHalf;
}

}  // namespace wisp::kernels::cuda
