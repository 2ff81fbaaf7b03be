// Implements `wisp privacy`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "runtime/private_sampling/sample_cost.h"
#include "runtime/private_sampling/sample_law.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/accounting/decoding_calibration.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger/ledger_anchor.h"
#include "runtime/privacy/ledger_statement.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/output.h"
#include "tools/wisp/statement_models.h"

namespace wisp::tools {
namespace {

// JSON has no infinity; scripts look for the word.
Json Figure(double value) { return std::isinf(value) ? Json("infinity") : Json(value); }

std::string Up(double epsilon) { return privacy::EpsilonText(epsilon, 5); }

// The distribution that is mixed in: the uniform one, or any one that has a share of it.
privacy::PublicMixture MakeMixture(const PrivacyArguments& a) {
  if (!a.mixing_floor) return {.support = a.support};
  return {.min_probability = MinMixtureProbability(*a.mixing_floor, a.support)};
}

Result<privacy::Mechanism> CalibratedSamples(const PrivacyArguments& a) {
  if (!a.epsilon) return InvalidArgument("--calibrate needs --epsilon");
  WISP_RETURN_IF_ERROR(privacy::CheckTarget(*a.epsilon));
  WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(*a.epsilon, a.delta));
  const privacy::SampleRequest request{.target = target, .samples = a.steps};
  WISP_ASSIGN_OR_RETURN(const auto c, a.support > 0 ? privacy::CalibrateResponse(request, MakeMixture(a))
                                                    : privacy::CalibrateBoundedRange(request));
  return c.mechanism;
}

// With a support the mechanism is mixing, with contexts it is aggregation, and otherwise it is anchored.
Result<privacy::Mechanism> MakeSamples(const PrivacyArguments& a, uint64_t samples) {
  using Kind = SampleCost::Kind;
  const SampleCost cost =
      a.support > 0    ? SampleCost{.kind = a.mixing_floor ? Kind::kNonUniformMixing : Kind::kUniformMixing,
                                    .support = a.support,
                                    .lambda = a.lambda,
                                    .min_probability = MakeMixture(a).min_probability}
      : a.contexts > 0 ? AggregateSampleCost({.clip = a.clip, .temperature = a.temperature, .contexts = a.contexts})
                       : AnchoredSampleCost(a.clip, a.temperature, 2);
  return ToMechanism(cost, samples, privacy::Adjacency::kAddRemove);
}

// Finds the most samples that the target pays for, by doubling and bisection: more samples never cost less.
Result<privacy::Mechanism> MostSamples(const PrivacyArguments& a, const privacy::Delta& delta) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  WISP_RETURN_IF_ERROR(privacy::CheckTarget(*a.epsilon));
  const auto fits = [&](uint64_t samples) -> Result<bool> {
    WISP_ASSIGN_OR_RETURN(const auto mechanism, MakeSamples(a, samples));
    WISP_ASSIGN_OR_RETURN(const auto stated, privacy::StateEpsilon(std::span(&mechanism, 1), delta));
    return stated.epsilon <= *a.epsilon;
  };
  uint64_t low = 0, high = 1;
  while (high <= kMost) {
    WISP_ASSIGN_OR_RETURN(const bool more, fits(high));
    if (!more) break;
    low = std::exchange(high, 2 * high);
  }
  if (low == 0)
    return PrivacyRefused("one sample costs more than epsilon ", *a.epsilon, " at delta ",
                          privacy::DoubleText(a.delta));
  while (high - low > 1 && low < kMost) {
    const uint64_t middle = low + (high - low) / 2;
    WISP_ASSIGN_OR_RETURN(const bool more, fits(middle));
    (more ? low : high) = middle;
  }
  return MakeSamples(a, low);
}

Result<privacy::Mechanism> Samples(const PrivacyArguments& a, const privacy::Delta& delta) {
  if (a.mixing_floor && !(a.support > 0 && *a.mixing_floor >= kLeastMixingFloor && *a.mixing_floor <= 1))
    return InvalidArgument("--mixing-floor goes with --support and is 1e-4 to 1");
  if (a.contexts > 0 && a.support > 0) return InvalidArgument("--contexts goes with --clip, not with --support");
  if (!(a.temperature > 0 && std::isfinite(a.temperature)))
    return InvalidArgument("--temperature is ", a.temperature, ", allowed is a positive number");
  if (a.calibrate && a.steps == 0) return InvalidArgument("--calibrate needs --samples");
  if (a.calibrate) return CalibratedSamples(a);
  if ((a.support > 0) == (a.clip > 0))
    return InvalidArgument("samples are described by --support and --lambda, or by --clip (and --temperature)");
  if (a.steps > 0) return MakeSamples(a, a.steps);
  if (a.epsilon) return MostSamples(a, delta);
  return InvalidArgument("--samples is needed, or --epsilon for the most samples that it pays for");
}

// Returns the clip of calibrated samples that matches their range; otherwise the clip that was asked for.
Result<double> ComputeClip(const PrivacyArguments& a, const privacy::Mechanism& samples) {
  if (!a.calibrate) return a.clip;
  if (a.contexts == 0) return privacy::LargestClipForRange(samples.range() - kAnchoredRangeSlack, a.temperature);
  return AggregateClipForRange(samples.range(), {.temperature = a.temperature, .contexts = a.contexts});
}

}  // namespace

Status PrivacyDecoding(const PrivacyArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(a.delta));
  WISP_ASSIGN_OR_RETURN(const auto samples, Samples(a, delta));
  const std::vector spent = {samples};
  WISP_ASSIGN_OR_RETURN(const double pure, privacy::PureEpsilon(spent));
  WISP_ASSIGN_OR_RETURN(const auto stated, privacy::StateEpsilon(spent, delta));
  WISP_ASSIGN_OR_RETURN(const double rdp, privacy::RdpEpsilon(spent, delta));
  const bool mixed = samples.word() == "randomised_response";
  double strength = samples.lambda();
  if (!mixed) {
    WISP_ASSIGN_OR_RETURN(strength, ComputeClip(a, samples));
  }
  const char* mode = mixed ? (a.mixing_floor ? "mixed-with-base" : "mixed") : a.contexts > 0 ? "aggregate" : "anchored";
  if (format == OutputFormat::kJson) {
    Json j = {{"mode", mode}, {mixed ? "lambda" : "clip", strength}};
    if (mixed) j["random_share"] = 1 - strength;
    j.update(Json({{"samples", samples.steps()},
                   {"pure_per_sample", samples.PureEpsilonPerStep()},
                   {"pure", Figure(pure)},
                   {"pld", Figure(stated.epsilon)},
                   {"rdp", Figure(rdp)},
                   {"set_by", privacy::ToText(stated.accountant)}}));
    PrintJson(j, kOneLine);
    return OkStatus();
  }
  const std::string at = privacy::DoubleText(a.delta);
  PrintText(
      "%s\n  %s %s\n  pure     epsilon %s   (delta 0, %s a sample)\n"
      "  PLD      epsilon %s   (delta %s; an upper bound, the figure to state; set by %s)\n  RDP      epsilon %s   "
      "(delta %s; an upper bound)\n",
      samples.Describe().c_str(), mixed ? "lambda" : "clip", privacy::DoubleText(strength).c_str(), Up(pure).c_str(),
      Up(samples.PureEpsilonPerStep()).c_str(), Up(stated.epsilon).c_str(), at.c_str(),
      std::string(privacy::ToText(stated.accountant)).c_str(), Up(rdp).c_str(), at.c_str());
  if (mixed) PrintText("  %.4g %% of the samples are random: the same for every model\n", 100 * (1 - strength));
  return OkStatus();
}

Status PrivacyEpsilon(const PrivacyArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(
      const auto mechanism,
      privacy::Mechanism::PoissonSubsampledGaussian(
          {.noise_multiplier = a.noise_multiplier, .sampling_probability = a.sampling_probability, .steps = a.steps}));
  WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(a.delta));
  const std::vector spent = {mechanism};
  WISP_ASSIGN_OR_RETURN(const double pld, privacy::PldEpsilon(spent, delta));
  WISP_ASSIGN_OR_RETURN(const double rdp, privacy::RdpEpsilon(spent, delta));
  WISP_ASSIGN_OR_RETURN(const double gdp, privacy::GdpCltEpsilon(spent, delta));
  if (format == OutputFormat::kJson) {
    PrintJson(Json({{"pld", Figure(pld)},
                    {"rdp", Figure(rdp)},
                    {"gdp_clt", Figure(gdp)},
                    {"stated", Figure(std::min(pld, rdp))},
                    {"set_by", pld <= rdp ? "PLD" : "RDP"}}),
              kOneLine);
  } else {
    PrintText(
        "%s, delta %s\n  PLD      epsilon %s   (an upper bound)\n  RDP      epsilon %s   (an upper bound)\n"
        "  GDP-CLT  epsilon %s   (asymptotic, may understate)\n  to state epsilon %s   (the smaller upper bound, %s)\n",
        mechanism.Describe().c_str(), privacy::DoubleText(a.delta).c_str(), Up(pld).c_str(), Up(rdp).c_str(),
        Up(gdp).c_str(), Up(std::min(pld, rdp)).c_str(), pld <= rdp ? "PLD" : "RDP");
  }
  return OkStatus();
}

Status PrivacyCalibrate(const PrivacyArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(*a.epsilon, a.delta));
  WISP_RETURN_IF_ERROR(privacy::Mechanism::PoissonSubsampledGaussian(
                           {.noise_multiplier = 1, .sampling_probability = a.sampling_probability, .steps = a.steps})
                           .status());
  WISP_ASSIGN_OR_RETURN(
      const auto c,
      privacy::CalibrateNoise({.target = target, .sampling_probability = a.sampling_probability, .steps = a.steps}));
  if (format == OutputFormat::kJson) {
    PrintJson(Json({{"sigma", c.noise_multiplier}, {"pld", c.epsilon}}), kOneLine);
  } else {
    // Prints the noise in full, so that reading it back gives the same value and not a little less.
    PrintText("noise multiplier %s: epsilon %s at delta %s by PLD\n", privacy::DoubleText(c.noise_multiplier).c_str(),
              Up(c.epsilon).c_str(), privacy::DoubleText(a.delta).c_str());
  }
  return OkStatus();
}

Status PrivacyLedger(const PrivacyArguments& a, OutputFormat format) {
  if (a.ledger.empty())
    return InvalidArgument(
        "wisp privacy needs --ledger, or one of the commands check, epsilon, calibrate and decoding; see "
        "wisp privacy --help");
  // The anchor may be read-only.
  const auto anchor = a.anchor.file.empty() ? nullptr : privacy::FileAnchor(a.anchor.file);
  WISP_ASSIGN_OR_RETURN(const privacy::Ledger ledger, privacy::Ledger::OpenExisting(a.ledger, anchor, a.anchor.begin));
  WISP_ASSIGN_OR_RETURN(const auto limit, ledger.Limit());
  WISP_ASSIGN_OR_RETURN(const auto delta,
                        privacy::Delta::Create(a.at_delta.value_or(limit ? limit->delta() : a.delta)));
  WISP_ASSIGN_OR_RETURN(privacy::PrivacyStatement statement, privacy::MakeStatement(ledger, a.ledger, delta));
  statement.created_by = "wisp " + Version();
  for (const std::string& model : a.models) {
    WISP_ASSIGN_OR_RETURN(privacy::StatedModel stated, StateModel(model, ledger, a.other_data));
    statement.models.push_back(std::move(stated));
  }
  PrintText("%s\n", (format == OutputFormat::kJson ? privacy::ToJson(statement) : privacy::ToText(statement)).c_str());
  return OkStatus();
}

}  // namespace wisp::tools
