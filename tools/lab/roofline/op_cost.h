// Computes the least work of an op's call from its arguments alone. It serves rooflines; a kernel may do more.
//
//   const OpCost cost = ComputeCost(kernels::LinearForwardArgs<>{...});
//
// bytes: every number that the contract reads is read once, and every one that it writes is written once. An output
// that is added to is read and written. The op's own scratch is not counted. Memory that stays in a cache between two
// calls is counted again, so that a device with a large cache may be faster than its roofline.
// operations: additions and multiplications, where a fused pair counts as two. A division, a comparison, a square root,
// an exponential and a conversion count as one each. Products and attention are exact in this. For the other ops only
// the order of magnitude matters, since memory bounds them on every known device.
#ifndef WISP_TOOLS_LAB_ROOFLINE_OP_COST_H_
#define WISP_TOOLS_LAB_ROOFLINE_OP_COST_H_

#include "kernels/kernels.h"

namespace wisp::tools {

struct OpCost {
  double bytes = 0, operations = 0;
};

OpCost ComputeCost(const kernels::PackWeightsArgs<>& a);
OpCost ComputeCost(const kernels::LinearForwardArgs<>& a);
OpCost ComputeCost(const kernels::LinearBackwardInputArgs<>& a);
OpCost ComputeCost(const kernels::LinearBackwardWeightArgs<>& a);
OpCost ComputeCost(const kernels::ColumnSumArgs<>& a);
OpCost ComputeCost(const kernels::LayerNormForwardArgs<>& a);
OpCost ComputeCost(const kernels::LayerNormBackwardArgs<>& a);
OpCost ComputeCost(const kernels::RmsNormForwardArgs<>& a);
OpCost ComputeCost(const kernels::RmsNormBackwardArgs<>& a);
OpCost ComputeCost(const kernels::RotaryArgs<>& a);
OpCost ComputeCost(const kernels::AttentionForwardArgs<>& a);
OpCost ComputeCost(const kernels::AttentionBackwardArgs<>& a);
OpCost ComputeCost(const kernels::ActivationForwardArgs<>& a);
OpCost ComputeCost(const kernels::ActivationBackwardArgs<>& a);
OpCost ComputeCost(const kernels::GatedActivationForwardArgs<>& a);
OpCost ComputeCost(const kernels::GatedActivationBackwardArgs<>& a);
OpCost ComputeCost(const kernels::MapArgs<>& a);
OpCost ComputeCost(const kernels::ScaleArgs<>& a);
OpCost ComputeCost(const kernels::ApplyKeepArgs<>& a);
OpCost ComputeCost(const kernels::LinearVarianceArgs<>& a);
OpCost ComputeCost(const kernels::LayerNormVarianceArgs<>& a);
OpCost ComputeCost(const kernels::ActivationVarianceArgs<>& a);
OpCost ComputeCost(const kernels::DotRowsArgs<>& a);
OpCost ComputeCost(const kernels::AccumulateOnGridArgs<>& a);
OpCost ComputeCost(const kernels::ExpDoubleArgs& a);
OpCost ComputeCost(const kernels::AdamArgs<>& a);
OpCost ComputeCost(const kernels::SgdArgs<>& a);

// Defined in op_cost_rows.cc: rows, heads, records' gradients, the end of a step.
OpCost ComputeCost(const kernels::ClearArgs& a);
OpCost ComputeCost(const kernels::DrawKeepArgs& a);
OpCost ComputeCost(const kernels::EmbedForwardArgs<>& a);
OpCost ComputeCost(const kernels::EmbedHalfArgs& a);
OpCost ComputeCost(const kernels::EmbedVarianceArgs<>& a);
OpCost ComputeCost(const kernels::PositionIdsArgs& a);
OpCost ComputeCost(const kernels::ScatterAddArgs<>& a);
OpCost ComputeCost(const kernels::CopyRowsArgs<>& a);
OpCost ComputeCost(const kernels::KeepKeysArgs& a);
OpCost ComputeCost(const kernels::AttendCachedArgs& a);
OpCost ComputeCost(const kernels::GatherColumnsArgs<>& a);
OpCost ComputeCost(const kernels::ScaleHalfArgs& a);
OpCost ComputeCost(const kernels::MultiplyHalfArgs& a);
OpCost ComputeCost(const kernels::EmbedPanelsArgs& a);
OpCost ComputeCost(const kernels::MultiplyPanelsArgs& a);
OpCost ComputeCost(const kernels::SoftmaxStartArgs<>& a);
OpCost ComputeCost(const kernels::SoftmaxStatsArgs<>& a);
OpCost ComputeCost(const kernels::CrossEntropyLossArgs<>& a);
OpCost ComputeCost(const kernels::CrossEntropyGradientArgs<>& a);
OpCost ComputeCost(const kernels::SoftmaxGradientArgs<>& a);
OpCost ComputeCost(const kernels::TargetLogitsArgs<>& a);
OpCost ComputeCost(const kernels::TargetGradientArgs<>& a);
OpCost ComputeCost(const kernels::ClassCrossEntropyArgs<>& a);
OpCost ComputeCost(const kernels::ClipRowsArgs<>& a);
OpCost ComputeCost(const kernels::ClipRowsBackwardArgs<>& a);
OpCost ComputeCost(const kernels::MeanRowsArgs<>& a);
OpCost ComputeCost(const kernels::MeanRowsBackwardArgs<>& a);
OpCost ComputeCost(const kernels::RecordWeightGradientsArgs<>& a);
OpCost ComputeCost(const kernels::RecordScatterAddArgs<>& a);
OpCost ComputeCost(const kernels::AddRowsArgs<>& a);
OpCost ComputeCost(const kernels::SquaresOfRowsArgs<>& a);
OpCost ComputeCost(const kernels::AccumulateRowsOnGridArgs<>& a);
OpCost ComputeCost(const kernels::AccumulateSlotsOnGridArgs<>& a);
OpCost ComputeCost(const kernels::ScoreTilesArgs<>& a);
OpCost ComputeCost(const kernels::TopKArgs& a);
OpCost ComputeCost(const kernels::NoisedSumArgs<>& a);
OpCost ComputeCost(const kernels::AddSquaredMovesArgs<>& a);

// Returns the bytes of `count` numbers of four bytes, each read or written once.
inline double Floats(double count) { return 4 * count; }
inline double Product(size_t a, size_t b) { return static_cast<double>(a) * static_cast<double>(b); }
// Returns how often an output is touched: written, or read and written.
inline double Touches(kernels::Store store) { return store == kernels::Store::kAdd ? 2 : 1; }
inline size_t NumRecords(const kernels::Segments& records) {
  return records.begin_B == nullptr ? 1 : records.num_records;
}

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_ROOFLINE_OP_COST_H_
