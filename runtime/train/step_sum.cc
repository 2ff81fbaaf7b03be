// Built for speed: noise and sums over every weight of a step.
#include "runtime/train/step_sum.h"

#include <algorithm>

#include "runtime/train/privacy_plan.h"

namespace wisp {
namespace {

size_t NumSums(const TrainingOptions& o) { return o.device.memory.is_host() ? o.num_threads : 1; }

}  // namespace

StepSum::StepSum(const kernels::Device& device, const TrainingOptions& o, size_t size, uint64_t num_released)
    : device_(device), is_on_device_(!device.memory.is_host()), size_(size), clipping_(o.privacy.clipping) {
  if (!IsPrivate(o)) {
    floats_ = std::make_unique<FloatGradientSum>(device, size, NumSums(o));
    return;
  }
  grid_.emplace(o.privacy.clipping_norm, num_released);
  integers_ = std::make_unique<GridGradientSum>(
      device, size,
      GridGradientSum::Grid{.steps_per_unit = static_cast<float>(grid_->steps_per_unit()),
                            .max_sum_squares = grid_->max_sum_squares()});
  noise_ = privacy::MakeNoiseProcess(GetNoise(o, GradientNoise(o)));
  if (!is_on_device_) return;
  ahead_ = std::make_unique<Ahead>(Ahead{.drawn = AlignedArray<int64_t>(size),
                                         .sent = AlignedArray<int64_t>(size, device.memory),
                                         .released = AlignedArray<float>(size, device.memory)});
}

ClipRule StepSum::clip() const {
  if (!grid_) return ClipRule::None();
  const double bound = grid_->reduced_clipping_norm();
  return clipping_ == ClipKind::kFlat ? ClipRule::Flat(bound) : ClipRule::Automatic(bound);
}

void StepSum::Begin(uint64_t step, size_t size, privacy::RandomStream& noise) {
  step_ = step;
  size_ = size;
  if (!integers_) return floats_->Clear();
  integers_->Clear(size);
  noise_->Begin(noise);
}

void StepSum::ReserveCapacity(size_t size) {
  if (integers_) integers_->ReserveCapacity(size);
}

void StepSum::Reduce() {
  if (floats_) floats_->Reduce();
}

void StepSum::Take(size_t first, size_t n, float scale, privacy::RandomStream& noise, float* g) {
  if (!integers_) {
    const float* sum = floats_->sum().data() + first;
    return device_.ops->scale({.x = sum, .y = g, .n = n, .a = scale, .store = kernels::Store::kAssign});
  }
  const std::span<int64_t> sum = integers_->sum().subspan(first, n);
  noise_->Add(step_, *grid_, first, sum, noise);
  for (size_t i = 0; i < n; ++i) g[i] = static_cast<float>(sum[i]) * scale;
}

void StepSum::DrawAhead(size_t first, size_t n, privacy::RandomStream& noise) {
  int64_t* drawn = ahead_->drawn.data() + first;
  std::fill_n(drawn, n, 0);
  noise_->Add(step_, *grid_, first, {drawn, n}, noise);
}

void StepSum::Send() {
  if (draws_ahead()) device_.memory.copy_in(ahead_->sent.data(), ahead_->drawn.data(), size_ * sizeof(int64_t));
}

const float* StepSum::TakeAll(float scale) {
  if (!integers_) {
    float* g = floats_->data(0);
    device_.ops->scale({.x = g, .y = g, .n = size_, .a = scale, .store = kernels::Store::kAssign});
    return g;
  }
  device_.ops->noised_sum({.sum = integers_->sum().data(),
                           .noise = ahead_->sent.data(),
                           .y = ahead_->released.data(),
                           .n = integers_->sum().size(),
                           .scale = scale});
  return ahead_->released.data();
}

void StepSum::Forget() {
  if (!integers_) return;
  std::fill_n(ahead_->drawn.data(), size_, 0);
  device_.ops->clear({.y = ahead_->sent.data(), .bytes = size_ * sizeof(int64_t)});
  integers_->Clear();
}

size_t StepSum::size_bytes() const {
  const size_t sum = integers_ ? integers_->size_bytes() : floats_->size_bytes();
  if (!ahead_) return sum;
  return sum + ahead_->drawn.allocated_bytes() + ahead_->sent.allocated_bytes() + ahead_->released.allocated_bytes();
}

size_t StepSum::PlanBytes(const TrainingOptions& o, size_t size) {
  if (!IsPrivate(o)) return NumSums(o) * AlignedArray<float>::AllocatedBytes(size);
  const size_t sum = AlignedArray<int64_t>::AllocatedBytes(size);
  return o.device.memory.is_host() ? sum : 3 * sum + AlignedArray<float>::AllocatedBytes(size);
}

}  // namespace wisp
