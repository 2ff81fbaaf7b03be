// Where clipped record gradients are added up: in float, one sum per worker, or exactly, on an integer grid.
//
// The exact sum is one 64-bit integer per coordinate, shared by all workers: integer addition does not care about
// order, so the result repeats bit for bit whatever the number of threads. What the grid and the bound are, and why,
// is the business of whoever makes it (runtime/train, with runtime/privacy).
#ifndef WISP_RUNTIME_GRADIENTS_GRADIENT_SUM_H_
#define WISP_RUNTIME_GRADIENTS_GRADIENT_SUM_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/core/arena.h"

namespace wisp {

class GradientSum {
 public:
  virtual ~GradientSum() = default;

  // Adds scale * g[0..n) at coordinate `offset` of the flat buffer on behalf of `worker`; with sign -1 takes exactly
  // that away again (only where IsExact()). Returns the sum of squares of what was added, in units of the sum.
  virtual double Add(size_t worker, size_t offset, const float* g, size_t n, float scale, int32_t sign) = 0;

  // Largest sum of squares that one record may add over all its calls; a record above it must be taken away.
  // Infinite where nothing is bounded.
  virtual double MaxSumSquares() const = 0;
  virtual bool IsExact() const = 0;
  virtual void Clear() = 0;
};

class FloatGradientSum : public GradientSum {
 public:
  FloatGradientSum(const kernels::Device& device, size_t size, size_t num_workers);
  double Add(size_t worker, size_t offset, const float* g, size_t n, float scale, int32_t sign) override;
  double MaxSumSquares() const override;
  bool IsExact() const override { return false; }
  void Clear() override;

  size_t size_bytes() const;

  // Of a worker, to be added to by ops.
  float* data(size_t worker) const { return sums_[worker].data(); }

  // Adds all workers' sums into the first, in their order, and returns it.
  std::span<float> Reduce();
  // The sum of the first worker: after Reduce, of all.
  std::span<const float> sum() const { return {sums_[0].data(), sums_[0].size()}; }

 private:
  const kernels::OpTable* ops_;
  std::vector<AlignedArray<float>> sums_;
};

class GridGradientSum : public GradientSum {
 public:
  struct Grid {
    float steps_per_unit;    // integer steps per 1.0 of gradient
    double max_sum_squares;  // in squared steps
  };
  GridGradientSum(const kernels::Device& device, size_t size, Grid grid);
  double Add(size_t worker, size_t offset, const float* g, size_t n, float scale, int32_t sign) override;
  double MaxSumSquares() const override { return grid_.max_sum_squares; }
  bool IsExact() const override { return true; }
  void Clear() override;
  // Of each row b of x [rows, n], `stride` apart, adds the integers nearest to steps_B[b] * x to the first n
  // coordinates; with sign -1 takes exactly these away again. A row whose steps are 0 is left out, whatever it holds.
  // squares_B: each row's sum of squares of what was added; NaN where the device failed. Only on a device with ops for
  // many records (kernels/formed.h), from one thread.
  void AddRows(const float* x, size_t stride, size_t rows, size_t n, const float* steps_B, int32_t sign,
               double* squares_B);
  // The same of rows [slots, d] of each record: row j is of coordinates first + slot_BJ[b, j] * d on, -1: of none.
  struct Slots {
    const int32_t* slot_BJ = nullptr;  // in the device's memory
    size_t slots = 0, first = 0, d = 0;
  };
  void AddSlots(const float* x, size_t stride, size_t rows, const Slots& slots, const float* steps_B, int32_t sign,
                double* squares_B);
  // Adds A^T B of all rows at coordinate `offset` (AccumulateOuterArgs, whose sum_NK is not read): on the host.
  void AddOuter(size_t offset, const kernels::AccumulateOuterArgs& product);
  float steps_per_unit() const { return grid_.steps_per_unit; }
  // The first `size` coordinates, from now on all there are: room for just so many is made where there is too little.
  void Clear(size_t size);
  // Room for `size` coordinates, in place of what there is. Clear comes next.
  void MakeRoom(size_t size);

  std::span<int64_t> sum() const { return {sum_.data(), size_}; }
  size_t size_bytes() const { return sum_.allocated_bytes(); }

 private:
  // Coordinates per lock: 256 KB of sums, a stretch that takes longer to add than a lock takes to pass.
  static constexpr size_t kStripe = size_t{1} << 15;
  static constexpr size_t kLocks = 16;

  kernels::Device device_;
  Grid grid_;
  AlignedArray<int64_t> sum_;
  size_t size_;
  std::array<std::mutex, kLocks> locks_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_GRADIENT_SUM_H_
