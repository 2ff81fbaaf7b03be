#include "runtime/privacy/accounting/mechanism.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "runtime/core/decimal.h"
#include "runtime/core/text.h"
#include "runtime/privacy/accounting/mechanism_kind.h"

namespace wisp::privacy {
namespace {

constexpr std::array<std::string_view, 3> kAdjacencyNames = {"add_remove", "replace_one", "zero_out"};

std::string Number(double value) {
  char buffer[kDecimalBytes];
  return {buffer, WriteDecimal(buffer, value)};
}

Status Check(const char* field, double value, bool ok, const char* allowed) {
  if (ok) return OkStatus();
  return InvalidArgument("mechanism: ", field, " is ", Number(value), ", allowed is ", allowed);
}

// Numbers above 2^53 stay above it, although doubles are not that fine.
double WholeValue(uint64_t value) {
  const auto rounded = static_cast<double>(value);
  return value > uint64_t{1} << 53 ? std::max(rounded, kLargestWhole + 2) : rounded;
}

Status CheckSteps(uint64_t steps) {
  const double value = WholeValue(steps);
  return Check("steps", value, value >= 1 && value <= kLargestWhole, "1 to 2^53");
}

std::string ValueText(const MechanismParameter& parameter, double value) {
  return parameter.is_whole ? std::to_string(static_cast<uint64_t>(value)) : Number(value);
}

// The parameters that the kind has.
std::span<const MechanismParameter> ListParameters(const MechanismKind& kind) {
  const auto end = std::find_if(kind.parameters.begin(), kind.parameters.end(), [](const auto& p) { return !p.name; });
  return {kind.parameters.begin(), end};
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

bool TakeValue(std::string_view& text, const MechanismParameter& parameter, double& value) {
  if (!parameter.is_whole) return TakeField(text, parameter.name, value);
  uint64_t whole = 0;
  if (!TakeField(text, parameter.name, whole)) return false;
  value = WholeValue(whole);
  return true;
}

}  // namespace

std::string_view ToText(Adjacency adjacency) { return kAdjacencyNames[static_cast<size_t>(adjacency)]; }

Result<Adjacency> AdjacencyFromText(std::string_view text) {
  for (size_t i = 0; i < kAdjacencyNames.size(); ++i) {
    if (kAdjacencyNames[i] == text) return static_cast<Adjacency>(i);
  }
  return InvalidData("adjacency is '", OneLine(std::string(text)),
                     "', allowed are add_remove, replace_one and zero_out");
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

Result<Mechanism> Mechanism::Make(const MechanismKind& kind, const Values& values, uint64_t steps,
                                  Adjacency adjacency) {
  for (size_t i = 0; i < ListParameters(kind).size(); ++i) {
    const MechanismParameter& p = kind.parameters[i];
    const bool ok = values[i] >= p.least && values[i] <= p.most && (!p.is_whole || values[i] == std::floor(values[i]));
    WISP_RETURN_IF_ERROR(Check(p.in_words, values[i], ok, p.allowed));
  }
  WISP_RETURN_IF_ERROR(CheckSteps(steps));
  return Mechanism(kind, values, steps, adjacency);
}

Result<Mechanism> Mechanism::Gaussian(const GaussianOptions& o) {
  return Make(kGaussianKind, {o.noise_multiplier}, o.count, o.adjacency);
}

Result<Mechanism> Mechanism::PoissonSubsampledGaussian(const SubsampledOptions& o) {
  return Make(kPoissonSubsampledGaussianKind, {o.noise_multiplier, o.sampling_probability}, o.steps, o.adjacency);
}

Result<Mechanism> Mechanism::RandomisedResponse(const ResponseOptions& o) {
  return Make(kUniformResponseKind, {WholeValue(o.support), o.lambda}, o.count, o.adjacency);
}

Result<Mechanism> Mechanism::NonUniformResponse(const NonUniformResponseOptions& o) {
  return Make(kResponseKind, {o.min_probability, o.lambda}, o.count, o.adjacency);
}

Result<Mechanism> Mechanism::BoundedRange(const BoundedRangeOptions& o) {
  return Make(kBoundedRangeKind, {o.range}, o.count, o.adjacency);
}

std::string_view Mechanism::word() const { return kind_->word; }
bool Mechanism::is_sample() const { return kind_->is_sample; }

double Mechanism::Parameter(std::string_view name, double otherwise) const {
  for (size_t i = 0; i < ListParameters(*kind_).size(); ++i) {
    if (kind_->parameters[i].name == name) return values_[i];
  }
  return otherwise;
}

double Mechanism::PureEpsilonPerStep() const { return kind_->pure_epsilon ? kind_->pure_epsilon(*this) : kInfinity; }

uint64_t Mechanism::training_steps() const {
  if (kind_->steps_of_unit == nullptr) return steps_;
  const uint64_t each = kind_->steps_of_unit(*this);
  return steps_ <= std::numeric_limits<uint64_t>::max() / each ? steps_ * each : std::numeric_limits<uint64_t>::max();
}

Result<Mechanism> Mechanism::WithSteps(uint64_t steps) const {
  WISP_RETURN_IF_ERROR(CheckSteps(steps));
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
  std::string text = kind_->in_words;
  for (size_t i = 0; i < ListParameters(*kind_).size(); ++i) {
    const MechanismParameter& p = kind_->parameters[i];
    text.append(", ").append(p.in_words).append(" ").append(ValueText(p, values_[i]));
  }
  return text + ", " + std::to_string(steps_) + " " + kind_->unit + (steps_ == 1 ? "" : "s") + ", adjacency " +
         std::string(privacy::ToText(adjacency_));
}

std::string Mechanism::ToText() const {
  std::string text = kind_->word;
  for (size_t i = 0; i < ListParameters(*kind_).size(); ++i) {
    const MechanismParameter& p = kind_->parameters[i];
    text.append(" ").append(p.name).append("=").append(ValueText(p, values_[i]));
  }
  return text + " steps=" + std::to_string(steps_) + " adjacency=" + std::string(privacy::ToText(adjacency_));
}

Result<Mechanism> Mechanism::FromText(std::string_view text) {
  for (const MechanismKind* kind : MechanismKinds()) {
    std::string_view rest = text;
    const std::string_view word = kind->word;
    if (!rest.starts_with(word) || !rest.substr(word.size()).starts_with(' ')) continue;
    rest.remove_prefix(word.size() + 1);
    Values values = {};
    uint64_t steps = 0;
    bool read = true;
    for (size_t i = 0; read && i < ListParameters(*kind).size(); ++i) {
      read = TakeValue(rest, kind->parameters[i], values[i]);
    }
    constexpr std::string_view kAdjacency = "adjacency=";
    if (!read || !TakeField(rest, "steps", steps) || !rest.starts_with(kAdjacency)) continue;
    WISP_ASSIGN_OR_RETURN(const Adjacency adjacency, AdjacencyFromText(rest.substr(kAdjacency.size())));
    return Make(*kind, values, steps, adjacency);
  }
  return InvalidData("mechanism '", OneLine(std::string(text)), "' is not one that this version knows");
}

}  // namespace wisp::privacy
