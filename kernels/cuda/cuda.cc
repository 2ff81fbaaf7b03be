#include "kernels/cuda/cuda.h"

#include "kernels/cuda/device_code.h"
#include "kernels/cuda/fill.h"

namespace wisp::kernels::cuda {

namespace {

OpTable FloatTable() {
  OpTable table = {.name = "cuda", .takes_records = true, .processors = CountProcessors()};
  FillActivation(table);
  FillAttention(table);
  FillElementwise(table);
  FillEmbedding(table);
  FillExpDouble(table);
  FillFormed(table);
  FillGemm(table);
  FillHalf(table);
  FillPanels(table);
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
}

template <Arithmetic kArithmetic>
const OpTable& BuildTable() {
  static const OpTable kTable = [] {
    OpTable table = FloatTable();
    FillTensor(table, kArithmetic);
    return table;
  }();
  return kTable;
}

}  // namespace

const OpTable& Ops(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kTf32:
      return BuildTable<Arithmetic::kTf32>();
    case Arithmetic::kFloat16:
      return BuildTable<Arithmetic::kFloat16>();
    case Arithmetic::kBfloat16:
      return BuildTable<Arithmetic::kBfloat16>();
    case Arithmetic::kInt8:
      return BuildTable<Arithmetic::kInt8>();
    case Arithmetic::kFloat32:
      break;
  }
  return BuildTable<Arithmetic::kFloat32>();
}

}  // namespace wisp::kernels::cuda
