#include "runtime/layers/adapter.h"

namespace wisp {

using kernels::Store;

Adapter::Adapter(const std::vector<ParameterSpec>& parameters, const AdapterParameters& which, size_t first_key_row,
                 BufferPlan& plan)
    : which_(which),
      n_(parameters[which.up].rows),
      k_(parameters[which.down].cols),
      rank_(parameters[which.down].rows),
      first_key_row_(first_key_row),
      down_(plan.ReserveInTurn<float>(plan.max_rows() * rank_)),
      ddown_(plan.ReserveBackward<float>(plan.max_rows() * rank_)) {}

void Adapter::Down(const RecordContext& context, const float* x, size_t rows) const {
  float* down = context.forward(down_);
  context.ops().linear_forward({.x_RK = x,
                                .ldx = k_,
                                .packed = context.weights.packed_at(which_.down),
                                .bias_N = nullptr,
                                .y_RN = down,
                                .ldy = rank_,
                                .rows = rows,
                                .n = rank_,
                                .k = k_,
                                .store = Store::kAssign});
  context.ops().scale({.x = down, .y = down, .n = rows * rank_, .a = which_.scale, .store = Store::kAssign});
}

void Adapter::UpQueries(const RecordContext& context, float* y, size_t ldy, const RowRange& rows) const {
  context.ops().linear_forward({.x_RK = context.forward(down_) + rows.first * rank_,
                                .ldx = rank_,
                                .packed = context.weights.packed_at(which_.up),
                                .bias_N = nullptr,
                                .y_RN = y,
                                .ldy = ldy,
                                .rows = rows.count,
                                .n = first_key_row_,
                                .k = rank_,
                                .store = Store::kAdd});
}

void Adapter::UpKeys(const RecordContext& context, float* y, size_t ldy, size_t rows) const {
  context.ops().linear_forward({.x_RK = context.forward(down_),
                                .ldx = rank_,
                                .packed = context.weights.packed_keys_at(which_.up),
                                .bias_N = nullptr,
                                .y_RN = y,
                                .ldy = ldy,
                                .rows = rows,
                                .n = n_ - first_key_row_,
                                .k = rank_,
                                .store = Store::kAdd});
}

void Adapter::Backward(const RecordContext& context, const float* x, const float* dy, float* dx,
                       FactorSink& sink) const {
  const kernels::OpTable& ops = context.ops();
  const size_t rows = context.rows();
  float* ddown = context.backward(ddown_);
  OuterFactor factor{.parameter = which_.up,
                     .first_row = 0,
                     .dy_RN = dy,
                     .lddy = n_,
                     .x_RK = context.forward(down_),
                     .ldx = rank_,
                     .records = context.records,
                     .n = n_,
                     .k = rank_};
  if (sink.Wants(which_.up)) sink.Outer(factor);
  ops.linear_backward_input({.dy_RN = dy,
                             .lddy = n_,
                             .w_NK = context.weights.at(which_.up),
                             .ldw = rank_,
                             .dx_RK = ddown,
                             .lddx = rank_,
                             .rows = rows,
                             .n = n_,
                             .k = rank_,
                             .store = Store::kAssign});
  ops.scale({.x = ddown, .y = ddown, .n = rows * rank_, .a = which_.scale, .store = Store::kAssign});
  factor = {.parameter = which_.down,
            .first_row = 0,
            .dy_RN = ddown,
            .lddy = rank_,
            .x_RK = x,
            .ldx = k_,
            .records = context.records,
            .n = rank_,
            .k = k_};
  if (sink.Wants(which_.down)) sink.Outer(factor);
  ops.linear_backward_input({.dy_RN = ddown,
                             .lddy = rank_,
                             .w_NK = context.weights.at(which_.down),
                             .ldw = k_,
                             .dx_RK = dx,
                             .lddx = k_,
                             .rows = rows,
                             .n = rank_,
                             .k = k_,
                             .store = Store::kAdd});
}

std::vector<float> MergedWeights(const Architecture& a, std::span<const float> weights) {
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  const size_t base_size = FlatSize(ListParameters(WithoutAdapter(a)));
  std::vector<float> merged(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(base_size));
  for (const ParameterSpec& p : parameters) {
    const std::optional<AdapterRoles> roles = FindAdapterRoles(p.role);
    const std::optional<size_t> down = roles ? FindParameter(parameters, roles->down, p.block) : std::nullopt;
    if (!down) continue;
    const ParameterSpec &a_spec = parameters[*down],
                        &b_spec = parameters[RequireParameter(parameters, roles->up, p.block)];
    for (size_t row = 0; row < p.rows; ++row) {
      for (size_t column = 0; column < p.cols; ++column) {
        double sum = 0;
        for (size_t r = 0; r < a_spec.rows; ++r) {
          sum += static_cast<double>(weights[b_spec.offset + row * a_spec.rows + r]) *
                 static_cast<double>(weights[a_spec.offset + r * p.cols + column]);
        }
        merged[p.offset + row * p.cols + column] += static_cast<float>(sum * static_cast<double>(a.adapter->scale()));
      }
    }
  }
  return merged;
}

}  // namespace wisp
