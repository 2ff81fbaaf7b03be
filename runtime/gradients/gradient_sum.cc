#include "runtime/gradients/gradient_sum.h"

#include <algorithm>
#include <bitset>
#include <limits>

namespace wisp {

FloatGradientSum::FloatGradientSum(const kernels::Device& device, size_t size, size_t num_workers) : ops_(device.ops) {
  for (size_t i = 0; i < num_workers; ++i) sums_.emplace_back(size, device.memory);
}

double FloatGradientSum::Add(size_t worker, size_t offset, const float* g, size_t n, float scale, int32_t sign) {
  ops_->scale({.x = g,
               .y = sums_[worker].data() + offset,
               .n = n,
               .a = scale * static_cast<float>(sign),
               .store = kernels::Store::kAdd});
  return 0;
}

double FloatGradientSum::MaxSumSquares() const { return std::numeric_limits<double>::infinity(); }

void FloatGradientSum::Clear() {
  for (auto& sum : sums_) ops_->clear({.y = sum.data(), .bytes = sum.size() * sizeof(float)});
}

size_t FloatGradientSum::size_bytes() const {
  size_t bytes = 0;
  for (const auto& sum : sums_) bytes += sum.allocated_bytes();
  return bytes;
}

std::span<float> FloatGradientSum::Reduce() {
  for (size_t w = 1; w < sums_.size(); ++w) {
    ops_->scale(
        {.x = sums_[w].data(), .y = sums_[0].data(), .n = sums_[0].size(), .a = 1.0f, .store = kernels::Store::kAdd});
  }
  return {sums_[0].data(), sums_[0].size()};
}

GridGradientSum::GridGradientSum(const kernels::Device& device, size_t size, Grid grid)
    : device_(device), grid_(grid), sum_(size, device.memory), size_(size) {}

double GridGradientSum::Add(size_t, size_t offset, const float* g, size_t n, float scale, int32_t sign) {
  const float steps = scale * grid_.steps_per_unit;
  double sum_squares = 0;
  for (size_t done = 0; done < n;) {
    const size_t position = offset + done;
    const size_t stripe = position / kStripe;
    const size_t count = std::min(n - done, (stripe + 1) * kStripe - position);
    std::lock_guard lock(locks_[stripe % kLocks]);
    sum_squares += device_.ops->accumulate_on_grid(
        {.x = g + done, .sum = sum_.data() + position, .n = count, .scale = steps, .sign = sign});
    done += count;
  }
  return sum_squares;
}

void GridGradientSum::AddRows(const float* x, size_t stride, size_t rows, size_t n, const float* steps_B, int32_t sign,
                              double* squares_B) {
  device_.ops->accumulate_rows_on_grid({.x_BN = x,
                                        .ldx = stride,
                                        .sum = sum_.data(),
                                        .rows = rows,
                                        .n = n,
                                        .scale_B = steps_B,
                                        .sign = sign,
                                        .squares_B = squares_B});
}

void GridGradientSum::AddSlots(const float* x, size_t stride, size_t rows, const Slots& s, const float* steps_B,
                               int32_t sign, double* squares_B) {
  device_.ops->accumulate_slots_on_grid({.x_BJD = x,
                                         .stride = stride,
                                         .slot_BJ = s.slot_BJ,
                                         .sum = sum_.data() + s.first,
                                         .rows = rows,
                                         .slots = s.slots,
                                         .d = s.d,
                                         .scale_B = steps_B,
                                         .sign = sign,
                                         .squares_B = squares_B});
}

void GridGradientSum::AddOuter(size_t offset, const kernels::AccumulateOuterArgs& product) {
  // Add this many rows of the weight at a time. Each piece packs the other factor again, but while a piece is added,
  // other threads wait.
  const size_t height = std::max<size_t>(1, 4 * kStripe / product.ldsum);
  for (size_t first = 0; first < product.n; first += height) {
    kernels::AccumulateOuterArgs part = product;
    part.n = std::min(height, product.n - first);
    part.a_RN += first;
    const size_t begin = offset + first * product.ldsum, end = begin + part.n * product.ldsum;
    part.sum_NK = sum_.data() + begin;
    std::bitset<kLocks> touched;
    for (size_t stripe = begin / kStripe; stripe * kStripe < end; ++stripe) touched.set(stripe % kLocks);
    // Take the locks in ascending order, so that no two threads wait for each other.
    for (size_t i = 0; i < kLocks; ++i) {
      if (touched[i]) locks_[i].lock();
    }
    device_.ops->accumulate_outer(part);
    for (size_t i = 0; i < kLocks; ++i) {
      if (touched[i]) locks_[i].unlock();
    }
  }
}

void GridGradientSum::Clear() { device_.ops->clear({.y = sum_.data(), .bytes = size_ * sizeof(int64_t)}); }

void GridGradientSum::Clear(size_t size) {
  if (size > sum_.size()) ReserveCapacity(size);
  size_ = size;
  Clear();
}

void GridGradientSum::ReserveCapacity(size_t size) {
  sum_ = AlignedArray<int64_t>();  // free the old sum first
  sum_ = AlignedArray<int64_t>(size, device_.memory);
  size_ = size;
}

}  // namespace wisp
