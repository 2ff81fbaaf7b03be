// Noise of which each step takes back a part in the next, in the integers of an exact grid (exact_sum.h). Arithmetic
// only: no sums, no random numbers. accounting/kinds/correlated_gaussian.h has what a run costs.
//
//   const PartTakenBack part(options.lambda);         // the mechanism's lambda is part.lambda()
//   sigma = grid.sigma_in_steps(noise_multiplier, CorrelatedRoundingShift({part.lambda(), coordinates, steps}));
//   each step: z = discrete Gaussians of sigma; release sum + z - part.Of(earlier z), coordinate by coordinate
//
// The cost of rounding. Step s releases o_s = x_s + z_s - r(z_(s-1)), x_s the integer sum of the records, r(z) an
// integer within 1/2 of lambda z, z_(-1) = 0. If x' is a neighbour's sum, exactly one noise z' explains the same
// release:
//     z'_s - z_s = (x_s - x'_s) + r(z'_(s-1)) - r(z_(s-1)) = (x_s - x'_s) + lambda (z'_(s-1) - z_(s-1)) + rho_s,
// where no coordinate of rho_s is above 1. So z' - z = C ((x - x') + rho) with C_ij = lambda^(i - j). Its norm over d
// coordinates and T steps is at most |C (x - x')| + |C rho|: the first is a record's bound, K (1 + 3e-6) steps
// (exact_sum.h), times the sensitivity of the run; the second is at most sqrt(d T) / (1 - lambda), because no vector
// grows by more than 1 / (1 - lambda) under C. Whatever was released before, z' is a shift of z by integers, whose
// squares over the run add up to no more than this bound's: adaptively chosen shifts of Gaussians under such a bound
// cost what one Gaussian with the whole shift costs (Smith and Thakurta 2022). The sensitivity is at least
// 1, so with sigma = noise multiplier * (K (1 + 3e-6) + sqrt(d T) / (1 - lambda)) the ratio of sigma and the whole
// shift is not below the one that is charged. DiscretisationLoss of the d T numbers z is due as with independent noise.
#ifndef WISP_RUNTIME_PRIVACY_NOISE_CORRELATED_NOISE_H_
#define WISP_RUNTIME_PRIVACY_NOISE_CORRELATED_NOISE_H_

#include <cstdint>

namespace wisp::privacy {

class PartTakenBack {
 public:
  // 0 <= lambda < 1; it is rounded down to a multiple of 2^-20.
  explicit PartTakenBack(double lambda);
  double lambda() const;
  // The integer nearest to lambda() * z, without any other rounding; |z| up to 2^62.
  int64_t Of(int64_t z) const;

 private:
  int64_t numerator_;  // of a fraction over 2^20
};

struct CorrelatedRun {
  double lambda = 0;  // 0 <= lambda < 1
  uint64_t num_coordinates = 0;
  uint64_t num_steps = 0;
};
// sqrt(d T) / (1 - lambda), in steps of the grid, rounded up; 0 for lambda = 0, which rounds nothing.
double CorrelatedRoundingShift(const CorrelatedRun& run);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_CORRELATED_NOISE_H_
