#include "runtime/personalise/plan_releases.h"

#include <algorithm>
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
  return {.error = bias_weight_share > 0 ? error / 2 : error, .num_evaluations = evaluations, .decay = decay};
}

EvaluationRule DeploymentSettings::weight_rule() const {
  // Each release may find each of the weights that it tries.
  constexpr auto kTried = static_cast<uint32_t>(kBiasWeights.size());
  return {.error = error / 2, .num_evaluations = kTried * std::max(1u, bias_weight_releases)};
}

Status CheckReleases(const DeploymentSettings& s) {
  const auto check = [](const char* what, uint32_t releases, double share) {
    if (releases == 0 || (share > 0 && share < 1)) return OkStatus();
    return InvalidArgument("the share of epsilon for ", what, " is ", privacy::DoubleText(share),
                           ", allowed is above 0 and below 1");
  };
  WISP_RETURN_IF_ERROR(check("the weight of the bias", s.bias_weight_releases, s.bias_weight_share));
  return check("successions", s.succession_releases, s.succession_share);
}

Result<std::vector<ChargeRequest>> PlanReleases(const Architecture& grown, double delta, DeploymentSettings& s) {
  std::vector<ChargeRequest> charges;
  for (const Kind& kind : Kinds(grown, s)) {
    if (kind.releases == 0) continue;
    WISP_ASSIGN_OR_RETURN(const privacy::EpsilonDelta alone,
                          privacy::EpsilonDelta::Create(kind.share * s.epsilon, delta));
    WISP_ASSIGN_OR_RETURN(
        kind.noise, Budget::CalibrateReleases(alone, [&](double noise) { return kind.charge(noise, kind.releases); }));
    WISP_ASSIGN_OR_RETURN(const ChargeRequest all, kind.charge(kind.noise, kind.releases));
    charges.push_back(all);
  }
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
  left.evaluations = s.evaluates_locally != 0 ? 0 : count(kEvaluationPurpose, s.evaluations);
}

}  // namespace wisp
