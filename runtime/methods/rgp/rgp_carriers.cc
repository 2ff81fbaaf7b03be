#include "runtime/methods/rgp/rgp_carriers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace wisp {
namespace {

using kernels::Store;

// If less than this share of a vector's length remains, the vector counts as a combination of others: the rest is
// rounding error.
constexpr double kDependent = 1e-4;

// Small tables often have fewer rows than the rank, so projecting gains nothing. The paper's code trains its head in
// full too.
RgpTrain FullIfAny(RgpTrain chosen) { return chosen == RgpTrain::kFrozen ? RgpTrain::kFrozen : RgpTrain::kFull; }

RgpTrain ChooseRgpTrain(const RgpOptions& o, const ParameterSpec& p) {
  if (p.shape == ParameterShape::kVector) return o.vectors;
  if (p.role == ParameterRole::kTypeTable) return FullIfAny(o.positions);
  if (p.role == ParameterRole::kClassWeight) return FullIfAny(o.matrices);
  if (p.shape == ParameterShape::kMatrix) return o.matrices;
  return p.role == ParameterRole::kPositionTable ? o.positions : o.item_tables;
}

double Dot(const float* a, const float* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// Subtracts the components along the first `before` vectors. Returns the length that remains.
double Reduce(float* v, size_t index, size_t length) {
  float* x = v + index * length;
  for (size_t j = 0; j < index; ++j) {
    const double along = Dot(x, v + j * length, length);
    for (size_t i = 0; i < length; ++i) x[i] = static_cast<float>(x[i] - along * v[j * length + i]);
  }
  return std::sqrt(Dot(x, x, length));
}

// to [cols, rows] = transpose of from [rows, cols]
void Transpose(const float* from, size_t rows, size_t cols, float* to) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) to[c * rows + r] = from[r * cols + c];
  }
}

}  // namespace

void Orthonormalise(float* v, size_t n, size_t length, const std::function<float()>& normal) {
  for (size_t index = 0; index < n; ++index) {
    float* x = v + index * length;
    double before = std::sqrt(Dot(x, x, length));
    for (double left = 0;;) {
      if (std::isfinite(before) && before > 1e-30) {
        for (size_t i = 0; i < length; ++i) x[i] = static_cast<float>(x[i] / before);
        if (Reduce(v, index, length) > kDependent && (left = Reduce(v, index, length)) > kDependent) {
          for (size_t i = 0; i < length; ++i) x[i] = static_cast<float>(x[i] / left);
          break;
        }
      }
      for (size_t i = 0; i < length; ++i) x[i] = normal();
      before = std::sqrt(Dot(x, x, length));
    }
  }
}

bool Trains(const RgpOptions& o, const ParameterSpec& p) { return ChooseRgpTrain(o, p) != RgpTrain::kFrozen; }

Status Validate(const RgpOptions& o, const std::vector<ParameterSpec>& parameters, const TrainedSet& trained) {
  if (o.vectors == RgpTrain::kProjected)
    return InvalidArgument("rgp: vectors cannot be projected, allowed are full and frozen");
  if (o.power_iterations < 1 || o.power_iterations > 100) {
    return InvalidArgument("rgp: power_iterations is ", o.power_iterations, ", allowed are 1 to 100");
  }
  // also checked if nothing is projected, because memory is allocated for this rank
  if (o.rank < 1 || o.rank > kMaxWidth) {
    return InvalidArgument("rgp: rank is ", o.rank, ", allowed are 1 to ", kMaxWidth);
  }
  for (uint32_t i : trained.parameters()) {
    const ParameterSpec& p = parameters[i];
    const RgpTrain train = ChooseRgpTrain(o, p);
    const uint32_t smaller = std::min(p.rows, p.cols);
    if (train == RgpTrain::kProjected && o.rank > smaller) {
      return InvalidArgument("rgp: rank is ", o.rank, ", allowed are 1 to ", smaller, ", the smaller side of ", p.name,
                             " [", p.rows, ", ", p.cols, "]");
    }
  }
  return trained.size() > 0 ? OkStatus() : InvalidArgument("rgp: every parameter is frozen, nothing is left to train");
}

uint64_t RgpReleaseSize(const RgpOptions& o, const std::vector<ParameterSpec>& parameters, const TrainedSet& trained) {
  uint64_t size = 0;
  for (uint32_t i : trained.parameters()) {
    const ParameterSpec& p = parameters[i];
    const RgpTrain train = ChooseRgpTrain(o, p);
    if (train == RgpTrain::kFull) size += p.size();
    if (train == RgpTrain::kProjected) size += uint64_t{o.rank} * (uint64_t{p.rows} + p.cols);
  }
  return size;
}

RgpCarriers::Plan RgpCarriers::GetPlan(const std::vector<ParameterSpec>& parameters, const TrainedSet& trained,
                                       const RgpOptions& options, const kernels::Memory& memory) {
  Plan plan{.entries = std::vector<Entry>(parameters.size())};
  for (uint32_t i : trained.parameters()) {
    const ParameterSpec& p = parameters[i];
    Entry& entry = plan.entries[i];
    entry.train = ChooseRgpTrain(options, p);
    const bool projected = entry.train == RgpTrain::kProjected;
    const size_t left = projected ? size_t{p.rows} * options.rank : p.size(),
                 right = projected ? size_t{options.rank} * p.cols : 0;
    entry.left_offset = plan.release_size;
    entry.right_offset = entry.left_offset + AlignedSize(left);
    plan.release_size = entry.right_offset + AlignedSize(right);
    if (!projected) continue;
    plan.delta = std::max(plan.delta, p.size());
    plan.left = std::max(plan.left, left);
    plan.right = std::max(plan.right, right);
    plan.size_bytes += AlignedArray<float>::AllocatedBytes(left) + 3 * AlignedArray<float>::AllocatedBytes(right);
  }
  for (size_t size : {plan.delta, plan.left, size_t{options.rank} * options.rank})
    plan.size_bytes += AlignedArray<float>::AllocatedBytes(size);
  if (memory.is_host()) return plan;
  for (size_t size : {plan.left, plan.right, plan.right}) plan.size_bytes += AlignedArray<float>::AllocatedBytes(size);
  return plan;
}

RgpCarriers::RgpCarriers(const kernels::Device& device, const std::vector<ParameterSpec>& parameters,
                         const TrainedSet& trained, const RgpOptions& options)
    : device_(device),
      ops_(device.ops),
      host_ops_(device.memory.is_host() ? device.ops : &kernels::BestOps()),
      parameters_(&parameters),
      trained_(&trained),
      options_(options),
      left_(parameters.size()),
      right_(parameters.size()),
      right_transposed_(parameters.size()),
      remainder_(parameters.size()) {
  Plan plan = GetPlan(parameters, trained, options, device.memory);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (plan.entries[i].train != RgpTrain::kProjected) continue;
    left_[i] = AlignedArray<float>(size_t{parameters[i].rows} * options.rank, device.memory);
    for (auto* array : {&right_[i], &right_transposed_[i], &remainder_[i]})
      *array = AlignedArray<float>(size_t{options.rank} * parameters[i].cols, device.memory);
  }
  release_size_ = plan.release_size;
  num_coordinates_ = RgpReleaseSize(options, parameters, trained);
  delta_ = AlignedArray<float>(plan.delta);
  left_transposed_ = AlignedArray<float>(plan.left);
  if (!device.memory.is_host()) {
    made_left_ = AlignedArray<float>(plan.left);
    made_right_ = AlignedArray<float>(plan.right);
    made_right_transposed_ = AlignedArray<float>(plan.right);
  }
  both_ = AlignedArray<float>(size_t{options.rank} * options.rank, device.memory);
  entries_ = std::move(plan.entries);
}

RgpCarriers::Carriers RgpCarriers::MadeAt(size_t parameter) const {
  if (!device_.memory.is_host()) return {made_left_.data(), made_right_.data(), made_right_transposed_.data()};
  return {left_[parameter].data(), right_[parameter].data(), right_transposed_[parameter].data()};
}

void RgpCarriers::Update(std::span<const float> weights, std::span<const float> start, uint64_t step,
                         const std::function<float()>& normal, size_t first_held) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].train != RgpTrain::kProjected) continue;
    const ParameterSpec& p = (*parameters_)[i];
    const float* w = weights.data() + (p.offset - first_held);
    if (step >= options_.warmup_steps) {
      host_ops_->scale({.x = w, .y = delta_.data(), .n = p.size(), .a = 1.0f, .store = Store::kAssign});
      host_ops_->scale({.x = start.data() + trained_->offset(i),
                        .y = delta_.data(),
                        .n = p.size(),
                        .a = -1.0f,
                        .store = Store::kAdd});
      w = delta_.data();
    }
    Iterate(p, w, normal, MadeAt(i));
    if (!device_.memory.is_host()) CopyToDevice(i);
  }
}

void RgpCarriers::CopyToDevice(size_t parameter) {
  const Carriers made = MadeAt(parameter);
  const auto copy = [&](const AlignedArray<float>& to, const float* from) {
    device_.memory.copy_in(to.data(), from, to.size() * sizeof(float));
  };
  copy(left_[parameter], made.left);
  copy(right_[parameter], made.right);
  copy(right_transposed_[parameter], made.right_transposed);
}

// K iterations of L = orthonormal columns of D R^T, R = L^T D; at the end R = orthonormal rows.
void RgpCarriers::Iterate(const ParameterSpec& p, const float* d, const std::function<float()>& normal,
                          const Carriers& carriers) {
  const size_t rows = p.rows, cols = p.cols, r = options_.rank;
  const auto [left, right, right_t] = carriers;
  for (size_t i = 0; i < r * cols; ++i) right[i] = normal();
  for (uint32_t k = 0; k < options_.power_iterations; ++k) {
    Transpose(right, r, cols, right_t);
    host_ops_->linear_backward_input({.dy_RN = d,
                                      .lddy = cols,
                                      .w_NK = right_t,
                                      .ldw = r,
                                      .dx_RK = left,
                                      .lddx = r,
                                      .rows = rows,
                                      .n = cols,
                                      .k = r,
                                      .store = Store::kAssign});
    Transpose(left, rows, r, left_transposed_.data());
    Orthonormalise(left_transposed_.data(), r, rows, normal);
    Transpose(left_transposed_.data(), r, rows, left);
    host_ops_->linear_backward_weight({.dy_RN = left,
                                       .lddy = r,
                                       .x_RK = d,
                                       .ldx = cols,
                                       .dw_NK = right,
                                       .lddw = cols,
                                       .rows = rows,
                                       .n = r,
                                       .k = cols,
                                       .scale = 1.0f,
                                       .store = Store::kAssign});
  }
  Orthonormalise(right, r, cols, normal);
  Transpose(right, r, cols, right_t);
}

void RgpCarriers::Prepare(std::span<const float> released) {
  const size_t r = options_.rank;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.train != RgpTrain::kProjected) continue;
    const ParameterSpec& p = (*parameters_)[i];
    const float *g_left = released.data() + entry.left_offset, *g_right = released.data() + entry.right_offset;
    ops_->linear_backward_weight({.dy_RN = left(i),
                                  .lddy = r,
                                  .x_RK = g_left,
                                  .ldx = r,
                                  .dw_NK = both_.data(),
                                  .lddw = r,
                                  .rows = p.rows,
                                  .n = r,
                                  .k = r,
                                  .scale = -1.0f,
                                  .store = Store::kAssign});
    ops_->scale({.x = g_right, .y = remainder_[i].data(), .n = r * p.cols, .a = 1.0f, .store = Store::kAssign});
    ops_->linear_backward_input({.dy_RN = both_.data(),
                                 .lddy = r,
                                 .w_NK = right(i),
                                 .ldw = p.cols,
                                 .dx_RK = remainder_[i].data(),
                                 .lddx = p.cols,
                                 .rows = r,
                                 .n = r,
                                 .k = p.cols,
                                 .store = Store::kAdd});
  }
}

void RgpCarriers::Gradient(std::span<const float> released, size_t parameter, size_t first_row, size_t num_rows,
                           float* gradient) const {
  const size_t r = options_.rank, d = (*parameters_)[parameter].cols;
  const float* g_left = released.data() + entries_[parameter].left_offset + first_row * r;
  ops_->linear_backward_input({.dy_RN = g_left,
                               .lddy = r,
                               .w_NK = right(parameter),
                               .ldw = d,
                               .dx_RK = gradient,
                               .lddx = d,
                               .rows = num_rows,
                               .n = r,
                               .k = d,
                               .store = Store::kAssign});
  ops_->linear_backward_input({.dy_RN = left(parameter) + first_row * r,
                               .lddy = r,
                               .w_NK = remainder_[parameter].data(),
                               .ldw = d,
                               .dx_RK = gradient,
                               .lddx = d,
                               .rows = num_rows,
                               .n = r,
                               .k = d,
                               .store = Store::kAdd});
}

size_t RgpCarriers::size_bytes() const {
  size_t bytes = both_.allocated_bytes();
  for (const auto* scratch : {&delta_, &left_transposed_, &made_left_, &made_right_, &made_right_transposed_})
    bytes += scratch->allocated_bytes();
  for (const auto* arrays : {&left_, &right_, &right_transposed_, &remainder_}) {
    for (const auto& a : *arrays) bytes += a.allocated_bytes();
  }
  return bytes;
}

}  // namespace wisp
