#include "runtime/personalise/plan_releases.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/privacy/json.h"
#include "runtime/train/bias_weight.h"
#include "runtime/train/budget.h"
#include "runtime/train/successions.h"

namespace wisp {
namespace {

using privacy::ChargeRequest;

// The charge of so many releases of one kind with that noise.
using ChargeOf = std::function<Result<ChargeRequest>(double noise_multiplier, uint64_t releases)>;

struct Kind {
  uint32_t releases;
  double share;
  double& noise;
  ChargeOf charge;
};

std::vector<Kind> Kinds(const Architecture& a, DeploymentSettings& s) {
  const auto secure = privacy::NoiseKind::kSecure;
  return {
      {s.bias_weight_releases, s.bias_weight_share, s.bias_weight_noise,
       [](double noise, uint64_t releases) { return BiasWeightCharge({.noise_multiplier = noise}, secure, releases); }},
      {s.succession_releases, s.succession_share, s.succession_noise, [&a](double noise, uint64_t releases) {
         return SuccessionCharge({.noise_multiplier = noise}, a.num_items, secure, releases);
       }}};
}

}  // namespace

EvaluationRule DeploymentSettings::rule() const {
  return {.error = bias_weight_share > 0 ? error / 2 : error,
          .num_evaluations = evaluates_locally != 0 ? runs : evaluations,  // locally every run evaluates
          .decay = decay};
}

EvaluationRule DeploymentSettings::weight_rule() const {
  // Each release may find each of the weights that it tries.
  constexpr auto kTried = static_cast<uint32_t>(kBiasWeights.size());
  return {.error = error / 2, .num_evaluations = kTried * std::max(1u, bias_weight_releases)};
}

Status CheckReleases(const DeploymentSettings& s) {
  const auto check = [](const char* what, uint32_t releases, double share) {
    if (releases == 0 || (share > 0 && share < 1)) return OkStatus();
    return InvalidArgument("the share of the budget for ", what, " is ", privacy::DoubleText(share),
                           ", allowed is above 0 and below 1");
  };
  WISP_RETURN_IF_ERROR(check("the weight of the bias", s.bias_weight_releases, s.bias_weight_share));
  return check("successions", s.succession_releases, s.succession_share);
}

double ComputeBudget(const DeploymentSettings& s) {
  const auto cdf = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  double low = 0, high = 100;
  for (int i = 0; i < 60; ++i) {
    const double mu = (low + high) / 2;
    const double needed = cdf(mu / 2 - s.epsilon / mu) - std::exp(s.epsilon) * cdf(-mu / 2 - s.epsilon / mu);
    (needed < s.delta ? low : high) = mu;
  }
  return low * low;
}

double NoiseOfShare(const DeploymentSettings& s, double share, uint64_t releases) {
  return std::sqrt(static_cast<double>(releases) / (share * ComputeBudget(s)));
}

double ComputeEvaluationNoise(const DeploymentSettings& s) {
  // Gains of records were measured to deviate by a fifth of the gain that counts as 1, and more where few are tested.
  constexpr double kDeviation = 0.2, kOfChance = 0.5;
  return std::max(NoiseOfShare(s, kMostOfEvaluations, s.evaluations),
                  kOfChance * kDeviation * std::sqrt(s.share_present() * s.num_records_public));
}

Result<std::vector<ChargeRequest>> PlanReleases(const Architecture& grown, DeploymentSettings& s) {
  std::vector<ChargeRequest> charges;
  for (const Kind& kind : Kinds(grown, s)) {
    if (kind.releases == 0) continue;
    kind.noise = NoiseOfShare(s, kind.share, kind.releases);
    WISP_ASSIGN_OR_RETURN(const ChargeRequest all, kind.charge(kind.noise, kind.releases));
    charges.push_back(all);
  }
  if (!EvaluatesPrivately(s)) return charges;
  s.evaluation_noise = ComputeEvaluationNoise(s);
  WISP_ASSIGN_OR_RETURN(const ChargeRequest all,
                        EvaluationCharge({.noise_multiplier = s.evaluation_noise}, s.evaluations));
  charges.push_back(all);
  return charges;
}

Result<std::vector<privacy::Mechanism>> RunMechanisms(const Architecture& architecture, const DeploymentSettings& s) {
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PlanSteps(architecture, s));
  WISP_ASSIGN_OR_RETURN(std::vector<privacy::Mechanism> mechanisms, plan.Mechanisms(s.steps_per_run));
  DeploymentSettings settings = s;
  for (const Kind& kind : Kinds(architecture, settings)) {
    if (kind.releases == 0) continue;
    WISP_ASSIGN_OR_RETURN(const ChargeRequest release, kind.charge(kind.noise, 1));
    mechanisms.push_back(release.mechanism);
  }
  if (!EvaluatesPrivately(s)) return mechanisms;
  WISP_ASSIGN_OR_RETURN(const ChargeRequest evaluation, EvaluationCharge({.noise_multiplier = s.evaluation_noise}));
  mechanisms.push_back(evaluation.mechanism);
  return mechanisms;
}

void CountReleasesLeft(std::span<const privacy::LedgerEntry> entries, const DeploymentSettings& s,
                       DeploymentLeft& left) {
  const auto count = [&](const char* purpose, uint64_t planned) {
    for (const privacy::LedgerEntry& e : entries) {
      if (e.purpose == purpose) planned -= std::min(planned, e.mechanism.steps());
    }
    return planned;
  };
  left.bias_weight_releases = count(kBiasWeightPurpose, s.bias_weight_releases);
  left.succession_releases = count(kSuccessionsPurpose, s.succession_releases);
  left.evaluations = EvaluatesPrivately(s) ? count(kEvaluationPurpose, s.evaluations) : 0;
}

}  // namespace wisp
