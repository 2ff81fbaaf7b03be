// The integer grid on which clipped record gradients are summed in the `exact` noise mode: its step, the bound on a
// record's contribution, the noise in steps, and the cost of the noise being discrete. Arithmetic only: no tensors, no
// sums.
//
//   const ExactGrid grid(clipping_norm, num_coordinates);        // after Validate
//   record: c_i = the clip factor for grid.reduced_clipping_norm(); r = nearest integers of c_i g_i * steps_per_unit
//   if (!grid.Within(sum of r^2)) take r away again: the record contributes zero
//   AddDiscreteGaussian(noise, grid.sigma_in_steps(noise_multiplier), sum);   gradient = sum * grid.Scale(batch)
//
// Why the sensitivity is at most the charged one. Let K = 2^30 steps stand for the clipping norm C, P coordinates, u =
// 2^-24.
//   By the check  A record stays in the sum only if the computed sum of its r_j^2 is at most K^2 (1 + 1e-6)^2. Squares
//       of integers below 2^31 and their sum in double have a relative error of at most P 2^-53 <= 2^-21 for P <= 2^32,
//       on the norm 2^-22. So ||r|| <= K (1 + 1e-6) (1 + 2^-21) < K (1 + 3e-6), whatever happened before: wrong norms,
//       other roundings, another kernel. The noise has sigma >= noise_multiplier * K (1 + 3e-6): the ratio is never
//       below the noise multiplier that is charged.
//   In practice   No record is dropped: with an honest norm, off by 1e-5 relative at most, c ||g|| <= C' / (1 - 1e-5).
//       Four roundings (c, the steps per unit, their product, the product with g_j) give
//           |v_j| <= (K / C) c |g_j| (1 + 5 u);
//       the nearest integer is within 1/2 of v_j, hence ||r|| <= (K / C) c ||g|| (1 + 5 u) + sqrt(P) / 2. With
//           C' = C (1 - sqrt(P) / (2 K)) / (1 + 2^-16)
//       and 2^-16 > 1.01e-5 + 5 u this is at most K.
//   No overflow   Each |r_j| < 2^31, so 2^31 records keep every sum below 2^62, and the noise adds less than 2^62.
#ifndef WISP_RUNTIME_PRIVACY_NOISE_EXACT_SUM_H_
#define WISP_RUNTIME_PRIVACY_NOISE_EXACT_SUM_H_

#include <cstdint>

#include "runtime/core/status.h"

namespace wisp::privacy {

class ExactGrid {
 public:
  // Integers up to this convert to float and back in the kernels.
  static constexpr double kStepsPerClippingNorm = 0x1p30;
  static constexpr double kCheckMargin = 1e-6;  // ||c g|| <= C (1 + 1e-6)
  static constexpr double kNoiseMargin = 3e-6;
  static constexpr uint64_t kMaxCoordinates = uint64_t{1} << 32;
  static constexpr uint64_t kMaxRecords = uint64_t{1} << 31;  // in one sum
  static constexpr double kMaxNoiseMultiplier = 0x1p19;       // sigma in steps stays below kMaxDiscreteGaussianSigma

  struct Options {
    double clipping_norm = 0;      // C, 2^-60 .. 2^60
    uint64_t num_coordinates = 0;  // P, 1 .. kMaxCoordinates: all released coordinates of a step together
    double noise_multiplier = 0;   // above 2^-20, up to kMaxNoiseMultiplier
  };
  // Checks that an exact grid can serve; call it before constructing one. kInvalidArgument names the value and what is
  // allowed.
  static Status Validate(const Options& options);

  // The values must have passed Validate.
  ExactGrid(double clipping_norm, uint64_t num_coordinates);

  double clipping_norm() const { return clipping_norm_; }
  uint64_t num_coordinates() const { return num_coordinates_; }
  // The gradient that one grid step stands for.
  double grid() const { return clipping_norm_ / kStepsPerClippingNorm; }
  double steps_per_unit() const { return kStepsPerClippingNorm / clipping_norm_; }
  // C', the norm to which records are clipped.
  double reduced_clipping_norm() const { return reduced_clipping_norm_; }
  // The largest sum of squared steps of a record that may stay in the sum.
  double max_sum_squares() const;
  bool Within(double sum_squares) const { return sum_squares <= max_sum_squares(); }  // false for NaN
  // Standard deviation of the noise, rounded up to whole steps. `more_shift`, in steps, is added to a record's bound
  // (correlated_noise.h).
  uint64_t sigma_in_steps(double noise_multiplier, double more_shift = 0) const;
  // The factor that converts a noised sum of steps to the mean gradient over the expected batch.
  double Scale(double expected_batch) const { return grid() / expected_batch; }

 private:
  double clipping_norm_;
  uint64_t num_coordinates_;
  double reduced_clipping_norm_;
};

// The accountant composes continuous Gaussians, but the noise is discrete. Rounding N(s, sigma^2) to integers, s an
// integer, is s + round(N(0, sigma^2)): post-processing, exactly as private as the continuous Gaussian. The discrete
// Gaussian is so close to round(N(0, sigma^2)) that the difference costs almost no epsilon, and delta only as a factor
// (a total variation would cost (1 + exp(epsilon)) times itself).
//
// Claim. With N = coordinates * steps and eta = 113 N / sigma^2, if the continuous Gaussians are (epsilon, delta)-DP
// then the discrete ones are (epsilon + 2 eta, exp(eta) delta + tail)-DP, with a tail below 1e-70 for epsilon <= 200
// and sigma >= 128.
// Proof. Let f be the density of N(0, sigma^2), q(x) its integral over [x - 1/2, x + 1/2], p(x) = f(x) / Z, Z the sum
// of f over the integers, z = x / sigma. Pairing h and -h,
//     q(x) / f(x) = int_0^(1/2) 2 exp(-h^2 / (2 sigma^2)) cosh(x h / sigma^2) dh,
// which is at least exp(-1 / (8 sigma^2)) and, as cosh(y) <= exp(y^2 / 2), at most exp(z^2 / (8 sigma^2)). By Poisson's
// summation formula 1 <= Z <= 1 + 3 exp(-2 pi^2 sigma^2). So |log(p(x) / q(x))| <= 113 / sigma^2 wherever |z| <= 30.
// All noise of a run stays there but for a chance of t = 3 N exp(-449) (both distributions are sub-Gaussian; N < 1e31).
// On that set the joint probability of batches and outputs changes by a factor within exp(+-eta), adaptively as well,
// since given the outputs so far every noise is independent. For neighbours D, D' and an event S:
//     P_disc(S) <= e^eta P(S) + t <= e^eta (e^epsilon P'(S) + delta) + t
//               <= e^(epsilon + 2 eta) P'_disc(S) + e^eta delta + tail,     tail = (1 + e^(epsilon + eta)) t. QED
struct Discretisation {
  uint64_t sigma_in_steps = 0;
  uint64_t num_coordinates = 0;
  uint64_t num_steps = 0;
};

// eta, rounded up: about 1e-6 for 1e10 numbers of noise with the noise multiplier 1. Infinity for sigma < 128.
double DiscretisationLoss(const Discretisation& d);

// Up to this epsilon the claim's tail is negligible beside a delta of 1e-60 or more.
inline constexpr double kMaxDiscretisationEpsilon = 200;

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_EXACT_SUM_H_
