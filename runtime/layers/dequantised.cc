#include "runtime/layers/dequantised.h"

namespace wisp {

DequantisedSpace ReserveDequantised(const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters,
                                    std::span<const StoredTensor> stored, BufferPlan& plan) {
  size_t floats = 0, packed = 0;
  for (size_t i = 0; i < std::min(stored.size(), parameters.size()); ++i) {
    const ParameterSpec& p = parameters[i];
    if (stored[i].floats != nullptr || p.shape == ParameterShape::kVector) continue;
    const size_t rows = std::min<size_t>(kDequantisedRows, p.rows);
    floats = std::max(floats, rows * p.cols);
    const kernels::PanelMatrix panels = stored[i].panels;
    const bool is_multiplied = panels.data != nullptr && panels.bits == kernels::PanelBits::kThirtyTwo &&
                               p.shape == ParameterShape::kMatrix;  // readable in place
    if (!is_multiplied) packed = std::max(packed, ops.packed_size(rows, p.cols));
  }
  return {.rows = plan.forward.Reserve<float>(floats), .packed = plan.forward.Reserve<float>(packed)};
}

const float* FloatRows(const RecordContext& context, size_t parameter, size_t first, size_t n) {
  const Weights& weights = context.weights;
  const size_t k = (*weights.parameters)[parameter].cols;
  if (const float* floats = weights.at(parameter)) return floats + first * k;
  float* rows = context.forward(weights.plan->dequantised()->rows);
  if (const kernels::Half* halves = weights.halves_at(parameter)) {
    weights.ops->scale_half(
        {.x = halves + first * k, .y = rows, .n = n * k, .a = 1.0f, .store = kernels::Store::kAssign});
  } else {
    kernels::WidenPanels(weights.source.panels(parameter), first, n, k, rows);
  }
  return rows;
}

const float* PackedRows(const RecordContext& context, size_t parameter, size_t first, size_t n) {
  const size_t k = (*context.weights.parameters)[parameter].cols;
  float* packed = context.forward(context.weights.plan->dequantised()->packed);
  context.ops().pack_weights(
      {.w_NK = FloatRows(context, parameter, first, n), .ldw = k, .packed = packed, .n = n, .k = k});
  return packed;
}

}  // namespace wisp
