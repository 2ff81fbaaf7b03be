#include "runtime/train/budget.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/popularity.h"

namespace wisp {

using privacy::ChargeRequest;
using privacy::EpsilonDelta;
using privacy::Mechanism;

namespace {

constexpr char kPlannedRuns[] = "planned runs";  // the purpose of a plan for several runs

// The charge of each run before its first step; empty if nothing is released there.
Result<std::vector<ChargeRequest>> ChargesBefore(const Architecture& a, const TrainingOptions& o, double noise) {
  std::vector<ChargeRequest> charges;
  if (!(noise > 0)) return charges;
  const PrivateTraining& p = o.privacy;
  WISP_ASSIGN_OR_RETURN(
      ChargeRequest histogram,
      PopularityCharge({.noise_multiplier = noise, .run = p.run}, a.num_items,
                       p.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure));
  charges.push_back(std::move(histogram));
  return charges;
}

// The mechanism of so many runs.
Result<Mechanism> Repeated(const Mechanism& m, uint64_t runs) { return m.WithSteps(m.steps() * runs); }

Result<std::vector<Mechanism>> Repeated(const std::vector<Mechanism>& of_run, uint64_t runs) {
  std::vector<Mechanism> all;
  for (const Mechanism& m : of_run) {
    WISP_ASSIGN_OR_RETURN(const Mechanism mechanism, Repeated(m, runs));
    all.push_back(mechanism);
  }
  return all;
}

// The noise with which everything in all planned runs meets the target, and its cost.
Result<double> CalibrateTo(const Architecture& a, const EpsilonDelta& target, const PrivacyGoal& goal,
                           TrainingOptions& o, std::span<const ChargeRequest> others,
                           const std::function<bool()>& cancelled) {
  std::vector<Mechanism> beside;
  beside.reserve(others.size());
  for (const ChargeRequest& charge : others) beside.push_back(charge.mechanism);
  WISP_ASSIGN_OR_RETURN(const std::vector<ChargeRequest> before, ChargesBefore(a, o, goal.histogram_noise));
  for (const ChargeRequest& charge : before) {
    WISP_ASSIGN_OR_RETURN(const Mechanism mechanism, Repeated(charge.mechanism, goal.planned_runs));
    beside.push_back(mechanism);
  }
  if (ReleasesHead(o)) o.dp_fp.noise_multiplier = 1;
  if (HasGradients(o)) o.privacy.noise_multiplier = 1;
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(a, o));
  double epsilon = 0;
  for (size_t i = 0; i < plan.parts().size(); ++i) {
    const PrivacyPlan::Part& part = plan.parts()[i];
    const bool is_last = i + 1 == plan.parts().size();
    WISP_ASSIGN_OR_RETURN(const EpsilonDelta of_part,
                          EpsilonDelta::Create(target.epsilon() * (is_last ? 1.0 : goal.head_share), target.delta()));
    const auto of_runs = [&](double noise_multiplier) -> Result<std::vector<Mechanism>> {
      WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> of_run, plan.Mechanisms(part, o.num_steps, noise_multiplier));
      return Repeated(of_run, goal.planned_runs);
    };
    WISP_ASSIGN_OR_RETURN(const privacy::Calibration found,
                          privacy::CalibrateNoise({.target = of_part,
                                                   .steps = o.num_steps * part.releases * goal.planned_runs,
                                                   .composed_with = beside,
                                                   .mechanisms = of_runs,
                                                   .cancelled = cancelled}));
    const bool is_head = ReleasesHead(o) && i == 0;
    (is_head ? o.dp_fp.noise_multiplier : o.privacy.noise_multiplier) = found.noise_multiplier;
    epsilon = found.epsilon;
    WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> spent, of_runs(found.noise_multiplier));
    beside.insert(beside.end(), spent.begin(), spent.end());
  }
  return epsilon;
}

// eta of exact_sum.h for all planned runs: how far the discrete noise is from the Gaussian that is accounted for.
Result<double> LossSlack(const Architecture& a, const PrivacyGoal& goal, TrainingOptions o) {
  if (o.method == Method::kFest) o.method = Method::kPhantom;  // more coordinates than FEST will have
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(a, o));
  WISP_ASSIGN_OR_RETURN(const std::vector<ChargeRequest> before, ChargesBefore(a, o, goal.histogram_noise));
  double slack = goal.planned_runs * plan.LossSlack(o.num_steps);
  for (const ChargeRequest& charge : before) slack += goal.planned_runs * charge.loss_slack;
  return slack;
}

// The target that remains of a goal beside so much slack.
Result<EpsilonDelta> LeaveSlack(double epsilon, double delta, double slack) {
  return EpsilonDelta::Create(epsilon - 2.2 * slack, delta * (1 - 1e-6) * std::exp(-1.1 * slack));
}

Status RefuseForGrid(double epsilon, double cost) {
  return PrivacyRefused("epsilon ", privacy::DoubleText(epsilon),
                        " cannot be met: the integer grid of the noise alone costs ", privacy::EpsilonText(cost));
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

// The noise multiplier of a run that has a single one; 0 if it has two.
double OneNoise(const TrainingOptions& o) {
  if (!ReleasesHead(o)) return o.privacy.noise_multiplier;
  return HasGradients(o) ? 0 : o.dp_fp.noise_multiplier;
}

}  // namespace

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

Status Budget::Calibrate(const Architecture& a, const PrivacyGoal& goal, TrainingOptions& o,
                         std::span<const ChargeRequest> beside, const std::function<bool()>& cancelled) {
  if (goal.noise_multiplier) return TakeGiven(*goal.noise_multiplier, o);
  if (!(goal.head_share > 0 && goal.head_share < 1)) {
    return InvalidArgument("head_share is ", goal.head_share, ", allowed is a number between 0 and 1");
  }
  double slack = 0;
  for (int attempt = 0;; ++attempt) {
    WISP_ASSIGN_OR_RETURN(const EpsilonDelta target, LeaveSlack(*goal.epsilon, goal.delta, slack));
    WISP_ASSIGN_OR_RETURN(const double epsilon, CalibrateTo(a, target, goal, o, beside, cancelled));
    WISP_ASSIGN_OR_RETURN(double needed, LossSlack(a, goal, o));
    for (const ChargeRequest& charge : beside) needed += charge.loss_slack;
    if (2 * needed <= *goal.epsilon - epsilon && needed <= 1.1 * slack + 1e-7) return OkStatus();
    if (attempt == 3) return RefuseForGrid(*goal.epsilon, 2 * needed);
    slack = std::max(needed, slack) * 1.01 + 1e-9;
  }
}

Result<std::vector<Mechanism>> Budget::Overheads() const {
  WISP_ASSIGN_OR_RETURN(const auto charges, ChargesBefore(architecture_, options_, goal_.histogram_noise));
  std::vector<Mechanism> mechanisms;
  mechanisms.reserve(charges.size());
  for (const ChargeRequest& charge : charges) mechanisms.push_back(charge.mechanism);
  return mechanisms;
}

Result<std::vector<ChargeRequest>> Budget::Charges(StepRange steps, double noise_factor, bool histogram,
                                                   uint64_t runs) const {
  WISP_ASSIGN_OR_RETURN(std::vector<ChargeRequest> charges,
                        ChargesBefore(architecture_, options_, histogram ? goal_.histogram_noise : 0));
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(architecture_, options_));
  WISP_ASSIGN_OR_RETURN(std::vector<ChargeRequest> of_steps, plan.ChargesTogether(steps, noise_factor));
  std::move(of_steps.begin(), of_steps.end(), std::back_inserter(charges));
  for (ChargeRequest& charge : charges) {
    WISP_ASSIGN_OR_RETURN(charge.mechanism, Repeated(charge.mechanism, runs));
    charge.loss_slack *= static_cast<double>(runs);
  }
  return charges;
}

Result<Budget::End> Budget::Check(uint64_t done, uint64_t last, bool resumes) {
  if (goal_.planned_runs > 1 && !resumes && !options_.privacy.reproducible_seed) {
    WISP_RETURN_IF_ERROR(CheckPlan());
    return End{.step = last};
  }
  const StepRange steps{done, last - done};
  WISP_ASSIGN_OR_RETURN(to_come_, Charges(steps, 1, !resumes));
  const Status refusal = options_.privacy.ledger->CheckFits(to_come_, goal_.new_limit);
  if (refusal.ok()) return End{.step = last};
  if (refusal.code() != StatusCode::kPrivacyRefused || options_.privacy.reproducible_seed) return refusal;
  if (done == 0) return AddAffordableSteps(steps, !resumes, refusal);
  WISP_ASSIGN_OR_RETURN(const uint64_t fit, StepsThatFit(steps, !resumes));
  WISP_ASSIGN_OR_RETURN(to_come_, Charges({done, fit}, 1, !resumes));
  return End{.step = done + fit, .refusal = refusal};
}

// Says why the plan of a ledger that has charges does not cover this run.
Status Budget::NoRoomInPlan() const {
  const privacy::Ledger& ledger = *options_.privacy.ledger;
  WISP_ASSIGN_OR_RETURN(const auto plans, ledger.Plans());
  const bool planned = !plans.empty() && plans.back().purpose == kPlannedRuns;
  const auto foreseen = [&](const ChargeRequest& charge) {
    return std::any_of(plans.back().mechanisms.begin(), plans.back().mechanisms.end(),
                       [&](const auto& part) { return part.mechanism.DiffersInStepsOnly(charge.mechanism); });
  };
  const char* why = plans.empty() ? "nothing was planned before its first charge" : "only its first run was planned";
  if (planned && std::all_of(to_come_.begin(), to_come_.end(), foreseen)) {
    why = "too few of the planned steps are left for a whole run";
  } else if (planned) {
    why = "it was made for runs with other options (noise, steps, batch, or the number of records)";
  }
  return PrivacyRefused("ledger '", ledger.path(), "' has no room for this run in its plan: ", why,
                        "; without planned runs this one counts as chosen after looking");
}

// Checks that this run is one of the planned ones, or that the plan can still be written.
Status Budget::CheckPlan() {
  const privacy::Ledger& ledger = *options_.privacy.ledger;
  WISP_ASSIGN_OR_RETURN(to_come_, Charges(options_.num_steps, 1, /*histogram=*/true));
  WISP_ASSIGN_OR_RETURN(const bool covered, ledger.Covers(to_come_));
  if (covered) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const auto entries, ledger.Entries());
  if (!entries.empty()) return NoRoomInPlan();
  WISP_ASSIGN_OR_RETURN(plan_, Charges(options_.num_steps, 1, /*histogram=*/true, goal_.planned_runs));
  return ledger.CheckFits(plan_, goal_.new_limit);
}

Status Budget::Begin() const {
  privacy::Ledger& ledger = *options_.privacy.ledger;
  if (goal_.new_limit) WISP_RETURN_IF_ERROR(ledger.SetLimit(*goal_.new_limit));
  if (!plan_.empty()) return ledger.WritePlan(options_.privacy.run, kPlannedRuns, plan_);
  return ledger.PlanRun(to_come_);
}

Result<uint64_t> Budget::StepsThatFit(StepRange steps, bool histogram) const {
  return options_.privacy.ledger->StepsThatFit(
      steps.count,
      [&](uint64_t count) {
        return Charges({steps.first, count}, 1, histogram);
      },
      goal_.new_limit);
}

bool Budget::LimitRefuses(uint64_t step, uint64_t end) const {
  const uint64_t steps = std::min<uint64_t>(std::max(1u, options_.privacy.steps_per_charge), end - step);
  // The limit that this run set may have been lowered since.
  const auto fit = options_.privacy.ledger->StepsThatFit(steps, [&](uint64_t count) {
    return Charges({step, count}, 1, /*histogram=*/false);
  });
  return fit.ok() && *fit < steps;
}

// Adds to the `refusal` of all steps what would be accepted: fewer steps, or all of them with more noise.
Status Budget::AddAffordableSteps(StepRange steps, bool histogram, const Status& refusal) const {
  const auto with = [&](const std::string& more) { return Status(refusal.code(), refusal.message() + more); };
  const auto fit = StepsThatFit(steps, histogram);
  if (!fit.ok()) return refusal;
  const std::string these =
      "; with this noise " +
      (*fit == 0 ? "not one of its" : std::to_string(*fit) + " of its " + std::to_string(steps.count)) +
      " steps would fit";
  // The factor of noise with which all steps fit, to one percent, rounded up.
  const auto enough = FindNoiseThatFits(1, 1024, 1.01, [&](double factor) -> Result<bool> {
    WISP_ASSIGN_OR_RETURN(const std::vector<ChargeRequest> charges, Charges(steps, factor, histogram));
    return HasRoom(*options_.privacy.ledger, charges, goal_.new_limit);
  });
  if (!enough.ok()) return refusal;
  if (!*enough) return with(these + ", nor all of them with a thousand times the noise");
  const double factor = std::ceil(**enough * 100) / 100;
  std::string more = these + ", all of them with " + privacy::ShortText(factor) + " times the noise";
  if (const double noise = OneNoise(options_); noise > 0)
    more += ", a noise multiplier of " + privacy::EpsilonText(factor * noise);
  return with(more);
}

Result<ChargeRequest> MakeCharge(const ReleasedSum& sum) {
  WISP_ASSIGN_OR_RETURN(const Mechanism mechanism,
                        Mechanism::Gaussian({.noise_multiplier = sum.noise_multiplier, .count = sum.count}));
  return ChargeRequest{
      .mechanism = mechanism,
      .run = sum.run,
      .purpose = sum.purpose,
      .noise = sum.noise,
      .loss_slack = privacy::DiscretisationLoss(
          {.sigma_in_steps = sum.sigma_in_steps, .num_coordinates = sum.num_coordinates, .num_steps = sum.count})};
}

Result<bool> HasRoom(const privacy::Ledger& ledger, std::span<const ChargeRequest> charges,
                     const std::optional<EpsilonDelta>& new_limit) {
  const Status status = ledger.CheckFits(charges, new_limit);
  if (status.ok() || status.code() == StatusCode::kPrivacyRefused) return status.ok();
  return status;
}

Result<std::optional<double>> FindNoiseThatFits(double too_little, double most, double precision,
                                                const std::function<Result<bool>(double)>& fits) {
  WISP_ASSIGN_OR_RETURN(const bool any, fits(most));
  if (!any) return std::optional<double>();
  double enough = most;
  while (enough > precision * too_little) {
    const double middle = std::sqrt(too_little * enough);
    WISP_ASSIGN_OR_RETURN(const bool is_enough, fits(middle));
    (is_enough ? enough : too_little) = middle;
  }
  return std::optional(enough);
}

}  // namespace wisp
