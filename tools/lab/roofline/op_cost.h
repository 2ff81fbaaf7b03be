// Computes the least work of an op's call from its arguments alone. It serves rooflines; a kernel may do more.
//
//   const OpCost cost = CostOf(kernels::LinearForwardArgs<>{...});
//
// bytes: every number that the contract reads is read once, and every one that it writes is written once. An output
// that is added to is read and written. The op's own scratch is not counted. Memory that stays in a cache between two
// calls is counted again, so that a device with a large cache may be faster than its roofline.
// operations: additions and multiplications, where a fused pair counts as two. A division, a comparison, a square root,
// an exponential and a conversion count as one each. Products and attention are exact in this. For the other ops only
// the order of magnitude matters, since memory bounds them on every known device.
#ifndef WISP_TOOLS_LAB_ROOF_OP_COST_H_
#define WISP_TOOLS_LAB_ROOF_OP_COST_H_

#include "kernels/kernels.h"

namespace wisp::tools {

struct OpCost {
  double bytes = 0, operations = 0;
};

OpCost CostOf(const kernels::PackWeightsArgs<>& a);
OpCost CostOf(const kernels::LinearForwardArgs<>& a);
OpCost CostOf(const kernels::LinearBackwardInputArgs<>& a);
OpCost CostOf(const kernels::LinearBackwardWeightArgs<>& a);
OpCost CostOf(const kernels::ColumnSumArgs<>& a);
OpCost CostOf(const kernels::LayerNormForwardArgs<>& a);
OpCost CostOf(const kernels::LayerNormBackwardArgs<>& a);
OpCost CostOf(const kernels::RmsNormForwardArgs<>& a);
OpCost CostOf(const kernels::RmsNormBackwardArgs<>& a);
OpCost CostOf(const kernels::RotaryArgs<>& a);
OpCost CostOf(const kernels::AttentionForwardArgs<>& a);
OpCost CostOf(const kernels::AttentionBackwardArgs<>& a);
OpCost CostOf(const kernels::ActivationForwardArgs<>& a);
OpCost CostOf(const kernels::ActivationBackwardArgs<>& a);
OpCost CostOf(const kernels::GatedActivationForwardArgs<>& a);
OpCost CostOf(const kernels::GatedActivationBackwardArgs<>& a);
OpCost CostOf(const kernels::MapArgs<>& a);
OpCost CostOf(const kernels::ScaleArgs<>& a);
OpCost CostOf(const kernels::ApplyKeepArgs<>& a);
OpCost CostOf(const kernels::LinearVarianceArgs<>& a);
OpCost CostOf(const kernels::LayerNormVarianceArgs<>& a);
OpCost CostOf(const kernels::ActivationVarianceArgs<>& a);
OpCost CostOf(const kernels::DotRowsArgs<>& a);
OpCost CostOf(const kernels::AccumulateOnGridArgs<>& a);
OpCost CostOf(const kernels::ExpDoubleArgs& a);
OpCost CostOf(const kernels::AdamArgs<>& a);
OpCost CostOf(const kernels::SgdArgs<>& a);

// Defined in op_cost_rows.cc: rows, heads, records' gradients, the end of a step.
OpCost CostOf(const kernels::ClearArgs& a);
OpCost CostOf(const kernels::DrawKeepArgs& a);
OpCost CostOf(const kernels::EmbedForwardArgs<>& a);
OpCost CostOf(const kernels::EmbedHalfArgs& a);
OpCost CostOf(const kernels::EmbedVarianceArgs<>& a);
OpCost CostOf(const kernels::PositionIdsArgs& a);
OpCost CostOf(const kernels::ScatterAddArgs<>& a);
OpCost CostOf(const kernels::CopyRowsArgs<>& a);
OpCost CostOf(const kernels::KeepKeysArgs& a);
OpCost CostOf(const kernels::AttendCachedArgs& a);
OpCost CostOf(const kernels::GatherColumnsArgs<>& a);
OpCost CostOf(const kernels::ScaleHalfArgs& a);
OpCost CostOf(const kernels::MultiplyHalfArgs& a);
OpCost CostOf(const kernels::EmbedPanelsArgs& a);
OpCost CostOf(const kernels::MultiplyPanelsArgs& a);
OpCost CostOf(const kernels::SoftmaxStartArgs<>& a);
OpCost CostOf(const kernels::SoftmaxStatsArgs<>& a);
OpCost CostOf(const kernels::CrossEntropyLossArgs<>& a);
OpCost CostOf(const kernels::CrossEntropyGradientArgs<>& a);
OpCost CostOf(const kernels::TargetLogitsArgs<>& a);
OpCost CostOf(const kernels::TargetGradientArgs<>& a);
OpCost CostOf(const kernels::ClassCrossEntropyArgs<>& a);
OpCost CostOf(const kernels::ClipRowsArgs<>& a);
OpCost CostOf(const kernels::ClipRowsBackwardArgs<>& a);
OpCost CostOf(const kernels::MeanRowsArgs<>& a);
OpCost CostOf(const kernels::MeanRowsBackwardArgs<>& a);
OpCost CostOf(const kernels::RecordWeightGradientsArgs<>& a);
OpCost CostOf(const kernels::RecordScatterAddArgs<>& a);
OpCost CostOf(const kernels::AddRowsArgs<>& a);
OpCost CostOf(const kernels::SquaresOfRowsArgs<>& a);
OpCost CostOf(const kernels::AccumulateRowsOnGridArgs<>& a);
OpCost CostOf(const kernels::AccumulateSlotsOnGridArgs<>& a);
OpCost CostOf(const kernels::ScoreTilesArgs<>& a);
OpCost CostOf(const kernels::TopKArgs& a);
OpCost CostOf(const kernels::NoisedSumArgs<>& a);
OpCost CostOf(const kernels::AddSquaredMovesArgs<>& a);

// Returns the bytes of `count` numbers of four bytes, each read or written once.
inline double Floats(double count) { return 4 * count; }
inline double Product(size_t a, size_t b) { return static_cast<double>(a) * static_cast<double>(b); }
// Returns how often an output is touched: written, or read and written.
inline double Touches(kernels::Store store) { return store == kernels::Store::kAdd ? 2 : 1; }
inline size_t NumRecords(const kernels::Segments& records) {
  return records.begin_B == nullptr ? 1 : records.num_records;
}

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_ROOF_OP_COST_H_
