#include "runtime/personalise/deployment.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <string_view>

#include "runtime/core/text.h"
#include "runtime/personalise/plan_releases.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/named_numbers.h"
#include "runtime/train/budget.h"

namespace wisp {
namespace {

using privacy::ChargeRequest;
using privacy::EpsilonDelta;
using privacy::Mechanism;

constexpr uint64_t kMostSteps = 1'000'000'000;
// Charges per run: a killed run has paid for at most this share of its steps without taking them. Each charge is a row
// of the ledger.
constexpr uint64_t kChargesPerRun = 4;
// The integer grid of the noise costs more with more released coordinates, and a catalogue grows. So the plan is made
// for this many times today's items. At epsilon 4 and 100,000 coordinates that costs a millionth.
constexpr uint32_t kCatalogueGrowth = 16;
// Training's share of the limit's delta; a twentieth is kept back. That costs a quarter of a percent of noise, and lets
// a changed plan through the filter in the first half of a plan's time (docs/personalise.md).
constexpr double kDeltaShare = 0.95;

// Calls `field` with the name and the value of each field, in the order of the text.
template <class Settings, class Use>
void ForEachSetting(Settings& s, const Use& field) {
  field("num_records_public", s.num_records_public);
  field("epsilon", s.epsilon);
  field("delta", s.delta);
  field("runs", s.runs);
  field("steps_per_run", s.steps_per_run);
  field("expected_batch", s.expected_batch);
  field("clipping_norm", s.clipping_norm);
  field("training_noise", s.training_noise);
  field("evaluations", s.evaluations);
  field("evaluation_noise", s.evaluation_noise);
  field("evaluates_locally", s.evaluates_locally);
  field("gain_scale", s.gain_scale);
  field("error", s.error);
  field("decay", s.decay);
  field("num_targets", s.num_targets);
  field("learning_rate", s.learning_rate);
  field("averaging", s.averaging);
  field("num_negatives", s.num_negatives);
  field("shrinks_changes", s.shrinks_changes);
  field("bias_weight_releases", s.bias_weight_releases);
  field("bias_weight_share", s.bias_weight_share);
  field("bias_weight_noise", s.bias_weight_noise);
  field("succession_releases", s.succession_releases);
  field("succession_share", s.succession_share);
  field("succession_noise", s.succession_noise);
  field("steps_in_all", s.steps_in_all);
  field("evaluations_before", s.evaluations_before);
  field("allow_seen", s.allow_seen);
  field("trains_until", s.trains_until);
  field("num_records_at_start", s.num_records_at_start);
}

// Plans of every version end with the number of records at the start, and with `every` only if it is not 0.
constexpr char kEvery[] = "every";

// Ends the text of the settings: the metric that evaluations use.
constexpr char kMeasure[] = " measure=ndcg@10";

}  // namespace

Architecture Grown(Architecture a) {
  a.num_items = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{kCatalogueGrowth} * a.num_items, INT32_MAX));
  return a;
}

Status CheckSettings(const DeploymentSettings& s) {
  if (s.num_records_public == 0) return InvalidArgument("a plan needs a public number of records; it is 0");
  if (s.runs == 0 || s.steps_per_run == 0 || s.steps_per_run > kMostSteps / s.runs)
    return InvalidArgument("a plan has ", Counted(s.runs, "run"), " of ", Counted(s.steps_per_run, "step"),
                           ", allowed are 1 of each, up to ", kMostSteps, " steps in all");
  if (s.shrinks_changes > 1) return InvalidArgument("shrinks_changes is ", s.shrinks_changes, ", allowed are 0 and 1");
  WISP_RETURN_IF_ERROR(CheckReleases(s));
  if (s.allow_seen > 1) return InvalidArgument("allow_seen is ", s.allow_seen, ", allowed are 0 and 1");
  if (s.evaluates_locally > 1)
    return InvalidArgument("evaluates_locally is ", s.evaluates_locally, ", allowed are 0 and 1");
  if (!(s.learning_rate > 0 && s.learning_rate <= 1))
    return InvalidArgument("the learning rate is ", privacy::DoubleText(s.learning_rate),
                           ", allowed is above 0 and up to 1");
  if (s.steps_in_all > kMostSteps)
    return InvalidArgument("steps_in_all is ", s.steps_in_all, ", allowed are up to ", kMostSteps);
  if (s.num_records_at_start > s.num_records_public)
    return InvalidArgument("the public number of records at the start is ", s.num_records_at_start,
                           ", allowed are up to ", s.num_records_public, ", the public number of records");
  if (s.evaluations_before > s.evaluations)
    return InvalidArgument("evaluations_before is ", s.evaluations_before, ", the plan has ", s.evaluations);
  if (s.trains_until < 0 || s.trains_until > data::kLatestSecond)
    return InvalidArgument("trains_until is ", s.trains_until, ", allowed are seconds since 1970 up to ",
                           data::kLatestSecond, ", and 0");
  if (s.evaluations == 0) return OkStatus();
  return Validate(s.rule());
}

Status CheckPlanBase(const DeploymentSettings& settings, const ModelFile& base, const privacy::Ledger& ledger) {
  const bool allows = base.lists().allow_seen;
  if (allows == (settings.allow_seen != 0)) return OkStatus();
  return InvalidArgument(base.name(), ": its lists may ", allows ? "" : "not ",
                         "hold items of the history (allow_seen), and the plan of "
                         "ledger '",
                         ledger.path(), "' was made for a base whose lists may", allows ? " not" : "",
                         ": change what is left of the plan with this base (`wisp_plan_change`); where nothing was "
                         "charged yet, replace it (`replace`)");
}

namespace {

// The share of all records that is there at the start.
double ShareAtStart(const DeploymentSettings& s) {
  return s.num_records_at_start == 0 ? 1.0 : static_cast<double>(s.num_records_at_start) / s.num_records_public;
}

// Steps that the first `runs` runs take: in proportion to the sum of the records present in each.
uint64_t StepsUpTo(const DeploymentSettings& s, uint64_t runs) {
  const double start = ShareAtStart(s), x = static_cast<double>(runs) / s.runs;
  const double share = (2 * start * x + (1 - start) * x * x) / (1 + start);
  return static_cast<uint64_t>(std::llround(share * static_cast<double>(s.num_steps())));
}

// Sets the steps of the next run and the number of runs that are left. A run leaves no trace but its steps, so if it
// was cut short, the next one first takes the rest of it.
void ShareSteps(const DeploymentSettings& s, DeploymentLeft& left) {
  left.runs = (left.steps + s.steps_per_run - 1) / s.steps_per_run;
  left.steps_of_next = std::min(s.steps_per_run, left.steps);
  if (s.num_records_at_start == 0 || left.steps == 0) return;
  const uint64_t taken = s.num_steps() - std::min(s.num_steps(), left.steps);
  uint64_t planned_run = 0, after = s.runs;  // run: the first run that ends with more steps than were taken
  while (after - planned_run > 1) {
    const uint64_t middle = planned_run + (after - planned_run) / 2;
    (StepsUpTo(s, middle) > taken ? after : planned_run) = middle;
  }
  left.runs = s.runs - planned_run;
  left.steps_of_next = std::clamp<uint64_t>(StepsUpTo(s, planned_run + 1) - taken, 1, left.steps);
}

}  // namespace

double DeploymentSettings::share_present() const {
  const double start = ShareAtStart(*this);
  return 2.0 / 3 * (1 + start + start * start) / (1 + start);
}

TrainingOptions MakeTrainingOptions(const DeploymentSettings& s) {
  TrainingOptions o;
  o.method = Method::kPhantom;
  o.sampling = Sampling::kPoisson;
  o.num_steps = s.num_steps();
  o.expected_batch = s.expected_batch;
  o.num_records_public = s.num_records_public;
  o.optimizer.learning_rate = static_cast<float>(s.learning_rate);
  o.ema_decay = static_cast<float>(s.averaging);
  o.num_negatives = s.num_negatives;
  o.privacy.noise_multiplier = s.training_noise;
  o.privacy.clipping_norm = s.clipping_norm;
  o.privacy.steps_per_charge = static_cast<uint32_t>((s.steps_per_run + kChargesPerRun - 1) / kChargesPerRun);
  return o;
}

Result<PrivacyPlan> PlanSteps(const Architecture& architecture, const DeploymentSettings& settings) {
  return PrivacyPlan::Create(architecture, MakeTrainingOptions(settings));
}

std::string ToText(const DeploymentSettings& settings) {
  std::string text;
  ForEachSetting(settings, [&](const char* name, auto value) { privacy::PutNumber(text, name, value); });
  if (settings.every > 0) privacy::PutNumber(text, kEvery, settings.every);
  return text + kMeasure;
}

Result<DeploymentSettings> ParseDeploymentSettings(const std::string& text) {
  DeploymentSettings settings;
  std::string_view rest = text;
  bool read = true;
  ForEachSetting(settings,
                 [&](const char* name, auto& value) { read = read && privacy::TakeNumber(rest, name, value); });
  if (read && rest.starts_with(kEvery)) read = privacy::TakeNumber(rest, kEvery, settings.every);
  if (!read || rest != std::string_view(kMeasure).substr(1) || !CheckSettings(settings).ok())
    return InvalidData("the settings of a plan are '", OneLine(text), "', which this version cannot read");
  return settings;
}

Result<Deployment> CalibrateDeployment(const Architecture& architecture, const DeploymentSettings& settings) {
  WISP_RETURN_IF_ERROR(CheckSettings(settings));
  const PrivacyGoal goal = {.epsilon = settings.epsilon, .noise_multiplier = {}, .delta = settings.delta};
  WISP_RETURN_IF_ERROR(CheckPrivacyGoal(goal, settings.num_records_public));
  Deployment deployment{.settings = settings};
  DeploymentSettings& s = deployment.settings;
  TrainingOptions options = MakeTrainingOptions(s);
  const Architecture grown = Grown(architecture);
  const PrivacyGoal of_training = {
      .epsilon = settings.epsilon, .noise_multiplier = {}, .delta = kDeltaShare * settings.delta};
  WISP_ASSIGN_OR_RETURN(const std::vector<ChargeRequest> beside, PlanReleases(grown, s));
  WISP_RETURN_IF_ERROR(Budget::Calibrate(grown, of_training, options, beside));
  s.training_noise = options.privacy.noise_multiplier;
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PlanSteps(grown, s));
  WISP_ASSIGN_OR_RETURN(deployment.charges, plan.ChargesTogether(options.num_steps));
  deployment.charges.insert(deployment.charges.end(), beside.begin(), beside.end());
  return deployment;
}

namespace {

using Plans = std::vector<privacy::LedgerPlan>;

// True if the new plan may set the limit: the ledger has no limit, or has that of the plan which this one replaces. A
// limit that somebody set stays.
bool LimitFollowsPlan(const std::optional<EpsilonDelta>& limit, const std::optional<DeploymentSettings>& earlier) {
  return !limit || (earlier && limit->epsilon() == earlier->epsilon && limit->delta() == earlier->delta);
}

}  // namespace

Status WriteDeployment(privacy::Ledger& ledger, const Deployment& deployment, const std::string& run,
                       std::optional<uint64_t> newest_row) {
  const DeploymentSettings& s = deployment.settings;
  if (!newest_row) {
    WISP_ASSIGN_OR_RETURN(newest_row, ledger.NewestRow());
  }
  WISP_ASSIGN_OR_RETURN(const auto entries, ledger.Entries());
  if (!entries.empty())
    return PrivacyRefused(
        "ledger '", ledger.path(),
        "' has charges: a plan for a deployment is made before the first of them, or it would promise nothing");
  WISP_ASSIGN_OR_RETURN(const EpsilonDelta limit, EpsilonDelta::Create(s.epsilon, s.delta));
  WISP_ASSIGN_OR_RETURN(const auto there, ledger.Limit());
  WISP_ASSIGN_OR_RETURN(const auto earlier, ReadSettings(ledger));
  privacy::LedgerSetup setup{.newest_row = newest_row};
  if (LimitFollowsPlan(there, earlier)) setup.limit = limit;
  setup.plan = {.run = run, .purpose = "a deployment", .charges = deployment.charges, .settings = ToText(s)};
  return ledger.SetUp(setup);
}

Result<std::optional<DeploymentSettings>> ReadSettings(const privacy::Ledger& ledger) {
  return SettingsBefore(ledger, std::numeric_limits<uint64_t>::max());
}

Result<DeploymentSettings> RequireSettings(const privacy::Ledger& ledger) {
  WISP_ASSIGN_OR_RETURN(const std::optional<DeploymentSettings> settings, ReadSettings(ledger));
  if (settings) return *settings;
  WISP_ASSIGN_OR_RETURN(const auto entries, ledger.Entries());
  const std::string who = "ledger '" + ledger.path();
  if (entries.empty())
    return PrivacyRefused(who, "' has no plan for a deployment: make one before its first charge (`wisp_plan_make`)");
  return PrivacyRefused(
      who,
      "' has no plan for a deployment, and was charged: a plan would promise nothing any more. A deployment begins "
      "with a log and a ledger of its own");
}

Result<std::optional<DeploymentSettings>> SettingsBefore(const privacy::Ledger& ledger, uint64_t seq) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerPlan> plans, ledger.Plans());
  for (auto plan = plans.rbegin(); plan != plans.rend(); ++plan) {
    if (plan->settings.empty() || plan->seq >= seq) continue;
    WISP_ASSIGN_OR_RETURN(const DeploymentSettings settings, ParseDeploymentSettings(plan->settings));
    return std::optional(settings);
  }
  return std::optional<DeploymentSettings>();
}

namespace {

using Entries = std::vector<privacy::LedgerEntry>;

bool PlanTrains(const privacy::LedgerPlan& plan) { return !plan.settings.empty(); }

// Mechanisms of a plan that trains: steps come first, then releases beside them.
constexpr size_t kSteps = 0;

// The training plan that pays for the steps of the plan in force: the first of the latest training plans that differ
// only in the number of steps. Of plans written before the first charge it is the last, which replaced the others. Null
// if no plan trains.
const privacy::LedgerPlan* PayingPlan(const Plans& plans, const Entries& entries) {
  const uint64_t first_charge = entries.empty() ? std::numeric_limits<uint64_t>::max() : entries.front().seq;
  const privacy::LedgerPlan* paying = nullptr;
  for (auto plan = plans.rbegin(); plan != plans.rend(); ++plan) {
    if (!PlanTrains(*plan)) continue;
    if (paying && !paying->mechanisms.front().mechanism.DiffersInStepsOnly(plan->mechanisms.front().mechanism)) break;
    paying = &*plan;
    if (plan->seq < first_charge) break;
  }
  return paying;
}

uint64_t StepsLeft(const privacy::LedgerPlan& plan, bool by_filter, const Entries& entries, size_t mechanism = 0) {
  const Mechanism& planned = plan.mechanisms[mechanism].mechanism;
  uint64_t left = planned.steps();
  for (const privacy::LedgerEntry& e : entries) {
    const bool counts = by_filter ? e.seq > plan.seq : e.plan == plan.seq;
    if (counts && e.mechanism.DiffersInStepsOnly(planned)) left -= std::min(left, e.mechanism.steps());
  }
  return left;
}

// Adds the charges for so many steps of a plan.
Status Reserve(const privacy::LedgerPlan& plan, uint64_t steps, std::vector<ChargeRequest>& reserved,
               size_t mechanism = 0) {
  if (steps == 0) return OkStatus();
  const privacy::PlannedMechanism& all = plan.mechanisms[mechanism];
  const double share = static_cast<double>(steps) / static_cast<double>(all.mechanism.steps());
  WISP_ASSIGN_OR_RETURN(const Mechanism some, all.mechanism.WithSteps(steps));
  reserved.push_back(
      {.mechanism = some, .run = plan.run, .purpose = plan.purpose, .loss_slack = share * all.loss_slack});
  return OkStatus();
}

}  // namespace

Result<std::vector<ChargeRequest>> ChargesWithEvaluations(const PrivacyPlan& plan, uint64_t steps,
                                                          const DeploymentSettings& s, const DeploymentLeft& left) {
  WISP_ASSIGN_OR_RETURN(std::vector<ChargeRequest> charges, plan.ChargesTogether(steps));
  if (left.evaluations == 0) return charges;
  WISP_ASSIGN_OR_RETURN(ChargeRequest evaluations,
                        EvaluationCharge({.noise_multiplier = s.evaluation_noise}, left.evaluations));
  charges.push_back(std::move(evaluations));
  return charges;
}

Result<DeploymentLeft> ComputeLeft(const privacy::Ledger& ledger, const DeploymentSettings& s) {
  WISP_ASSIGN_OR_RETURN(const Plans plans, ledger.Plans());
  WISP_ASSIGN_OR_RETURN(const Entries entries, ledger.Entries());
  DeploymentLeft left;
  std::vector<ChargeRequest> reserved;
  if (const privacy::LedgerPlan* training = PayingPlan(plans, entries)) {
    left.by_filter = !entries.empty() && training->seq > entries.front().seq;
    left.steps = StepsLeft(*training, left.by_filter, entries);
    WISP_RETURN_IF_ERROR(Reserve(*training, left.steps, reserved));
    for (size_t release = kSteps + 1; release < training->mechanisms.size(); ++release)
      WISP_RETURN_IF_ERROR(
          Reserve(*training, StepsLeft(*training, left.by_filter, entries, release), reserved, release));
    CountReleasesLeft(entries, s, left);
  }
  ShareSteps(s, left);
  WISP_ASSIGN_OR_RETURN(const auto limit, ledger.Limit());
  if (!limit) return left;
  WISP_ASSIGN_OR_RETURN(const privacy::Delta delta, privacy::Delta::Create(limit->delta()));
  WISP_ASSIGN_OR_RETURN(const double at_the_end, ledger.SpentAfter(reserved, delta));
  left.epsilon = std::max(0.0, limit->epsilon() - at_the_end);
  return left;
}

namespace {

// Parses "2026-05-01T12:00:00.000000Z" as seconds since 1970, rounded up, so that a charge is never later than the
// result.
std::optional<int64_t> ParseSecond(const std::string& utc) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  const auto number = [&](size_t at, size_t digits, int& value) {
    if (at + digits > utc.size()) return false;
    const auto [end, error] = std::from_chars(utc.data() + at, utc.data() + at + digits, value);
    return error == std::errc() && end == utc.data() + at + digits;
  };
  if (!number(0, 4, year) || !number(5, 2, month) || !number(8, 2, day) || !number(11, 2, hour) ||
      !number(14, 2, minute) || !number(17, 2, second))
    return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok()) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60 + second + 1;
}

// Steps of training that were charged within `within` seconds of `now`, before or after it.
Result<uint64_t> StepsTrainedAround(const privacy::Ledger& ledger, int64_t now, uint64_t within) {
  WISP_ASSIGN_OR_RETURN(const Plans plans, ledger.Plans());
  WISP_ASSIGN_OR_RETURN(const Entries entries, ledger.Entries());
  uint64_t steps = 0;
  for (const privacy::LedgerEntry& e : entries) {
    const int64_t second = ParseSecond(e.time_utc).value_or(0);
    const bool trained = std::any_of(plans.begin(), plans.end(), [&](const privacy::LedgerPlan& plan) {
      return PlanTrains(plan) && plan.mechanisms.front().mechanism.DiffersInStepsOnly(e.mechanism);
    });
    if (trained && static_cast<uint64_t>(std::abs(now - second)) < within) steps += e.mechanism.steps();
  }
  return steps;
}

}  // namespace

Result<uint64_t> StepsTrained(const privacy::Ledger& ledger) {
  return StepsTrainedAround(ledger, 0, std::numeric_limits<uint64_t>::max());
}

Status CheckDue(const privacy::Ledger& ledger, const DeploymentSettings& s, const DeploymentLeft& left, int64_t now) {
  if (s.every == 0 || left.steps == 0) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const uint64_t charged, StepsTrainedAround(ledger, now, s.every / 2));
  DeploymentLeft before = left;
  before.steps += charged;
  ShareSteps(s, before);
  if (charged < before.steps_of_next) return OkStatus();
  return MakeError<StatusCode::kTooEarly>(
      "ledger '", ledger.path(), "': its plan trains every ", static_cast<double>(s.every) / 3600,
      " hours, and less than half of that has passed since the last run by this device's clock: nothing was charged; "
      "`early` lets it run all the same");
}

Result<int64_t> TrainsUntil(const privacy::Ledger& ledger, const DeploymentSettings& settings, int64_t now) {
  if (settings.evaluations == 0) return data::kLatestSecond;
  if (settings.trains_until > 0) return settings.trains_until;
  WISP_ASSIGN_OR_RETURN(const Plans plans, ledger.Plans());
  WISP_ASSIGN_OR_RETURN(const Entries entries, ledger.Entries());
  // Each charge of training brings the next evaluation nearer, by a share that follows from the plan in force at that
  // time. So a later plan never moves an evaluation back. The first one has the events since it was half due.
  double due = 0;
  std::optional<int64_t> newest, until;
  std::optional<DeploymentSettings> then;
  const privacy::LedgerPlan* training = nullptr;
  auto plan = plans.begin();
  for (const privacy::LedgerEntry& e : entries) {
    for (; plan != plans.end() && plan->seq < e.seq; ++plan) {
      if (!PlanTrains(*plan)) continue;
      WISP_ASSIGN_OR_RETURN(then, ParseDeploymentSettings(plan->settings));
      training = &*plan;
    }
    if (!then || then->evaluations == 0) continue;
    if (!e.mechanism.DiffersInStepsOnly(training->mechanisms[kSteps].mechanism)) continue;
    const std::optional<int64_t> second = ParseSecond(e.time_utc);
    if (!second)
      return InvalidData(ledger.path(), ": the time of a charge is '", OneLine(e.time_utc),
                         "', which is not a valid time");
    newest = std::max(newest.value_or(*second), *second);
    const double evaluations = then->evaluations - std::min(then->evaluations, then->evaluations_before);
    const auto moments = [&] { return std::floor(due + 1e-9) + (due >= 0.5 ? 1 : 0); };
    const double before = moments();
    due += static_cast<double>(e.mechanism.steps()) * evaluations / static_cast<double>(then->num_steps());
    if (moments() > before || evaluations == 0) until = newest;
  }
  return until ? *until : newest.value_or(now);
}

Result<uint64_t> StepsThatPlanCovers(const privacy::Ledger& ledger, const DeploymentSettings& settings,
                                     const DeploymentLeft& left, const Architecture& architecture, uint64_t most) {
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PlanSteps(architecture, settings));
  WISP_ASSIGN_OR_RETURN(const privacy::Delta delta, privacy::Delta::Create(settings.delta));
  WISP_ASSIGN_OR_RETURN(const privacy::LedgerFigures figures, ledger.Stated(delta));
  if (left.by_filter || figures.basis == privacy::LedgerFigures::Basis::kAdaptive)
    return ledger.StepsThatFit(most,
                               [&](uint64_t steps) { return ChargesWithEvaluations(plan, steps, settings, left); });
  uint64_t covered = 0;
  for (uint64_t too_many = most + 1; covered + 1 < too_many;) {
    const uint64_t middle = covered + (too_many - covered) / 2;
    WISP_ASSIGN_OR_RETURN(const std::vector<ChargeRequest> charges, plan.ChargesTogether(middle));
    WISP_ASSIGN_OR_RETURN(const bool fits, ledger.Covers(charges));
    (fits ? covered : too_many) = middle;
  }
  return covered;
}

}  // namespace wisp
