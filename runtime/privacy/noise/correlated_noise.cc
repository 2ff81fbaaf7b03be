#include "runtime/privacy/noise/correlated_noise.h"

#include <cmath>

namespace wisp::privacy {
namespace {

constexpr int kLambdaBits = 20;
constexpr int64_t kOne = int64_t{1} << kLambdaBits;

}  // namespace

PartTakenBack::PartTakenBack(double lambda) : numerator_(static_cast<int64_t>(lambda * static_cast<double>(kOne))) {}

double PartTakenBack::lambda() const { return static_cast<double>(numerator_) / static_cast<double>(kOne); }

int64_t PartTakenBack::Of(int64_t z) const {
  // z = high 2^20 + low with 0 <= low < 2^20: neither product overflows.
  const int64_t high = z >> kLambdaBits, low = z & (kOne - 1);
  return high * numerator_ + ((low * numerator_ + kOne / 2) >> kLambdaBits);
}

double CorrelatedRoundingShift(const CorrelatedRun& run) {
  if (run.lambda == 0) return 0;
  const double numbers = static_cast<double>(run.num_coordinates) * static_cast<double>(run.num_steps);
  return std::sqrt(numbers) / (1 - run.lambda) * (1 + 0x1p-48);
}

}  // namespace wisp::privacy
