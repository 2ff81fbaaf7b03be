#include "runtime/train/run/noise_goal.h"

#include <algorithm>
#include <cmath>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/json.h"
#include "runtime/train/popularity.h"
#include "runtime/train/privacy_plan.h"

namespace wisp {

using privacy::Mechanism;

namespace {

// The mechanisms of so many runs.
Result<std::vector<Mechanism>> Repeated(const std::vector<Mechanism>& of_run, uint64_t runs) {
  std::vector<Mechanism> all;
  for (const Mechanism& m : of_run) {
    WISP_ASSIGN_OR_RETURN(Mechanism mechanism, m.WithSteps(m.steps() * runs));
    all.push_back(mechanism);
  }
  return all;
}

// The overheads of all planned runs.
Result<std::vector<Mechanism>> AllOverheads(const GoalShare& share) {
  WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> of_run, Overheads(share));
  return Repeated(of_run, share.planned_runs);
}

// The noise with which the continuous mechanisms together meet the target, and their cost.
Result<double> CalibrateTo(const Architecture& a, const privacy::EpsilonDelta& target, const GoalShare& share,
                           TrainingOptions& o) {
  const uint64_t steps = o.num_steps * share.planned_runs;
  WISP_ASSIGN_OR_RETURN(std::vector<Mechanism> beside, AllOverheads(share));
  double epsilon = 0;
  if (ReleasesHead(o)) {
    const double part = HasGradients(o) ? share.head_share : 1.0;
    WISP_ASSIGN_OR_RETURN(const auto of_head, privacy::EpsilonDelta::Create(target.epsilon() * part, target.delta()));
    const double probability = MicroBatchProbability(o);
    const uint64_t releases = steps * o.dp_fp.micro_batches;
    WISP_ASSIGN_OR_RETURN(
        const auto head,
        privacy::CalibrateNoise(
            {.target = of_head, .sampling_probability = probability, .steps = releases, .composed_with = beside}));
    o.dp_fp.noise_multiplier = head.noise_multiplier;
    epsilon = head.epsilon;
    WISP_ASSIGN_OR_RETURN(
        Mechanism mechanism,
        Mechanism::PoissonSubsampledGaussian(
            {.noise_multiplier = head.noise_multiplier, .sampling_probability = probability, .steps = releases}));
    beside.push_back(mechanism);
  }
  if (!HasGradients(o)) return epsilon;
  o.privacy.noise_multiplier = 1;
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(a, o));
  const auto of_runs = [&](double noise_multiplier) -> Result<std::vector<Mechanism>> {
    WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> of_run,
                          plan.Mechanisms(plan.parts().back(), o.num_steps, noise_multiplier));
    return Repeated(of_run, share.planned_runs);
  };
  WISP_ASSIGN_OR_RETURN(
      const auto gradients,
      privacy::CalibrateNoise({.target = target, .steps = steps, .composed_with = beside, .mechanisms = of_runs}));
  o.privacy.noise_multiplier = gradients.noise_multiplier;
  return gradients.epsilon;
}

// eta of exact_sum.h for all planned runs: how far the discrete noise is from the Gaussian that is accounted for.
Result<double> LossSlack(const Architecture& a, const GoalShare& share, TrainingOptions o) {
  if (o.method == Method::kFest) o.method = Method::kPhantom;  // more coordinates than FEST will have
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(a, o));
  double slack = share.planned_runs * plan.LossSlack(o.num_steps);
  if (share.histogram_noise > 0) slack += share.planned_runs * PopularityLossSlack(share.histogram_noise, a.num_items);
  return slack;
}

Status TakeGiven(double noise_multiplier, TrainingOptions& o) {
  if (!ReleasesHead(o)) {
    o.privacy.noise_multiplier = noise_multiplier;
    return OkStatus();
  }
  if (HasGradients(o) && o.privacy.noise_multiplier == 0) {
    return InvalidArgument("the noise multiplier ", noise_multiplier,
                           " is that of the releases; mode clipped needs the encoder's too "
                           "(dp_fp.encoder.noise_multiplier of the recipe), or an epsilon that both follow from");
  }
  o.dp_fp.noise_multiplier = noise_multiplier;
  return OkStatus();
}

}  // namespace

Result<std::vector<Mechanism>> Overheads(const GoalShare& share) {
  std::vector<Mechanism> mechanisms;
  if (share.histogram_noise > 0) {
    WISP_ASSIGN_OR_RETURN(Mechanism histogram, Mechanism::Gaussian({.noise_multiplier = share.histogram_noise}));
    mechanisms.push_back(histogram);
  }
  return mechanisms;
}

Status FillInNoise(const Architecture& a, const PrivacyGoal& goal, const GoalShare& share, TrainingOptions& o) {
  if (goal.noise_multiplier) return TakeGiven(*goal.noise_multiplier, o);
  if (!(share.head_share > 0 && share.head_share < 1)) {
    return InvalidArgument("head_share is ", share.head_share, ", allowed is a number between 0 and 1");
  }
  double slack = 0;
  for (int attempt = 0;; ++attempt) {
    WISP_ASSIGN_OR_RETURN(
        const auto target,
        privacy::EpsilonDelta::Create(*goal.epsilon - 2.2 * slack, goal.delta * (1 - 1e-6) * std::exp(-1.1 * slack)));
    WISP_ASSIGN_OR_RETURN(const double epsilon, CalibrateTo(a, target, share, o));
    WISP_ASSIGN_OR_RETURN(const double needed, LossSlack(a, share, o));
    if (2 * needed <= *goal.epsilon - epsilon && needed <= 1.1 * slack + 1e-7) return OkStatus();
    if (attempt == 3) {
      return PrivacyRefused("epsilon ", privacy::DoubleText(*goal.epsilon),
                            " cannot be met: the integer grid of the noise alone costs ",
                            privacy::EpsilonText(2 * needed));
    }
    slack = std::max(needed, slack) * 1.01 + 1e-9;
  }
}

Status CheckPrivacyGoal(const PrivacyGoal& goal, double num_records) {
  if (goal.epsilon.has_value() == goal.noise_multiplier.has_value()) {
    return InvalidArgument(
        "private training needs either a target epsilon (`epsilon`) or a noise multiplier (`noise_multiplier`), and "
        "not "
        "both");
  }
  if (goal.epsilon) WISP_RETURN_IF_ERROR(privacy::CheckTarget(*goal.epsilon));
  if (!(goal.delta > 0 && goal.delta < 1)) {
    return InvalidArgument(goal.delta == 0 ? "delta is 0, or was not given: private training needs one "
                                             "(`delta`), below 1 / records"
                                           : "delta is " + privacy::ShortText(goal.delta) +
                                                 ", allowed is a number between 0 and 1, below 1 / records");
  }
  return privacy::CheckDelta("delta", goal.delta, num_records, goal.allow_delta_of_one_record);
}

}  // namespace wisp
