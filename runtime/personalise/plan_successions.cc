#include "runtime/personalise/plan_successions.h"

#include "runtime/train/budget.h"
#include "runtime/train/successions.h"

namespace wisp {

Result<std::vector<privacy::ChargeRequest>> PlanSuccessions(const Architecture& grown, double delta,
                                                            DeploymentSettings& settings) {
  DeploymentSettings& s = settings;
  std::vector<privacy::ChargeRequest> charges;
  if (s.succession_releases == 0) return charges;
  const auto charge = [&](double noise_multiplier) {
    return SuccessionCharge({.noise_multiplier = noise_multiplier, .part = s.training_part()}, grown.num_items,
                            privacy::NoiseKind::kSecure, s.succession_releases);
  };
  WISP_ASSIGN_OR_RETURN(const privacy::EpsilonDelta alone,
                        privacy::EpsilonDelta::Create(s.succession_share * s.epsilon, delta));
  WISP_ASSIGN_OR_RETURN(s.succession_noise, Budget::CalibrateReleases(alone, charge));
  WISP_ASSIGN_OR_RETURN(const privacy::ChargeRequest all, charge(s.succession_noise));
  charges.push_back(all);
  return charges;
}

Result<std::vector<privacy::Mechanism>> RunMechanisms(const Architecture& architecture, const DeploymentSettings& s) {
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PlanSteps(architecture, s));
  WISP_ASSIGN_OR_RETURN(std::vector<privacy::Mechanism> mechanisms, plan.Mechanisms(s.steps_per_run));
  if (s.succession_releases == 0) return mechanisms;
  WISP_ASSIGN_OR_RETURN(
      const privacy::ChargeRequest release,
      SuccessionCharge({.noise_multiplier = s.succession_noise}, architecture.num_items, privacy::NoiseKind::kSecure));
  mechanisms.push_back(release.mechanism);
  return mechanisms;
}

}  // namespace wisp
