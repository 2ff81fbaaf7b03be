#include "runtime/privacy/mechanism.h"

#include <array>
#include <charconv>
#include <cmath>

namespace wisp::privacy {
namespace {

constexpr std::array<std::string_view, 3> kAdjacencyNames = {"add_remove", "replace_one", "zero_out"};
constexpr std::string_view kGaussianName = "gaussian", kSubsampledName = "poisson_subsampled_gaussian";

std::string Number(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

Status Check(const char* field, double value, bool ok, const char* allowed) {
  if (ok) return OkStatus();
  return InvalidArgument(std::string("mechanism: ") + field + " is " + Number(value) + ", allowed is " + allowed);
}

// "name=value" at the front of `text`, and the blank behind it, are taken away.
template <class T>
bool TakeField(std::string_view& text, std::string_view name, T& value) {
  if (!text.starts_with(name) || text.size() <= name.size() || text[name.size()] != '=') return false;
  text.remove_prefix(name.size() + 1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty() || text[0] != ' ') return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string_view ToText(Adjacency adjacency) { return kAdjacencyNames[static_cast<size_t>(adjacency)]; }

Result<Adjacency> AdjacencyFromText(std::string_view text) {
  for (size_t i = 0; i < kAdjacencyNames.size(); ++i) {
    if (kAdjacencyNames[i] == text) return static_cast<Adjacency>(i);
  }
  return InvalidData("adjacency is '" + std::string(text) + "', allowed are add_remove, replace_one and zero_out");
}

Result<Delta> Delta::Create(double value) {
  if (!(value > 0 && value < 1)) return InvalidArgument("delta is " + Number(value) + ", allowed is a number between 0 and 1");
  return Delta(value);
}

Result<EpsilonDelta> EpsilonDelta::Create(double epsilon, double delta) {
  if (!(epsilon > 0 && std::isfinite(epsilon))) return InvalidArgument("epsilon is " + Number(epsilon) + ", allowed is a positive number");
  WISP_RETURN_IF_ERROR(Delta::Create(delta).status());
  return EpsilonDelta(epsilon, delta);
}

Result<Mechanism> Mechanism::Gaussian(const GaussianOptions& o) {
  WISP_RETURN_IF_ERROR(Check("noise multiplier", o.noise_multiplier, o.noise_multiplier > 0 && std::isfinite(o.noise_multiplier), "a positive number"));
  WISP_RETURN_IF_ERROR(Check("count", static_cast<double>(o.count), o.count >= 1 && o.count <= uint64_t{1} << 53, "1 to 2^53"));
  return Mechanism(Kind::kGaussian, o.noise_multiplier, 1, o.count, o.adjacency);
}

Result<Mechanism> Mechanism::PoissonSubsampledGaussian(const SubsampledOptions& o) {
  WISP_RETURN_IF_ERROR(Check("noise multiplier", o.noise_multiplier, o.noise_multiplier > 0 && std::isfinite(o.noise_multiplier), "a positive number"));
  WISP_RETURN_IF_ERROR(Check("sampling probability", o.sampling_probability, o.sampling_probability > 0 && o.sampling_probability <= 1, "above 0 and up to 1"));
  WISP_RETURN_IF_ERROR(Check("steps", static_cast<double>(o.steps), o.steps >= 1 && o.steps <= uint64_t{1} << 53, "1 to 2^53"));
  return Mechanism(Kind::kPoissonSubsampledGaussian, o.noise_multiplier, o.sampling_probability, o.steps, o.adjacency);
}

Result<Mechanism> Mechanism::WithSteps(uint64_t steps) const {
  WISP_RETURN_IF_ERROR(Check("steps", static_cast<double>(steps), steps >= 1 && steps <= uint64_t{1} << 53, "1 to 2^53"));
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
  std::string text = kind_ == Kind::kGaussian ? "Gaussian" : "Poisson-subsampled Gaussian";
  text += ", noise multiplier " + Number(noise_multiplier_);
  if (kind_ == Kind::kPoissonSubsampledGaussian) text += ", sampling probability " + Number(sampling_probability_);
  return text + ", " + std::to_string(steps_) + (steps_ == 1 ? " step" : " steps") + ", adjacency " + std::string(privacy::ToText(adjacency_));
}

std::string Mechanism::ToText() const {
  std::string text(kind_ == Kind::kGaussian ? kGaussianName : kSubsampledName);
  text += " noise_multiplier=" + Number(noise_multiplier_);
  if (kind_ == Kind::kPoissonSubsampledGaussian) text += " sampling_probability=" + Number(sampling_probability_);
  return text + " steps=" + std::to_string(steps_) + " adjacency=" + std::string(privacy::ToText(adjacency_));
}

Result<Mechanism> Mechanism::FromText(std::string_view text) {
  const Status malformed = InvalidData("mechanism '" + std::string(text) + "' is not one that this version knows");
  const bool subsampled = text.starts_with(kSubsampledName);
  const std::string_view name = subsampled ? kSubsampledName : kGaussianName;
  std::string_view rest = text;
  if (!rest.starts_with(name) || rest.size() <= name.size() || rest[name.size()] != ' ') return malformed;
  rest.remove_prefix(name.size() + 1);
  SubsampledOptions o;
  if (!TakeField(rest, "noise_multiplier", o.noise_multiplier)) return malformed;
  if (subsampled && !TakeField(rest, "sampling_probability", o.sampling_probability)) return malformed;
  if (!TakeField(rest, "steps", o.steps) || !rest.starts_with("adjacency=")) return malformed;
  rest.remove_prefix(std::string_view("adjacency=").size());
  WISP_ASSIGN_OR_RETURN(o.adjacency, AdjacencyFromText(rest));
  if (subsampled) return PoissonSubsampledGaussian(o);
  return Gaussian({.noise_multiplier = o.noise_multiplier, .count = o.steps, .adjacency = o.adjacency});
}

}  // namespace wisp::privacy
