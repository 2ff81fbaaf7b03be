#include "runtime/privacy/accounting/mechanism.h"

#include <array>
#include <cmath>
#include <limits>

#include "runtime/core/decimal.h"

namespace wisp::privacy {
namespace {

// No useful noise is larger; the accountants' squares would overflow only far beyond.
constexpr double kMostNoise = 1e12;

constexpr std::array<std::string_view, 3> kAdjacencyNames = {"add_remove", "replace_one", "zero_out"};
constexpr std::string_view kGaussianName = "gaussian", kSubsampledName = "poisson_subsampled_gaussian";
constexpr std::string_view kResponseName = "randomised_response", kBoundedRangeName = "bounded_range";
constexpr uint64_t kMostSteps = uint64_t{1} << 53;
// With a smaller value eps0 of a lambda near 1 would overflow.
constexpr double kSmallestMinProbability = 1e-200;

std::string Number(double value) {
  char buffer[kDecimalBytes];
  return {buffer, WriteDecimal(buffer, value)};
}

Status Check(const char* field, double value, bool ok, const char* allowed) {
  if (ok) return OkStatus();
  return InvalidArgument("mechanism: ", field, " is ", Number(value), ", allowed is ", allowed);
}

Status CheckSteps(const char* field, uint64_t steps) {
  return Check(field, static_cast<double>(steps), steps >= 1 && steps <= kMostSteps, "1 to 2^53");
}

Status CheckLambda(double lambda) { return Check("lambda", lambda, lambda >= 0 && lambda < 1, "0 and above, below 1"); }

std::string_view NameOf(Mechanism::Kind kind) {
  switch (kind) {
    case Mechanism::Kind::kGaussian:
      return kGaussianName;
    case Mechanism::Kind::kPoissonSubsampledGaussian:
      return kSubsampledName;
    case Mechanism::Kind::kRandomisedResponse:
      return kResponseName;
    case Mechanism::Kind::kBoundedRange:
      return kBoundedRangeName;
  }
  return "";
}

// Removes "name=value" and the blank behind it from the front of `text`; changes nothing if something else is there.
template <class T>
bool TakeField(std::string_view& text, std::string_view name, T& value) {
  if (!text.starts_with(name) || text.size() <= name.size() || text[name.size()] != '=') return false;
  const std::string_view number = text.substr(name.size() + 1);
  const auto [end, error] = ReadDecimal(number.data(), number.data() + number.size(), value);
  const auto length = static_cast<size_t>(end - number.data());
  if (error != std::errc() || length == number.size() || *end != ' ') return false;
  text = number.substr(length + 1);
  return true;
}

}  // namespace

std::string_view ToText(Adjacency adjacency) { return kAdjacencyNames[static_cast<size_t>(adjacency)]; }

Result<Adjacency> AdjacencyFromText(std::string_view text) {
  for (size_t i = 0; i < kAdjacencyNames.size(); ++i) {
    if (kAdjacencyNames[i] == text) return static_cast<Adjacency>(i);
  }
  return InvalidData("adjacency is '", text, "', allowed are add_remove, replace_one and zero_out");
}

Result<Delta> Delta::Create(double value) {
  if (!(value > 0 && value < 1))
    return InvalidArgument("delta is ", Number(value), ", allowed is a number between 0 and 1");
  return Delta(value);
}

Result<EpsilonDelta> EpsilonDelta::Create(double epsilon, double delta) {
  if (!(epsilon > 0 && std::isfinite(epsilon)))
    return InvalidArgument("epsilon is ", Number(epsilon), ", allowed is a positive number");
  WISP_RETURN_IF_ERROR(Delta::Create(delta).status());
  return EpsilonDelta(epsilon, delta);
}

Result<Mechanism> Mechanism::Gaussian(const GaussianOptions& o) {
  WISP_RETURN_IF_ERROR(Check("noise multiplier", o.noise_multiplier,
                             o.noise_multiplier > 0 && o.noise_multiplier <= kMostNoise,
                             "a positive number up to 1e12"));
  WISP_RETURN_IF_ERROR(CheckSteps("count", o.count));
  return Mechanism({Kind::kGaussian, o.noise_multiplier, 1}, o.count, o.adjacency);
}

Result<Mechanism> Mechanism::PoissonSubsampledGaussian(const SubsampledOptions& o) {
  WISP_RETURN_IF_ERROR(Check("noise multiplier", o.noise_multiplier,
                             o.noise_multiplier > 0 && o.noise_multiplier <= kMostNoise,
                             "a positive number up to 1e12"));
  WISP_RETURN_IF_ERROR(Check("sampling probability", o.sampling_probability,
                             o.sampling_probability > 0 && o.sampling_probability <= 1, "above 0 and up to 1"));
  WISP_RETURN_IF_ERROR(CheckSteps("steps", o.steps));
  return Mechanism({Kind::kPoissonSubsampledGaussian, o.noise_multiplier, o.sampling_probability}, o.steps,
                   o.adjacency);
}

Result<Mechanism> Mechanism::RandomisedResponse(const ResponseOptions& o) {
  WISP_RETURN_IF_ERROR(
      Check("support", static_cast<double>(o.support), o.support >= 2 && o.support <= uint64_t{1} << 53, "2 to 2^53"));
  WISP_RETURN_IF_ERROR(CheckLambda(o.lambda));
  WISP_RETURN_IF_ERROR(CheckSteps("count", o.count));
  return Mechanism({Kind::kRandomisedResponse, 1 / static_cast<double>(o.support), o.lambda, o.support}, o.count,
                   o.adjacency);
}

Result<Mechanism> Mechanism::NonUniformResponse(const NonUniformResponseOptions& o) {
  // The support has at least two values.
  const bool possible = o.min_probability >= kSmallestMinProbability && o.min_probability <= 0.5;
  WISP_RETURN_IF_ERROR(Check("smallest probability", o.min_probability, possible, "1e-200 to 0.5"));
  WISP_RETURN_IF_ERROR(CheckLambda(o.lambda));
  WISP_RETURN_IF_ERROR(CheckSteps("count", o.count));
  return Mechanism({Kind::kRandomisedResponse, o.min_probability, o.lambda}, o.count, o.adjacency);
}

Result<Mechanism> Mechanism::BoundedRange(const BoundedRangeOptions& o) {
  WISP_RETURN_IF_ERROR(Check("range", o.range, o.range > 0 && std::isfinite(o.range), "a positive number"));
  WISP_RETURN_IF_ERROR(CheckSteps("count", o.count));
  return Mechanism({Kind::kBoundedRange, o.range}, o.count, o.adjacency);
}

double Mechanism::PureEpsilonOfStep() const {
  switch (kind_) {
    case Kind::kRandomisedResponse:
      return std::log1p(second_ / ((1 - second_) * first_));
    case Kind::kBoundedRange:
      return first_;
    default:
      return std::numeric_limits<double>::infinity();
  }
}

Result<Mechanism> Mechanism::WithSteps(uint64_t steps) const {
  WISP_RETURN_IF_ERROR(CheckSteps("steps", steps));
  Mechanism other = *this;
  other.steps_ = steps;
  return other;
}

bool Mechanism::DiffersInStepsOnly(const Mechanism& other) const {
  Mechanism same = other;
  same.steps_ = steps_;
  return same == *this;
}

std::string Mechanism::Describe() const {
  std::string text;
  switch (kind_) {
    case Kind::kGaussian:
      text = "Gaussian, noise multiplier " + Number(first_);
      break;
    case Kind::kPoissonSubsampledGaussian:
      text = "Poisson-subsampled Gaussian, noise multiplier " + Number(first_) + ", sampling probability " +
             Number(second_);
      break;
    case Kind::kRandomisedResponse:
      text = "randomised response, " +
             (support_ > 0 ? "support " + std::to_string(support_) : "smallest public probability " + Number(first_)) +
             ", lambda " + Number(second_);
      break;
    case Kind::kBoundedRange:
      text = "bounded-range draw, range " + Number(first_);
      break;
  }
  const char* step = is_gaussian() ? " step" : " draw";
  return text + ", " + std::to_string(steps_) + step + (steps_ == 1 ? "" : "s") + ", adjacency " +
         std::string(privacy::ToText(adjacency_));
}

std::string Mechanism::ToText() const {
  std::string text(NameOf(kind_));
  switch (kind_) {
    case Kind::kGaussian:
      text += " noise_multiplier=" + Number(first_);
      break;
    case Kind::kPoissonSubsampledGaussian:
      text += " noise_multiplier=" + Number(first_) + " sampling_probability=" + Number(second_);
      break;
    case Kind::kRandomisedResponse:
      text += (support_ > 0 ? " support=" + std::to_string(support_) : " min_probability=" + Number(first_)) +
              " lambda=" + Number(second_);
      break;
    case Kind::kBoundedRange:
      text += " range=" + Number(first_);
      break;
  }
  return text + " steps=" + std::to_string(steps_) + " adjacency=" + std::string(privacy::ToText(adjacency_));
}

Result<Mechanism> Mechanism::FromText(std::string_view text) {
  const Status malformed = InvalidData("mechanism '", text, "' is not one that this version knows");
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return malformed;
  const std::string_view name = text.substr(0, blank);
  std::string_view rest = text.substr(blank + 1);
  double first = 0, second = 0;
  uint64_t support = 0, steps = 0;
  bool read = false;
  if (name == kGaussianName) {
    read = TakeField(rest, "noise_multiplier", first);
  } else if (name == kSubsampledName) {
    read = TakeField(rest, "noise_multiplier", first) && TakeField(rest, "sampling_probability", second);
  } else if (name == kResponseName) {
    read = (TakeField(rest, "support", support) || TakeField(rest, "min_probability", first)) &&
           TakeField(rest, "lambda", second);
  } else if (name == kBoundedRangeName) {
    read = TakeField(rest, "range", first);
  }
  if (!read || !TakeField(rest, "steps", steps) || !rest.starts_with("adjacency=")) return malformed;
  rest.remove_prefix(std::string_view("adjacency=").size());
  WISP_ASSIGN_OR_RETURN(const Adjacency adjacency, AdjacencyFromText(rest));
  if (name == kGaussianName) return Gaussian({.noise_multiplier = first, .count = steps, .adjacency = adjacency});
  if (name == kSubsampledName) {
    return PoissonSubsampledGaussian(
        {.noise_multiplier = first, .sampling_probability = second, .steps = steps, .adjacency = adjacency});
  }
  if (name == kBoundedRangeName) return BoundedRange({.range = first, .count = steps, .adjacency = adjacency});
  if (first > 0)
    return NonUniformResponse({.min_probability = first, .lambda = second, .count = steps, .adjacency = adjacency});
  return RandomisedResponse({.support = support, .lambda = second, .count = steps, .adjacency = adjacency});
}

}  // namespace wisp::privacy
