#include "kernels/cuda/cuda.h"

#include "kernels/cuda/fill.h"

namespace wisp::kernels::cuda {

const OpTable& Ops() {
  static const OpTable kTable = [] {
    OpTable table = {.name = "cuda", .takes_records = true};
    FillActivation(table);
    FillAttention(table);
    FillElementwise(table);
    FillEmbedding(table);
    FillExpDouble(table);
    FillFormed(table);
    FillGemm(table);
    FillHalf(table);
    FillHeads(table);
    FillNorm(table);
    FillOptimizer(table);
    FillReduce(table);
    FillRotary(table);
    FillSoftmax(table);
    FillStep(table);
    FillTopK(table);
    FillVariance(table);
    return table;
  }();
  return kTable;
}

}  // namespace wisp::kernels::cuda
