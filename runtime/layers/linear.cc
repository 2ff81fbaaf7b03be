#include "runtime/layers/linear.h"

#include <algorithm>

#include "runtime/layers/parts.h"
#include "runtime/layers/dequantised.h"

namespace wisp {
namespace {

// The host's op tables pack panels of 8 to 64 rows, one after another. So rows from a multiple of kPackedRows on lie as
// if they had been packed alone. Tables whose packing owns memory are different; threads never share those.
constexpr size_t kPackedRows = 192;

}  // namespace

LinearParameters FindLinear(const Architecture& a, const std::vector<ParameterSpec>& parameters, ParameterRole weight,
                            ParameterRole bias, uint32_t block) {
  LinearParameters found{.weight = RequireParameter(parameters, weight, block),
                         .bias = FindParameter(parameters, bias, block)};
  const std::optional<AdapterRoles> roles = FindAdapterRoles(weight);
  if (!a.adapter || !roles) return found;
  const std::optional<size_t> down = FindParameter(parameters, roles->down, block);
  if (!down) return found;  // not a matrix of the adapter
  found.adapter = {.down = *down, .up = RequireParameter(parameters, roles->up, block), .scale = a.adapter->scale()};
  return found;
}

Linear::Linear(const std::vector<ParameterSpec>& parameters, const LinearParameters& which, BufferPlan& plan,
               size_t first_key_row)
    : which_(which),
      n_(parameters[which.weight].rows),
      k_(parameters[which.weight].cols),
      first_key_row_(first_key_row),
      dbias_(which.bias ? plan.ReserveBackward<float>(plan.max_records * n_) : Slot<float>()) {
  if (which.adapter) adapter_.emplace(parameters, *which.adapter, first_key_row, plan);
}

void Linear::Prepare(const RecordContext& context, const float* x, size_t rows) const {
  if (adapter_) adapter_->Down(context, x, rows);
}

void Linear::Forward(const RecordContext& context, const float* x, float* y, size_t rows) const {
  Prepare(context, x, rows);
  if (first_key_row_ > 0) ForwardQueries(context, x, {.y = y, .ldy = n_}, {.first = 0, .count = rows});
  ForwardKeys(context, x, {.y = y + first_key_row_, .ldy = n_}, rows);
}

void Linear::Multiply(const RecordContext& context, const Part& part, const float* x, const Output& out,
                      size_t rows) const {
  const Weights& weights = context.weights;
  const kernels::PanelMatrix panels = weights.panels_at(which_.weight);
  const bool packed = panels.data == nullptr;
  // Panels of float32 are multiplied directly, exactly as floats are.
  if (weights.plan->dequantised() && !packed && panels.bits != kernels::PanelBits::kThirtyTwo)
    return MultiplyDequantised(context, part, x, out, rows);
  const float* all_bias = weights.at(which_.bias);
  const float* bias = all_bias == nullptr ? nullptr : all_bias + part.first;
  const size_t step = packed ? kPackedRows : kernels::PanelRows(panels.bits);
  const double adds = static_cast<double>(rows * step * k_) * (rows == 1 ? kLoneRowAdds : 1);
  // If threads share the rows, each calls this without helpers. Otherwise helpers share columns, of few rows.
  ForEachRange(context.helpers, (part.n + step - 1) / step, adds, [&](size_t begin, size_t end) {
    const size_t first = begin * step, n = std::min(end * step, part.n) - first;
    const float* bias_of_range = bias == nullptr ? nullptr : bias + first;
    if (packed) {
      return weights.ops->linear_forward(
          {.x_RK = x,
           .ldx = k_,
           .packed = part.packed + (first == 0 ? 0 : weights.ops->packed_size(first, k_)),
           .bias_N = bias_of_range,
           .y_RN = out.y + first,
           .ldy = out.ldy,
           .rows = rows,
           .n = n,
           .k = k_,
           .store = kernels::Store::kAssign});
    }
    weights.ops->multiply_panels({.w = panels,
                                  .first = part.first + first,
                                  .x_RK = x,
                                  .ldx = k_,
                                  .bias_N = bias_of_range,
                                  .y_RN = out.y + first,
                                  .ldy = out.ldy,
                                  .rows = rows,
                                  .n = n,
                                  .k = k_,
                                  .store = kernels::Store::kAssign});
  });
}

// Training with panels of integers: multiplies the same floats whose gradient Backward computes.
void Linear::MultiplyDequantised(const RecordContext& context, const Part& part, const float* x, const Output& out,
                                 size_t rows) const {
  const Weights& weights = context.weights;
  const float* bias = weights.at(which_.bias);
  ForEachTile(part.n, [&](size_t first, size_t n) {
    const float* packed = PackedRows(context, which_.weight, part.first + first, n);
    weights.ops->linear_forward({.x_RK = x,
                                 .ldx = k_,
                                 .packed = packed,
                                 .bias_N = bias == nullptr ? nullptr : bias + part.first + first,
                                 .y_RN = out.y + first,
                                 .ldy = out.ldy,
                                 .rows = rows,
                                 .n = n,
                                 .k = k_,
                                 .store = kernels::Store::kAssign});
  });
}

void Linear::ForwardQueries(const RecordContext& context, const float* x, const Output& out,
                            const RowRange& rows) const {
  const Part queries{context.weights.packed_at(which_.weight), 0, first_key_row_};
  float* y = out.y + rows.first * out.ldy;
  Multiply(context, queries, x + rows.first * k_, {.y = y, .ldy = out.ldy}, rows.count);
  if (adapter_) adapter_->UpQueries(context, y, out.ldy, rows);
}

void Linear::ForwardKeys(const RecordContext& context, const float* x, const Output& out, size_t rows) const {
  const Part keys{context.weights.packed_keys_at(which_.weight), first_key_row_, n_ - first_key_row_};
  Multiply(context, keys, x, out, rows);
  if (adapter_) adapter_->UpKeys(context, out.y, out.ldy, rows);
}

void Linear::Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                      FactorSink& sink) const {
  const kernels::OpTable& ops = context.ops();
  const Segments& records = context.records;
  if (sink.Wants(which_.weight)) {
    sink.Outer({.parameter = which_.weight,
                .first_row = 0,
                .dy_RN = dy,
                .lddy = n_,
                .x_RK = x,
                .ldx = k_,
                .records = records,
                .n = n_,
                .k = k_});
  }
  if (which_.bias && sink.Wants(*which_.bias)) {
    float* dbias = context.backward(dbias_);
    ops.column_sum({.x_RN = dy,
                    .ldx = n_,
                    .out_N = dbias,
                    .rows = records.rows,
                    .n = n_,
                    .scale = 1.0f,
                    .store = kernels::Store::kAssign,
                    .records = records});
    sink.Vector({.parameter = *which_.bias, .first = 0, .g_BN = dbias, .n = n_});
  }
  BackwardInput(context, dy, dx, store);
  if (adapter_) adapter_->Backward(context, x, dy, dx, sink);
}

// Floats are read in place, in one piece. A tile of converted rows is a block of the same sum.
void Linear::BackwardInput(const RecordContext& context, const float* dy, float* dx, kernels::Store store) const {
  const auto of_rows = [&](const float* w, size_t first, size_t n) {
    context.ops().linear_backward_input({.dy_RN = dy + first,
                                         .lddy = n_,
                                         .w_NK = w,
                                         .ldw = k_,
                                         .dx_RK = dx,
                                         .lddx = k_,
                                         .rows = context.rows(),
                                         .n = n,
                                         .k = k_,
                                         .store = first == 0 ? store : kernels::Store::kAdd});
  };
  if (const float* w = context.weights.at(which_.weight)) return of_rows(w, 0, n_);
  ForEachTile(n_, [&](size_t first, size_t n) { of_rows(FloatRows(context, which_.weight, first, n), first, n); });
}

// Algorithms, section 3: var_out = var_in (W o W)^T + s^2 sum_k (mean_k^2 + var_k).
void Linear::Variance(const RecordContext& context, const float* x, const float* var_x, float* var_y, size_t n) const {
  const Weights& weights = context.weights;
  const size_t rows = context.rows();
  if (n == 0) n = n_ - first_key_row_;
  weights.ops->linear_forward({.x_RK = var_x,
                               .ldx = k_,
                               .packed = weights.packed_squares_at(which_.weight),
                               .bias_N = nullptr,
                               .y_RN = var_y,
                               .ldy = n,
                               .rows = rows,
                               .n = n,
                               .k = k_,
                               .store = kernels::Store::kAssign});
  weights.ops->linear_variance({.mean_RK = x,
                                .ldmean = k_,
                                .variance_RK = var_x,
                                .ldvariance = k_,
                                .y_RN = var_y,
                                .ldy = n,
                                .rows = rows,
                                .n = n,
                                .k = k_,
                                .weight_variance = weights.variance(which_.weight),
                                .bias_variance = weights.variance(which_.bias)});
}

}  // namespace wisp
