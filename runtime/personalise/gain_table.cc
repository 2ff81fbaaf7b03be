#include "runtime/personalise/gain_table.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/personalise/plan_releases.h"

namespace wisp {
namespace {

// The mu that the plan's releases and evaluations leave for its steps.
double MuOfSteps(const DeploymentSettings& s) {
  const double budget = ComputeBudget(s);
  double left = budget * (1 - s.bias_weight_share - s.succession_share);
  if (EvaluatesPrivately(s)) {
    const double noise = ComputeEvaluationNoise(s);
    left -= s.evaluations / (noise * noise);
  }
  return std::sqrt(std::max(1e-6, left));
}

// The mu of all steps is this times sqrt(exp(1 / noise^2) - 1).
double SampledRoot(const DeploymentSettings& s) {
  const double rate = s.expected_batch / static_cast<double>(s.num_records_public);
  return rate * std::sqrt(static_cast<double>(s.num_steps()));
}

}  // namespace

DeploymentSettings ScalePlan(const Architecture& a, const DeploymentRequest& other, const DeploymentSettings& planned) {
  DeploymentSettings s = SuggestDeployment(other);
  // 1 if the formulas were exact; it makes them so for the plan itself.
  const double exact = SampledRoot(planned) *
                       std::sqrt(std::expm1(1 / (planned.training_noise * planned.training_noise))) /
                       MuOfSteps(planned);
  const auto scale = [&] {
    const double mu = exact * MuOfSteps(s) / SampledRoot(s);
    s.training_noise = 1 / std::sqrt(std::log1p(mu * mu));
  };
  scale();
  const DeploymentSettings without = s;
  ChooseReleases(a, without, s);
  if (s.succession_releases > 0) s.succession_noise = NoiseOfShare(s, s.succession_share, s.succession_releases);
  scale();
  return s;
}

std::vector<GainAt> ForecastGains(const Architecture& a, const DeploymentRequest& request,
                                  const DeploymentSettings& planned) {
  std::set<double> epsilons = {1, 2, 4, 8};
  epsilons.insert(request.epsilon);
  std::vector<GainAt> gains;
  for (const double times : {0.25, 1.0, 4.0}) {
    DeploymentRequest other = request;
    const auto scaled = [&](uint32_t people) {
      return static_cast<uint32_t>(std::min<double>(std::ceil(times * people), UINT32_MAX));
    };
    other.num_records_public = scaled(request.num_records_public);
    if (!gains.empty() && gains.back().people == other.num_records_public) continue;
    other.num_records_at_start = scaled(request.num_records_at_start);
    for (const double epsilon : epsilons) {
      other.epsilon = epsilon;
      const bool is_plan = times == 1 && epsilon == request.epsilon;
      const DeploymentSettings s = is_plan ? planned : ScalePlan(a, other, planned);
      gains.push_back({other.num_records_public, epsilon, ForecastGain(GetPublicNumbers(a, s))});
    }
  }
  return gains;
}

}  // namespace wisp
