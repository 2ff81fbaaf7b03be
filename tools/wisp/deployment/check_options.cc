#include "tools/wisp/deployment/check_options.h"

#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/json.h"
#include "runtime/train/budget.h"
#include "runtime/train/run/records.h"

namespace wisp::tools {
namespace {

// Adds the option's name to `status`.
Status Of(const char* option, const Status& status) {
  return status.ok() ? status : Status(status.code(), std::string(option) + ": " + status.message());
}

Status OutOfRange(const char* option, double value, const char* allowed) {
  return InvalidArgument(option, " is ", privacy::ShortText(value), ", allowed is ", allowed);
}

Status CheckSteps(const std::optional<uint64_t>& steps, const std::optional<double>& rate) {
  if (steps && *steps == 0) return InvalidArgument("--steps is 0, allowed are 1 and more for each run");
  if (rate && !(*rate > 0 && *rate <= 1)) return OutOfRange("--learning-rate", *rate, "above 0, up to 1");
  return OkStatus();
}

Status CheckBatch(const std::optional<uint32_t>& batch, const DeploymentSettings& s) {
  if (!batch || (*batch >= 1 && *batch <= s.num_records_public)) return OkStatus();
  return InvalidArgument("--batch is ", *batch, ", allowed are 1 to --num-records-public, ", s.num_records_public);
}

Status CheckEvaluates(const PlanArguments& a) {
  if (a.evaluation == "none" && a.evaluations)
    return InvalidArgument(
        "--evaluations is given, and with --evaluation none nothing is evaluated: allowed is one of the two");
  if (a.evaluations && *a.evaluations == 0)
    return InvalidArgument("--evaluations is 0, allowed are 1 and more; --evaluation none evaluates nothing");
  return OkStatus();
}

}  // namespace

Status CheckTimesPerSecond(uint32_t times_per_second) {
  return Of("--times-per-second", data::CheckUnits({.times_per_second = times_per_second}));
}

Result<data::Units> CheckedUnits(privacy::PrivacyUnit unit, int64_t session_gap, uint32_t times_per_second) {
  WISP_RETURN_IF_ERROR(CheckTimesPerSecond(times_per_second));
  if (unit == privacy::PrivacyUnit::kSession && session_gap == 0)
    return InvalidArgument(
        "--unit session needs --session-gap: the seconds without an event after which another session begins, such as "
        "1800; allowed are 1 to ",
        data::kMaxSessionGap);
  Result<data::Units> units =
      MakeUnits({.unit = unit, .session_gap = session_gap, .times_per_second = times_per_second});
  if (!units.ok()) return Of("--session-gap", units.status());
  return units;
}

Status CheckPlan(const PlanArguments& a, const DeploymentRequest& r) {
  WISP_RETURN_IF_ERROR(Of("--epsilon", privacy::CheckTarget(r.epsilon)));
  WISP_RETURN_IF_ERROR(Of("--delta", CheckPrivacyGoal({.epsilon = r.epsilon, .noise_multiplier = {}, .delta = r.delta},
                                                      r.num_records_public)));
  WISP_RETURN_IF_ERROR(CheckSteps(a.steps, a.learning_rate));
  WISP_RETURN_IF_ERROR(CheckEvaluates(a));
  if (a.num_records_at_start > r.num_records_public)
    return InvalidArgument("--num-records-at-start is ", a.num_records_at_start, ", allowed are up to ",
                           r.num_records_public, ", as --num-records-public says");
  const DeploymentSettings s = SuggestDeployment(r);
  WISP_RETURN_IF_ERROR(CheckBatch(a.expected_batch, s));
  return Of("--steps", CheckSettings(s));
}

Status CheckChange(const PlanArguments& a, const DeploymentSettings& now, uint32_t runs) {
  WISP_RETURN_IF_ERROR(CheckSteps(a.steps, a.learning_rate));
  DeploymentSettings s = now;
  s.runs = runs;
  s.steps_per_run = a.steps.value_or(1);
  s.num_records_public = a.num_records_public.value_or(s.num_records_public);
  WISP_RETURN_IF_ERROR(CheckBatch(a.expected_batch, s));
  return Of("--steps", CheckSettings(s));
}

Status CheckPrune(const LogArguments& a, privacy::PrivacyUnit unit) {
  if (a.before.empty() && a.newest_per_user == 0)
    return InvalidArgument("wisp log prune needs --before, or --newest-per-user above 0: what the log is to forget");
  if (a.newest_per_user > 0 && unit != privacy::PrivacyUnit::kUser)
    return InvalidArgument("--newest-per-user is given, and --unit is ", std::string(privacy::ToText(unit)),
                           ": one session or day would decide whether another stays; allowed is --before");
  return OkStatus();
}

}  // namespace wisp::tools
