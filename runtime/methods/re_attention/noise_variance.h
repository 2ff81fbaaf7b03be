// Estimates the variance that the noise of private training has left in each parameter, which Re-Attention needs
// (docs/algorithms.md, section 3).
//
// It reads only released values (the optimizer's moments, learning rates, the noise multiplier), so it costs no
// privacy.
//
// The paper takes sigma C / (q N) for every weight, divided by an item's frequency for its row. That is the noise of
// one step's gradient, not the noise that is left in the weights.
//
// A step moves a coordinate by rate * m / sqrt(v), where m is a moving average of gradients whose noise has deviation s
// = sigma C / B. The average spreads a gradient's noise over later steps and loses nothing of it. So noise n_t moves
// the coordinate by rate_t n_t / sqrt(v_t) in the end, and the moves of different steps are independent. After T steps
// the noise has left
//     sum over t of rate_t^2 min(1, s^2 / v_t)
// With v = s^2 (noise alone) and a linear decay this is rate^2 T / 3; where the gradient is larger than the noise, v is
// larger and the variance smaller. v is Adam's second moment, released with the weights. The sum ignores that the
// gradient pulls the weights back towards where the noise took them from, so it is an upper estimate (measured:
// docs/papers/re-attention.md).
#ifndef WISP_RUNTIME_METHODS_RE_ATTENTION_NOISE_VARIANCE_H_
#define WISP_RUNTIME_METHODS_RE_ATTENTION_NOISE_VARIANCE_H_

#include <optional>
#include <span>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/trained_set.h"
#include "runtime/gradients/row_set.h"
#include "runtime/train/method_options.h"
#include "runtime/train/optimizer.h"

namespace wisp {

// kInvalidArgument for a scale outside 0 .. 1e6, and for kPrinted without num_items positive frequencies.
Status Validate(const ReAttentionOptions& options, const Architecture& architecture);

class NoiseVariance {
 public:
  // `noise_deviation` is s, of one coordinate of a step's gradient. The architecture must have Re-Attention. Only
  // trained parameters receive noise; `trained` must outlive this object.
  NoiseVariance(const Architecture& architecture, const TrainedSet& trained, const ReAttentionOptions& options,
                double noise_deviation);

  size_t size_bytes() const { return printed_item_variance_.capacity() * sizeof(float); }
  // Returns size_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const Architecture& architecture, const ReAttentionOptions& options) {
    return options.source == ReAttentionOptions::Source::kPrinted ? architecture.num_items * sizeof(float) : 0;
  }

  // Declares that the method leaves all rows of the item table unchanged except these: ascending, not empty. Call
  // before Initialise.
  void KeepItems(std::span<const int32_t> rows);
  // kPrinted: writes the variances once.
  void Initialise(std::span<float> weights) const;

  struct Step {
    const Optimizer& optimizer;  // has already seen the step's gradient
    float rate;                  // learning rate
    uint64_t step;
    std::optional<ItemRows> item_rows = {};  // rows of the item table that this step changed; nullopt: all
  };
  // kOptimizer: adds the variance that the step left. Call once for each of num_parts parts, from as many threads. On a
  // device num_parts is 1, and `weights` lie in its memory.
  void Add(const Step& step, size_t part, size_t num_parts, std::span<float> weights) const;

 private:
  void AddOnDevice(const Step& step, size_t parameter, double moved, std::span<float> weights) const;

  std::vector<ParameterSpec> parameters_;
  const TrainedSet* trained_;
  ReAttentionOptions options_;
  double deviation_;
  size_t item_variance_ = 0, parameter_variance_ = 0;  // indices in parameters_
  std::vector<float> printed_item_variance_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_RE_ATTENTION_NOISE_VARIANCE_H_
