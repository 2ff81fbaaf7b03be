// The sum of a step's gradients, and its release. A private sum is exact, in integers, and leaves this object only with
// its noise.
//
//   sum.Begin(step, size, noise);                    // empty, for `size` coordinates
//   ... records are added to sum.gradients() ...
//   host, by range:    sum.Take(first, n, scale, noise, g);
//   device, at once:   sum.DrawAhead(first, n, noise) for all ranges, beside the records;  sum.Send();
//                      gradient = sum.TakeAll(scale);  sum.Forget();
//
// On a device the host draws the noise, from the same streams and in the same ranges as in a step of its own, and the
// device adds it as integers. Whoever could read the noise, on the host or the device, would have the exact sum of the
// step. So Forget overwrites it at the step's end.
#ifndef WISP_RUNTIME_TRAIN_STEP_SUM_H_
#define WISP_RUNTIME_TRAIN_STEP_SUM_H_

#include <memory>
#include <optional>
#include <span>

#include "kernels/device.h"
#include "runtime/core/arena.h"
#include "runtime/gradients/clipping.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/privacy/noise/noise_process.h"
#include "runtime/train/options.h"

namespace wisp {

class StepSum {
 public:
  // Makes a sum of up to `size` numbers, of which `num_released` coordinates are released, by the method of the
  // options. The device must outlive this object.
  StepSum(const kernels::Device& device, const TrainingOptions& options, size_t size, uint64_t num_released);

  // Exactly one of these exists: integers() if the run is private, else floats().
  FloatGradientSum& floats() { return *floats_; }
  GridGradientSum& integers() { return *integers_; }
  GradientSum& gradients() { return integers_ ? static_cast<GradientSum&>(*integers_) : *floats_; }
  // The rule by which records are clipped for this sum.
  ClipRule clip() const;
  // The factor that makes a mean gradient of the sum.
  float Scale(double divisor) const { return static_cast<float>(integers_ ? grid_->Scale(divisor) : 1.0 / divisor); }

  // Begins a step with a sum of `size` coordinates, at most those that there is memory for.
  void Begin(uint64_t step, size_t size, privacy::RandomStream& noise);
  // Replaces the memory by space for `size` coordinates, on the host. Begin must follow.
  void ReserveCapacity(size_t size);
  // Adds the sums of all workers, after the last record.
  void Reduce();

  // On the host: sets g to scale times the released sum at [first, first + n). Draws the noise of this range: take each
  // range once a step.
  void Take(size_t first, size_t n, float scale, privacy::RandomStream& noise, float* g);

  // On a device: DrawAhead draws the noise of a range, each once a step, by any thread. Send copies it to the device.
  // TakeAll returns scale times the released sum in the device's memory, valid until the next Begin.
  bool draws_ahead() const { return ahead_ != nullptr; }
  void DrawAhead(size_t first, size_t n, privacy::RandomStream& noise);
  void Send();
  const float* TakeAll(float scale);
  void Forget();

  bool is_on_device() const { return is_on_device_; }
  size_t size_bytes() const;
  // Returns size_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const TrainingOptions& options, size_t size);

 private:
  kernels::Device device_;
  bool is_on_device_;
  uint64_t step_ = 0;
  size_t size_ = 0;
  ClipKind clipping_;
  std::unique_ptr<FloatGradientSum> floats_;
  std::optional<privacy::ExactGrid> grid_;  // set for a private run, like the next two
  std::unique_ptr<GridGradientSum> integers_;
  std::unique_ptr<privacy::NoiseProcess> noise_;
  struct Ahead {
    AlignedArray<int64_t> drawn;  // the noise, in the host's memory; 0 for coordinates not drawn
    AlignedArray<int64_t> sent;   // a copy in the device's memory
    AlignedArray<float> released;
  };
  std::unique_ptr<Ahead> ahead_;  // on a device
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_STEP_SUM_H_
