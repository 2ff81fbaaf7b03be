// Built for speed: a step of every weight.
#include "runtime/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace wisp {

Status Validate(const OptimizerOptions& o) {
  const auto check = [](bool ok, const char* field, float value, const char* allowed) {
    return ok ? OkStatus() : InvalidArgument("optimizer: ", field, " is ", value, ", allowed is ", allowed);
  };
  WISP_RETURN_IF_ERROR(check(std::isfinite(o.learning_rate) && o.learning_rate > 0, "learning_rate", o.learning_rate,
                             "a positive number"));
  WISP_RETURN_IF_ERROR(check(o.beta1 >= 0 && o.beta1 < 1, "beta1", o.beta1, "0 <= beta1 < 1"));
  WISP_RETURN_IF_ERROR(check(o.beta2 >= 0 && o.beta2 < 1, "beta2", o.beta2, "0 <= beta2 < 1"));
  WISP_RETURN_IF_ERROR(check(o.epsilon > 0 && o.epsilon < 1, "epsilon", o.epsilon, "between 0 and 1"));
  WISP_RETURN_IF_ERROR(check(o.momentum >= 0 && o.momentum < 1, "momentum", o.momentum, "0 <= momentum < 1"));
  WISP_RETURN_IF_ERROR(
      check(o.weight_decay >= 0 && o.weight_decay < 1, "weight_decay", o.weight_decay, "0 <= weight_decay < 1"));
  WISP_RETURN_IF_ERROR(check(o.weight_decay == 0 || o.kind != OptimizerKind::kAdam, "weight_decay", o.weight_decay,
                             "0 with adam (adamw decays)"));
  return check(o.final_fraction >= 0 && o.final_fraction <= 1, "final_fraction", o.final_fraction, "0 to 1");
}

float LearningRate(const OptimizerOptions& o, double step, uint64_t num_steps) {
  if (step < o.warmup_steps) return o.learning_rate * static_cast<float>(step + 1) / static_cast<float>(o.warmup_steps);
  if (o.decay == Decay::kConstant || num_steps <= o.warmup_steps) return o.learning_rate;
  const double done = (step - static_cast<double>(o.warmup_steps)) / static_cast<double>(num_steps - o.warmup_steps);
  return o.learning_rate *
         static_cast<float>(1.0 - std::min(1.0, done) * (1.0 - static_cast<double>(o.final_fraction)));
}

Optimizer::Optimizer(const kernels::Device& device, const OptimizerOptions& options, size_t size)
    : ops_(device.ops), is_on_device_(!device.memory.is_host()), options_(options) {
  const bool adam = options.kind != OptimizerKind::kSgd;
  if (adam || options.momentum > 0) first_ = AlignedArray<float>(size, device.memory);
  if (adam) second_ = AlignedArray<float>(size, device.memory);
}

size_t Optimizer::PlanBytes(const OptimizerOptions& options, size_t size) {
  const size_t moments = options.kind != OptimizerKind::kSgd ? 2 : options.momentum > 0 ? 1 : 0;
  return moments * AlignedArray<float>::AllocatedBytes(size);
}

namespace {

// Adam's bias correction.
float Correction(float beta, uint64_t step) {
  return static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step + 1))));
}

}  // namespace

void Optimizer::Update(ParameterShape shape, size_t offset, const float* g, size_t n, float rate, uint64_t step,
                       float* weights) const {
  Change({.shape = shape, .offset = offset, .n = n}, g, rate, step, weights);
}

void Optimizer::UpdateRows(const ParameterSpec& table, size_t offset, const float* g, size_t n, const uint32_t* row_J,
                           float rate, uint64_t step, float* weights) const {
  Change({.shape = table.shape, .offset = offset, .n = n, .row_J = row_J, .d = table.cols}, g, rate, step, weights);
}

void Optimizer::Change(const Range& range, const float* g, float rate, uint64_t step, float* weights) const {
  const float decay = range.shape == ParameterShape::kVector ? 0.0f : options_.weight_decay;
  float* first = first_.size() > 0 ? first_.data() + range.offset : nullptr;
  if (options_.kind == OptimizerKind::kSgd) {
    ops_->sgd({.w = weights,
               .m = first,
               .g = g,
               .n = range.n,
               .rate = rate,
               .momentum = options_.momentum,
               .decay = decay,
               .row_J = range.row_J,
               .d = range.d});
    return;
  }
  ops_->adam({.w = weights,
              .m = first,
              .v = second_.data() + range.offset,
              .g = g,
              .n = range.n,
              .rate = rate,
              .beta1 = options_.beta1,
              .beta2 = options_.beta2,
              .epsilon = options_.epsilon,
              .decay = decay,
              .correction1 = Correction(options_.beta1, step),
              .correction2 = Correction(options_.beta2, step),
              .row_J = range.row_J,
              .d = range.d});
}

void Optimizer::UpdateAlong(const float* x, size_t count, const ParameterSpec& table, size_t offset, float rate,
                            uint64_t step, float* scratch, float* weights) const {
  const size_t d = table.cols;
  const float *first = first_.data() + offset, *second = second_.data() + offset;
  float *first_FD = scratch, *second_FD = scratch + count * d;
  std::fill_n(scratch, ScratchAlong(count, d), 0.0f);
  const auto for_each = [&](auto&& visit) {
    for (size_t i = 0; i < table.rows * count; ++i)
      if (x[i] != 0) visit(x[i], i / count * d, i % count * d);
  };
  for_each([&](float value, size_t row, size_t feature) {
    for (size_t k = 0; k < d; ++k) {
      first_FD[feature + k] += value * first[row + k];
      second_FD[feature + k] += value * value * second[row + k];
    }
  });
  const float correction1 = Correction(options_.beta1, step), correction2 = Correction(options_.beta2, step);
  for (size_t i = 0; i < count * d; ++i) {
    const float along = first_FD[i] * correction1 / (std::sqrt(second_FD[i] * correction2) + options_.epsilon);
    first_FD[i] = rate * std::clamp(along, -kLongestAlong, kLongestAlong);
  }
  for_each([&](float value, size_t row, size_t feature) {
    for (size_t k = 0; k < d; ++k) weights[row + k] -= value * first_FD[feature + k];
  });
}

namespace {

// The share of one step's gradient that Adam's bias-corrected average passes on over all later steps, as a multiple of
// it: the sum over k of (1 - beta1) beta1^k / (1 - beta1^(step + 1 + k)). It is above 1 for the first gradients.
double TotalMomentum(double beta1, uint64_t step) {
  double sum = 0, share = 1 - beta1, power = std::pow(beta1, static_cast<double>(step + 1));
  for (; share > 1e-4 * (1 - beta1); share *= beta1, power *= beta1) sum += share / (1 - power);
  return sum;
}

}  // namespace

double Optimizer::MeanSquaredMove(size_t offset, size_t n, uint64_t step, double size) const {
  if (options_.kind == OptimizerKind::kSgd) return std::pow(size / (1 - static_cast<double>(options_.momentum)), 2);
  const float correction = Correction(options_.beta2, step);
  double sum = 0;
  for (size_t i = offset; i < offset + n; ++i) {
    const float move =
        std::min(1.0f, static_cast<float>(size) / (std::sqrt(second_.data()[i] * correction) + options_.epsilon));
    sum += static_cast<double>(move) * static_cast<double>(move);
  }
  return n == 0 ? 0
                : sum / static_cast<double>(n) * std::pow(TotalMomentum(static_cast<double>(options_.beta1), step), 2);
}

void Optimizer::AddSquaredMoves(size_t offset, size_t rows, size_t cols, uint64_t step, double size, double scale,
                                float* variance_R, const uint32_t* row_R) const {
  const bool adam = options_.kind != OptimizerKind::kSgd;
  const double total = adam ? TotalMomentum(static_cast<double>(options_.beta1), step)
                            : 1 / (1 - static_cast<double>(options_.momentum));
  ops_->add_squared_moves({.v_RN = adam ? second_.data() + offset : nullptr,
                           .variance_R = variance_R,
                           .rows = rows,
                           .n = cols,
                           .size = static_cast<float>(size),
                           .correction = Correction(options_.beta2, step),
                           .epsilon = options_.epsilon,
                           .scale = scale * total * total,
                           .row_R = row_R});
}

}  // namespace wisp
