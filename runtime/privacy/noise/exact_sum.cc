#include "runtime/privacy/noise/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/privacy/noise/discrete_gaussian.h"

namespace wisp::privacy {
namespace {

// Covers the rounding of the few operations below: it multiplies figures that must not come out too small.
constexpr double kSigmaRoundUp = 1 + 0x1p-48;

Status OutOfRange(const char* name, double value, const char* allowed) {
  return InvalidArgument(name, " is ", value, ", allowed is ", allowed);
}

static_assert(ExactGrid::kMaxNoiseMultiplier * ExactGrid::kStepsPerClippingNorm * (1 + ExactGrid::kNoiseMargin) + 1 <
              static_cast<double>(kMaxDiscreteGaussianSigma));

}  // namespace

Status ExactGrid::Validate(const Options& o) {
  if (!(o.clipping_norm >= 0x1p-60 && o.clipping_norm <= 0x1p60)) {
    return OutOfRange("the clipping norm", o.clipping_norm, "8.7e-19 to 1.1e18");
  }
  if (o.num_coordinates == 0 || o.num_coordinates > kMaxCoordinates) {
    return OutOfRange("the number of released coordinates", static_cast<double>(o.num_coordinates), "1 to 4294967296");
  }
  if (!(o.noise_multiplier >= 0x1p-20 && o.noise_multiplier <= kMaxNoiseMultiplier)) {
    return OutOfRange("the noise multiplier", o.noise_multiplier, "9.6e-7 to 524288");
  }
  return OkStatus();
}

ExactGrid::ExactGrid(double clipping_norm, uint64_t num_coordinates)
    : clipping_norm_(clipping_norm),
      num_coordinates_(num_coordinates),
      reduced_clipping_norm_(clipping_norm *
                             (1 - std::sqrt(static_cast<double>(num_coordinates)) / (2 * kStepsPerClippingNorm)) /
                             (1 + 0x1p-16)) {}

double ExactGrid::max_sum_squares() const {
  constexpr double kMaxNorm = kStepsPerClippingNorm * (1 + kCheckMargin);
  return kMaxNorm * kMaxNorm;
}

uint64_t ExactGrid::sigma_in_steps(double noise_multiplier, double more_shift) const {
  const double bound = kStepsPerClippingNorm * (1 + kNoiseMargin) + more_shift;
  const double sigma = std::ceil(noise_multiplier * bound * kSigmaRoundUp);
  return static_cast<uint64_t>(std::clamp(sigma, 1.0, static_cast<double>(kMaxDiscreteGaussianSigma)));
}

double DiscretisationLoss(const Discretisation& d) {
  if (d.num_coordinates == 0 || d.num_steps == 0) return 0;
  if (d.sigma_in_steps < 128) return std::numeric_limits<double>::infinity();
  const double sigma = static_cast<double>(d.sigma_in_steps);
  return 113 * static_cast<double>(d.num_coordinates) * static_cast<double>(d.num_steps) / (sigma * sigma) *
         kSigmaRoundUp;
}

}  // namespace wisp::privacy
