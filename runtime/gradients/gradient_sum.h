// The sums of clipped record gradients: in float, one sum for each worker; or exact, on an integer grid.
// The exact sum is one 64-bit integer for each coordinate, shared by all workers. Integer addition does not depend on
// the order, so the result has the same bits for any number of threads. The caller (runtime/train, with
// runtime/privacy) chooses the grid and the bound.
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

  // Adds scale * g[0..n) at coordinate `offset` of the flat buffer, for `worker`. With sign -1 it subtracts exactly
  // that again (only if IsExact()). Returns the sum of squares of what was added, in squared units of the sum.
  virtual double Add(size_t worker, size_t offset, const float* g, size_t n, float scale, int32_t sign) = 0;

  // The largest sum of squares that one record may add over all its calls. A record above it must be subtracted again.
  // Infinite if there is no bound.
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

  // The sum of a worker, for ops to add to.
  float* data(size_t worker) const { return sums_[worker].data(); }

  // Adds the sums of all workers to the first one, in the order of the workers, and returns it.
  std::span<float> Reduce();
  // The sum of the first worker. After Reduce it is the sum of all.
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
  // For each row b of x [rows, n], `stride` floats apart: adds the integers nearest to steps_B[b] * x to the first n
  // coordinates. With sign -1 it subtracts exactly these again. A row with 0 steps is skipped, whatever it holds.
  // squares_B: the sum of squares that each row added; NaN if the device failed. Only on a device with ops for many
  // records (kernels/formed.h), from one thread.
  void AddRows(const float* x, size_t stride, size_t rows, size_t n, const float* steps_B, int32_t sign,
               double* squares_B);
  // Adds rows [slots, d] of each record in the same way. Row j goes to coordinates first + slot_BJ[b, j] * d on; slot
  // -1: it is skipped.
  struct Slots {
    const int32_t* slot_BJ = nullptr;  // in the device's memory
    size_t slots = 0, first = 0, d = 0;
  };
  void AddSlots(const float* x, size_t stride, size_t rows, const Slots& slots, const float* steps_B, int32_t sign,
                double* squares_B);
  // Adds A^T B of all rows at coordinate `offset` (AccumulateOuterArgs; its sum_NK is ignored). Host only.
  void AddOuter(size_t offset, const kernels::AccumulateOuterArgs& product);
  float steps_per_unit() const { return grid_.steps_per_unit; }
  // Sets the number of coordinates to `size` and clears them. Allocates exactly this many if there is too little
  // memory.
  void Clear(size_t size);
  // Replaces the memory by space for `size` coordinates. Call Clear next.
  void ReserveCapacity(size_t size);

  std::span<int64_t> sum() const { return {sum_.data(), size_}; }
  size_t size_bytes() const { return sum_.allocated_bytes(); }

 private:
  // Coordinates for each lock: 256 KB of sums. Adding them takes longer than passing a lock between threads.
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
