#include "runtime/privacy/accounting/decoding_calibration.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy {
namespace {

constexpr double kSampleLossWidth = 1e-4;
// Range of the loss of one sample. A larger loss promises nothing; with a smaller one the model has no influence.
constexpr double kLargestSampleLoss = 100, kSmallestSampleLoss = 1e-9;
constexpr double kUlp = 0x1p-53;

// Returns a mechanism of `samples` samples, each with at most this pure epsilon up to rounding.
using LossToMechanism = std::function<Result<Mechanism>(double loss)>;

struct Samples {
  uint64_t count;
  Adjacency adjacency;
};

Result<Mechanism> MakeResponse(double lambda, const Samples& samples, const PublicMixture& mixture) {
  if (mixture.support > 0 && mixture.min_probability > 0) {
    return InvalidArgument(
        "a public mixture has a support, if it is uniform, or a smallest probability: both are given");
  }
  if (mixture.support > 0) {
    return Mechanism::RandomisedResponse(
        {.support = mixture.support, .lambda = lambda, .count = samples.count, .adjacency = samples.adjacency});
  }
  return Mechanism::NonUniformResponse({.min_probability = mixture.min_probability,
                                        .lambda = lambda,
                                        .count = samples.count,
                                        .adjacency = samples.adjacency});
}

// Inverts eps0 = log(1 + lambda / ((1 - lambda) u)).
Result<Mechanism> LossToResponse(double loss, const Samples& samples, const PublicMixture& mixture) {
  const double u = mixture.support > 0 ? 1 / static_cast<double>(mixture.support) : mixture.min_probability;
  const double odds = std::expm1(loss) * u, lambda = std::isfinite(odds) ? odds / (1 + odds) : 1;
  return MakeResponse(std::min(lambda, 1 - kUlp), samples, mixture);
}

Result<Mechanism> LossToRange(double loss, const Samples& samples) {
  return Mechanism::BoundedRange({.range = loss, .count = samples.count, .adjacency = samples.adjacency});
}

Status CheckPure(const PureRequest& request) {
  if (request.epsilon > 0 && std::isfinite(request.epsilon)) return OkStatus();
  return InvalidArgument("epsilon is ", request.epsilon, ", allowed is a positive number");
}

// Starts from the closed form and decreases until rounding does not exceed the target either.
Result<Mechanism> LargestPure(const PureRequest& request, const LossToMechanism& mechanism_of) {
  WISP_RETURN_IF_ERROR(CheckPure(request));
  const double loss = request.epsilon / static_cast<double>(std::max<uint64_t>(1, request.samples));
  for (double less = 0; less < 0.5; less = less == 0 ? 4 * kUlp : 2 * less) {
    WISP_ASSIGN_OR_RETURN(const Mechanism m, mechanism_of(loss * (1 - less)));
    WISP_ASSIGN_OR_RETURN(const double epsilon, PureEpsilon(std::span(&m, 1)));
    if (epsilon <= request.epsilon) return m;
  }
  return PrivacyRefused("epsilon ", DoubleText(request.epsilon), " over ", request.samples,
                        " samples is below what can be computed");
}

class SampleLossSearch {
 public:
  SampleLossSearch(const SampleRequest& request, const LossToMechanism& mechanism_of)
      : request_(request), mechanism_of_(mechanism_of) {}

  Result<SampleCalibration> At(double loss) const {
    WISP_ASSIGN_OR_RETURN(const Mechanism m, mechanism_of_(loss));
    WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(request_.target.delta()));
    std::vector<Mechanism> all(request_.composed_with.begin(), request_.composed_with.end());
    all.push_back(m);
    WISP_ASSIGN_OR_RETURN(const double epsilon, PldEpsilon(all, delta));
    return SampleCalibration{m, epsilon};
  }
  bool Keeps(const SampleCalibration& c) const { return c.epsilon <= request_.target.epsilon(); }

 private:
  const SampleRequest& request_;
  const LossToMechanism& mechanism_of_;
};

// Doubles away from the pure solution until the target is bracketed, then bisects the logarithm. `best` always keeps
// the promise.
Result<SampleCalibration> Calibrate(const SampleRequest& request, const LossToMechanism& mechanism_of) {
  const SampleLossSearch search(request, mechanism_of);
  const double pure = request.target.epsilon() / static_cast<double>(std::max<uint64_t>(1, request.samples));
  double low = std::min(pure, kLargestSampleLoss) * (1 - 1e-12), high = low;
  WISP_ASSIGN_OR_RETURN(SampleCalibration best, search.At(low));
  while (!search.Keeps(best)) {
    if (low < std::min(kSmallestSampleLoss, 1e-6 * pure)) {
      return PrivacyRefused("epsilon ", DoubleText(request.target.epsilon()), " at delta ",
                            DoubleText(request.target.delta()),
                            " cannot be met: what is spent beside the samples leaves no room, together they cost ",
                            EpsilonText(best.epsilon));
    }
    high = low;
    low /= 2;
    WISP_ASSIGN_OR_RETURN(best, search.At(low));
  }
  while (high == low) {
    if (low >= kLargestSampleLoss / 2) return best;
    WISP_ASSIGN_OR_RETURN(const SampleCalibration further, search.At(2 * low));
    high = 2 * low;
    if (!search.Keeps(further)) break;
    best = further;
    low = high;
  }
  while (high / low > 1 + kSampleLossWidth) {
    const double middle = std::sqrt(low * high);
    WISP_ASSIGN_OR_RETURN(const SampleCalibration between, search.At(middle));
    if (search.Keeps(between)) best = between;
    (search.Keeps(between) ? low : high) = middle;
  }
  return best;
}

}  // namespace

Result<Mechanism> PureResponse(const PureRequest& request, const PublicMixture& mixture) {
  const Samples samples{request.samples, request.adjacency};
  return LargestPure(request, [&](double loss) { return LossToResponse(loss, samples, mixture); });
}

Result<Mechanism> PureBoundedRange(const PureRequest& request) {
  const Samples samples{request.samples, request.adjacency};
  return LargestPure(request, [&](double loss) { return LossToRange(loss, samples); });
}

Result<SampleCalibration> CalibrateResponse(const SampleRequest& request, const PublicMixture& mixture) {
  const Samples samples{request.samples, request.adjacency};
  return Calibrate(request, [&](double loss) { return LossToResponse(loss, samples, mixture); });
}

Result<SampleCalibration> CalibrateBoundedRange(const SampleRequest& request) {
  const Samples samples{request.samples, request.adjacency};
  return Calibrate(request, [&](double loss) { return LossToRange(loss, samples); });
}

double LargestClipForRange(double range, double temperature) {
  if (!(range > 0 && temperature > 0 && std::isfinite(temperature))) return 0;
  return range * temperature / 4 * (1 - 8 * kUlp);
}

}  // namespace wisp::privacy
