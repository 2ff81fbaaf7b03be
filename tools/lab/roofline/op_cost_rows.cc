// The costs of rows and float16 conversions, heads, records' gradients, and the end of a step.
#include <utility>

#include "tools/lab/roofline/op_cost.h"

namespace wisp::tools {

OpCost ComputeCost(const kernels::ClearArgs& a) { return {.bytes = static_cast<double>(a.bytes)}; }

// One word serves four numbers. It takes a mix of four operations, and each number a comparison.
OpCost ComputeCost(const kernels::DrawKeepArgs& a) {
  const double n = Product(a.records.rows, a.width);
  return {.bytes = n, .operations = 4 * n};
}

OpCost ComputeCost(const kernels::EmbedForwardArgs<>& a) {
  const double n = Product(a.rows, a.d), tables = a.positions_TD != nullptr ? 2 : 1;
  return {.bytes = Floats((1 + tables) * n + static_cast<double>(a.rows)), .operations = tables * n};
}

OpCost ComputeCost(const kernels::EmbedHalfArgs& a) {
  const double n = Product(a.rows, a.d);
  const double read = (a.table_MD != nullptr ? 4 : 2) + (a.positions_TD != nullptr        ? 4
                                                         : a.half_positions_TD != nullptr ? 2
                                                                                          : 0);
  return {.bytes = (4 + read) * n + Floats(static_cast<double>(a.rows)), .operations = 2 * n};
}

OpCost ComputeCost(const kernels::EmbedPanelsArgs& a) {
  const double n = Product(a.rows, a.d);
  const size_t rows = kernels::PanelRows(a.table.bits);  // of a panel
  const double read = kernels::PanelMatrixBytes(a.table.bits, rows, a.d) / static_cast<double>(rows * a.d);
  const double positions = a.positions_TD != nullptr ? 4 : a.half_positions_TD != nullptr ? 2 : 0;
  return {.bytes = (4 + read + positions) * n + Floats(static_cast<double>(a.rows)), .operations = 2 * n};
}

OpCost ComputeCost(const kernels::MultiplyPanelsArgs& a) {
  const double rows = static_cast<double>(a.rows), n = static_cast<double>(a.n), bias = a.bias_N != nullptr ? 1 : 0;
  return {.bytes = static_cast<double>(kernels::PanelMatrixBytes(a.w.bits, a.n, a.k)) +
                   Floats(rows * static_cast<double>(a.k) + Touches(a.store) * rows * n + bias * n),
          .operations = 2 * rows * Product(a.n, a.k)};
}

OpCost ComputeCost(const kernels::EmbedVarianceArgs<>& a) {
  return {.bytes = Floats(Product(a.rows, a.d) + 2.0 * a.rows), .operations = 3.0 * a.rows};
}

OpCost ComputeCost(const kernels::PositionIdsArgs& a) { return {.bytes = Floats(2.0 * a.records.rows)}; }

OpCost ComputeCost(const kernels::ScatterAddArgs<>& a) {
  const double n = Product(a.rows, a.d);
  return {.bytes = Floats(3 * n + static_cast<double>(a.rows)), .operations = 2 * n};
}

OpCost ComputeCost(const kernels::CopyRowsArgs<>& a) {
  const double lists = (a.from_R != nullptr ? 1 : 0) + (a.to_R != nullptr ? 1 : 0);
  return {.bytes = Floats(2 * Product(a.rows, a.d) + lists * static_cast<double>(a.rows))};
}

OpCost ComputeCost(const kernels::GatherColumnsArgs<>& a) {
  return {.bytes = Floats(2 * Product(a.rows, a.columns) + static_cast<double>(a.columns))};
}

OpCost ComputeCost(const kernels::ScaleHalfArgs& a) {
  const double n = static_cast<double>(a.n);
  return {.bytes = 2 * n + Floats(Touches(a.store) * n), .operations = Touches(a.store) * n};
}

OpCost ComputeCost(const kernels::MultiplyHalfArgs& a) {
  const double bias = a.bias_N != nullptr ? 1 : 0;
  return {.bytes = 2 * Product(a.n, a.k) + Floats(static_cast<double>(a.k) + (1 + bias) * static_cast<double>(a.n)),
          .operations = 2 * Product(a.n, a.k)};
}

OpCost ComputeCost(const kernels::SoftmaxStartArgs<>& a) {
  return {.bytes = Floats((a.none_R != nullptr ? 6.0 : 5.0) * static_cast<double>(a.records.rows))};
}

OpCost ComputeCost(const kernels::SoftmaxStatsArgs<>& a) {
  const double n = Product(a.rows, a.n), written = a.exp_RN != nullptr ? 1 : 0;
  return {.bytes = Floats((1 + written) * n + 6.0 * a.rows), .operations = 4 * n};
}

OpCost ComputeCost(const kernels::CrossEntropyLossArgs<>& a) {
  const double rows = static_cast<double>(a.records.rows);
  return {.bytes = Floats(5 * rows) + 8.0 * NumRecords(a.records), .operations = 5 * rows};
}

OpCost ComputeCost(const kernels::CrossEntropyGradientArgs<>& a) {
  const double n = Product(a.rows, a.n), of_rows = a.max_R != nullptr ? 4 : 3;
  return {.bytes = Floats(2 * n + of_rows * static_cast<double>(a.rows)), .operations = 4 * n};
}

OpCost ComputeCost(const kernels::SoftmaxGradientArgs<>& a) {
  const double n = Product(a.rows, a.n);
  return {.bytes = Floats(2 * n + 5.0 * static_cast<double>(a.rows)), .operations = 8 * n};
}

OpCost ComputeCost(const kernels::TargetLogitsArgs<>& a) {
  const double n = Product(a.rows, a.k);
  return {.bytes = Floats(2 * n + 2.0 * a.rows + static_cast<double>(a.n)), .operations = 2 * n};
}

OpCost ComputeCost(const kernels::TargetGradientArgs<>& a) {
  const double n = Product(a.rows, a.k);
  return {.bytes = Floats(5 * n + 4.0 * a.rows), .operations = 3 * n};
}

OpCost ComputeCost(const kernels::ClassCrossEntropyArgs<>& a) {
  const double n = Product(a.rows, a.n), written = a.dz_RN != nullptr ? 1 : 0;
  return {.bytes = Floats((1 + written) * n + 3.0 * a.rows), .operations = 4 * n};
}

OpCost ComputeCost(const kernels::ClipRowsArgs<>& a) {
  const double n = Product(a.rows, a.d), noise = a.noise_RD != nullptr ? 1 : 0;
  return {.bytes = Floats((2 + noise) * n), .operations = (3 + noise) * n};
}

OpCost ComputeCost(const kernels::ClipRowsBackwardArgs<>& a) {
  const double n = Product(a.rows, a.d), tanh = a.before == kernels::Before::kTanh ? 2 : 0;
  return {.bytes = Floats(3 * n), .operations = (7 + tanh) * n};
}

OpCost ComputeCost(const kernels::MeanRowsArgs<>& a) {
  const double n = Product(a.records.rows, a.d), means = Product(NumRecords(a.records), a.d);
  return {.bytes = Floats(n + means), .operations = n + means};
}

OpCost ComputeCost(const kernels::MeanRowsBackwardArgs<>& a) {
  const double n = Product(a.records.rows, a.d);
  return {.bytes = Floats(n + Product(NumRecords(a.records), a.d)), .operations = n};
}

OpCost ComputeCost(const kernels::RecordWeightGradientsArgs<>& a) {
  const size_t rows = a.records.rows;
  const double gradients = Product(NumRecords(a.records), a.n) * static_cast<double>(a.k);
  return {.bytes = Floats(Product(rows, a.n) + Product(rows, a.k) + 2 * gradients),
          .operations = 2 * Product(rows, a.n) * static_cast<double>(a.k)};
}

OpCost ComputeCost(const kernels::RecordScatterAddArgs<>& a) {
  const double n = Product(a.records.rows, a.d);
  return {.bytes = Floats(3 * n + static_cast<double>(a.records.rows)), .operations = 2 * n};
}

OpCost ComputeCost(const kernels::AddRowsArgs<>& a) {
  const double n = Product(a.rows, a.n);
  return {.bytes = Floats(3 * n), .operations = n};
}

OpCost ComputeCost(const kernels::SquaresOfRowsArgs<>& a) {
  const double n = Product(a.rows, a.n);
  return {.bytes = Floats(n) + 8.0 * a.rows, .operations = 2 * n};
}

// Rows whose scale is 0 are not read. The sum is read and written once.
OpCost ComputeCost(const kernels::AccumulateRowsOnGridArgs<>& a) {
  size_t rows = 0;
  for (size_t b = 0; b < a.rows; ++b) rows += a.scale_B[b] != 0 ? 1 : 0;
  return {.bytes = Floats(Product(rows, a.n)) + 16.0 * a.n + 12.0 * a.rows, .operations = 5 * Product(rows, a.n)};
}

// Reads every row of a record that is not left out, and the sum. Rows without a slot are counted too, since the slots
// are not known here.
OpCost ComputeCost(const kernels::AccumulateSlotsOnGridArgs<>& a) {
  size_t rows = 0;
  for (size_t b = 0; b < a.rows; ++b) rows += a.scale_B[b] != 0 ? a.slots : 0;
  const double n = Product(rows, a.d);
  return {.bytes = Floats(n + static_cast<double>(rows)) + 16 * n + 12.0 * a.rows, .operations = 5 * n};
}

OpCost ComputeCost(const kernels::ScoreTilesArgs<>& a) {
  const double bias = a.bias_N != nullptr ? static_cast<double>(a.n) : 0;
  return {.bytes = Floats(Product(a.rows, a.k) + Product(a.n, a.k) + bias + Product(a.rows, a.n)),
          .operations = 2 * Product(a.rows, a.n) * static_cast<double>(a.k)};
}

OpCost ComputeCost(const kernels::TopKArgs& a) {
  const double n = Product(a.rows, a.n);
  return {.bytes = Floats(n) + n / 8 + 8 * Product(a.rows, a.k + 1), .operations = n};
}

OpCost ComputeCost(const kernels::NoisedSumArgs<>& a) {
  const double n = static_cast<double>(a.n);
  return {.bytes = 20 * n, .operations = 3 * n};
}

OpCost ComputeCost(const kernels::AddSquaredMovesArgs<>& a) {
  const double n = a.v_RN != nullptr ? Product(a.rows, a.n) : 0;
  return {.bytes = Floats(n + 2.0 * a.rows), .operations = 7 * n + 3.0 * a.rows};
}

}  // namespace wisp::tools
