#include "runtime/personalise/plan_change.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/text.h"
#include "runtime/personalise/forecast.h"
#include "runtime/train/budget.h"

namespace wisp {
namespace {

using privacy::ChargeRequest;

constexpr double kMostNoise = 1024, kLeastNoise = 1.0 / 64;  // factors on the noise of the present plan
constexpr double kPrecision = 1.001;

bool IsSameStep(const DeploymentSettings& a, const DeploymentSettings& b) {
  return a.expected_batch == b.expected_batch && a.num_records_public == b.num_records_public;
}

// The charges of steps with the noise of `s`, for a catalogue that may grow, and of the evaluations that are left.
Result<std::vector<ChargeRequest>> MakeCharges(const Architecture& architecture, const DeploymentSettings& s,
                                               uint64_t steps, const DeploymentLeft& left) {
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PlanSteps(Grown(architecture), s));
  return ChargesWithEvaluations(plan, steps, s, left);
}

Status FindNoise(const Architecture& architecture, const privacy::Ledger& ledger, const DeploymentLeft& left,
                 DeploymentSettings& s) {
  const double until_now = s.training_noise;
  WISP_ASSIGN_OR_RETURN(
      const std::optional<double> found,
      FindNoiseThatFits(kLeastNoise * until_now, kMostNoise * until_now, kPrecision, [&](double noise) -> Result<bool> {
        s.training_noise = noise;
        WISP_ASSIGN_OR_RETURN(const std::vector<ChargeRequest> charges,
                              MakeCharges(architecture, s, s.num_steps(), left));
        return HasRoom(ledger, charges);
      }));
  if (!found)
    return PrivacyRefused(
        "ledger '", ledger.path(),
        "': no noise is enough for steps of another kind, so much of the limit is spent; how often it is trained may "
        "change at no cost, with the batch and the number of records as they are");
  s.training_noise = *found;
  return OkStatus();
}

// Spreads the steps that are left over the new runs.
Status Spread(ChangedDeployment& deployment, const DeploymentSettings& now) {
  DeploymentSettings& s = deployment.settings;
  const uint64_t left = deployment.before.steps;
  s.steps_in_all = now.num_steps();
  if (s.learning_rate != now.learning_rate)
    return InvalidArgument(
        "the learning rate cannot change if only times change, because training resumes from its checkpoint");
  const bool chosen = s.steps_per_run == 0;
  if (chosen) s.steps_per_run = std::max<uint64_t>(1, (left + s.runs / 2) / s.runs);
  if (left == 0 || (!chosen && s.steps_per_run > left / s.runs))
    return InvalidArgument("the plan has ", Counted(left, "step"), " left, ", Counted(s.runs, "run"), " of ",
                           s.steps_per_run, " are asked for: fewer of them, or another batch");
  // Steps are whole, so there may be a few more or fewer runs than requested.
  if (chosen) s.runs = static_cast<uint32_t>((left + s.steps_per_run - 1) / s.steps_per_run);
  return CheckSettings(s);
}

// Keeps about the number of passes over the records that were left, in no more steps than were left: smaller batches
// would otherwise mean more steps, each of which costs noise.
void SuggestSteps(ChangedDeployment& deployment, const DeploymentSettings& now) {
  DeploymentSettings& s = deployment.settings;
  if (s.steps_per_run > 0) return;
  const uint64_t left = std::max<uint64_t>(1, deployment.before.steps);
  const double passes = static_cast<double>(left) * now.expected_batch / s.expected_batch;
  const uint64_t steps = std::clamp<uint64_t>(std::llround(passes), 1, left);
  s.runs = static_cast<uint32_t>(std::min<uint64_t>(s.runs, steps));
  s.steps_per_run = steps / s.runs;
}

}  // namespace

Result<ChangedDeployment> ChangeDeployment(const PlannedBase& base, const privacy::Ledger& ledger,
                                           const DeploymentSettings& now, const PlanChange& change) {
  const Architecture& architecture = base.architecture;
  if (change.runs == 0) return InvalidArgument("a changed plan needs the number of runs that are to come; it is 0");
  WISP_ASSIGN_OR_RETURN(const uint64_t newest_row, ledger.NewestRow());
  WISP_ASSIGN_OR_RETURN(const auto entries, ledger.Entries());
  if (entries.empty())
    return PrivacyRefused("ledger '", ledger.path(), "' has no charges yet: make a new plan, which costs nothing");
  ChangedDeployment deployment{.settings = now, .newest_row = newest_row};
  deployment.settings.num_records_at_start = 0;  // from now on all records are there
  deployment.settings.allow_seen = base.allow_seen ? 1 : 0;
  // The candidate keeps everything that was released.
  deployment.settings.bias_weight_releases = deployment.settings.succession_releases = 0;
  WISP_ASSIGN_OR_RETURN(deployment.before, ComputeLeft(ledger, now));
  DeploymentSettings& s = deployment.settings;
  s.runs = change.runs;
  s.steps_per_run = change.steps_per_run;
  if (change.every > 0) s.every = change.every;
  if (change.expected_batch > 0) s.expected_batch = change.expected_batch;
  if (change.num_records_public > 0) s.num_records_public = change.num_records_public;
  if (change.learning_rate != 0) s.learning_rate = change.learning_rate;
  deployment.is_free = IsSameStep(s, now);
  if (deployment.is_free) {
    WISP_RETURN_IF_ERROR(Spread(deployment, now));
    WISP_ASSIGN_OR_RETURN(deployment.charges, MakeCharges(architecture, s, deployment.before.steps, deployment.before));
    return deployment;
  }
  SuggestSteps(deployment, now);
  s.steps_in_all = 0;
  // Charges through the filter may use all of the ledger's limit, which may be above the plan's.
  WISP_ASSIGN_OR_RETURN(const auto limit, ledger.Limit());
  if (limit) s.epsilon = limit->epsilon(), s.delta = limit->delta();
  if (EvaluatesPrivately(now))
    s.evaluations_before = now.evaluations - static_cast<uint32_t>(deployment.before.evaluations);
  WISP_RETURN_IF_ERROR(CheckSettings(s));
  const PrivacyGoal goal = {.epsilon = s.epsilon, .noise_multiplier = {}, .delta = s.delta};
  WISP_RETURN_IF_ERROR(CheckPrivacyGoal(goal, s.num_records_public));
  WISP_RETURN_IF_ERROR(FindNoise(architecture, ledger, deployment.before, s));
  if (change.learning_rate == 0) s.learning_rate *= SuggestRate(architecture, s) / SuggestRate(architecture, now);
  WISP_ASSIGN_OR_RETURN(deployment.charges, MakeCharges(architecture, s, s.num_steps(), deployment.before));
  return deployment;
}

Status WriteChange(privacy::Ledger& ledger, const ChangedDeployment& changed, const std::string& run) {
  // Settings that could not be read back would make every later run fail.
  WISP_RETURN_IF_ERROR(ParseDeploymentSettings(ToText(changed.settings)).status());
  return ledger.ChangePlan(run, "a deployment, changed", changed.charges, ToText(changed.settings), changed.newest_row);
}

}  // namespace wisp
