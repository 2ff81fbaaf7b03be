// The releases of DP-FP's private modes, and the linear head that is made of them (docs/algorithms.md, section 6,
// `aggregate`).
//
// Each step has m micro-batches, and each of them releases one matrix
//     S = sum_i clip(h_i) (x) onehot(label_i) + N(0, sigma^2 C^2)      [num_classes, D], even if it drew no record
// h_i: the representation of record i, computed with weights that are public or themselves a release.
//   sensitivity   Add: a record enters one row of S, with norm at most C. The bound is checked on the integers that
//                 were added, not inferred from the norm; a record beyond it is taken away again. Its label only
//                 chooses the row, so adding or removing a record moves S by at most C, label included.
//   released      the noised matrices, by Release; nothing before it
//   noise         Release, exact discrete Gaussian on the integer grid of privacy::ExactGrid, on every coordinate
// Trainer charges for the releases before it draws a micro-batch.
//
// The head is post-processing: FitHead reads only the releases and public constants (p, N, the class prior, C, sigma).
// It is the maximum-likelihood classifier for representations that lie around their class's mean with one spherical
// variance s^2 in all classes, whose posterior is exactly softmax(W x + b):
//     n = R p N, R releases;   mu_c = A_c / (n prior_c), A the sum of the releases;   centre = sum_c prior_c mu_c
//     W_c = f (mu_c - centre) / s^2,   b_c = -<W_c, centre> - |f (mu_c - centre)|^2 / (2 s^2) + log prior_c
// s^2 = (C^2 - the part of it that the means explain) / effective_dimensions, from E |x|^2 <= C^2. With
// effective_dimensions = 1 that bounds the variance along every direction, so the head is never surer than its features
// allow. D would assume that they are independent, which a Transformer's are not. The value scales the logits against
// the prior, and so the gradient that kClipped's encoder gets.
//
// f in [kLeastTrust, 1] shrinks towards "no difference", by how much of the observed difference the noise alone would
// show; the noise's variance is known. Counts are never released: prior_c is a public statement (uniform unless given),
// and a wrong one costs accuracy, never privacy.
#ifndef WISP_RUNTIME_METHODS_DP_FP_HEAD_RELEASES_H_
#define WISP_RUNTIME_METHODS_DP_FP_HEAD_RELEASES_H_

#include <optional>
#include <span>
#include <vector>

#include "runtime/gradients/gradient_sum.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

struct HeadReleaseOptions {
  uint32_t num_classes = 0;
  uint32_t width = 0;               // D
  uint32_t micro_batches = 0;       // m
  double clipping_norm = 0;         // C
  double noise_multiplier = 0;      // sigma
  double sampling_probability = 0;  // p of one micro-batch
  uint32_t num_records_public = 0;  // N
  double release_decay = 1;  // the factor by which a release's weight falls each step: below 1 if the encoder moves
  double effective_dimensions = 1;  // 1 to D
  std::vector<double> class_prior;  // positive, adds up to 1; empty: uniform
};

class HeadReleases {
 public:
  // The options must have passed ExactGrid::Validate and Trainer::Check.
  HeadReleases(const kernels::Device& device, const HeadReleaseOptions& options);

  // Starts a step: m empty matrices.
  void Clear() { sum_.Clear(); }

  // Adds a record to a micro-batch; any number of workers may call it at a time. Returns false if h was not finite, or
  // not within the bound after rounding; then the record contributes nothing.
  bool Add(size_t worker, size_t micro_batch, const float* h_D, uint32_t label);

  // Noises all m matrices and adds them to the sums that FitHead reads. Call it once a step.
  void Release(privacy::RandomStream& noise);

  // Fits the head: assigns weight [num_classes, D] and bias [num_classes]. Call it after the first Release.
  void FitHead(float* weight, float* bias);
  // The single class that the head fitted last predicts at the released mean of every class; empty if it predicts
  // several. If there is one, the prior decides and not the texts: effective_dimensions is too low.
  std::optional<uint32_t> class_of_all_means() const { return class_of_all_means_; }

  // The state that FitHead reads, bit for bit, for the trainer's checkpoint. All of it was computed from releases.
  // Restore returns false, and changes nothing, if the state does not fit.
  std::vector<uint32_t> State() const;
  bool Fits(std::span<const uint32_t> state) const;
  bool Restore(std::span<const uint32_t> state);

  // The matrices of this step, in grid steps. They are not private before Release.
  std::span<const int64_t> matrices() const { return sum_.sum(); }
  const privacy::ExactGrid& grid() const { return grid_; }
  size_t size_bytes() const;
  // Returns size_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const HeadReleaseOptions& options);
  size_t num_coordinates() const { return size_t{options_.num_classes} * options_.width; }  // of one release

 private:
  // The class with the largest logit at the mean of class `of`, fitted as (centre + trust * difference, variance).
  uint32_t ClassifyMean(size_t of, double trust, double variance) const;

  // The smallest f: keeps logits from being all equal even if the noise explains all, because a tie would always name
  // class 0.
  static constexpr double kLeastTrust = 0.05;

  HeadReleaseOptions options_;
  privacy::ExactGrid grid_;
  std::optional<uint32_t> class_of_all_means_;
  GridGradientSum sum_;                                // [m, num_classes, D]
  std::vector<double> total_;                          // A [num_classes, D], in units of h
  std::vector<double> centre_, difference_, squares_;  // scratch of FitHead: [D], [num_classes, D], [num_classes]
  double weight_ = 0, squared_weight_ = 0;             // R, and the sum of the releases' squared weights
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_DP_FP_HEAD_RELEASES_H_
