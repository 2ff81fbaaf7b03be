#include "runtime/train/run/job_charges.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/train/popularity.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/run/saved_run.h"

namespace wisp {

namespace {

constexpr char kPlannedRuns[] = "planned runs";  // the purpose of a plan for several runs

// The noise multiplier of a run that has a single one; 0 if it has two.
double OneNoise(const TrainingOptions& o) {
  if (!ReleasesHead(o)) return o.privacy.noise_multiplier;
  return HasGradients(o) ? 0 : o.dp_fp.noise_multiplier;
}

}  // namespace

// The charges for a range of steps, with what comes before the first of them; or for `runs` such runs.
Result<std::vector<privacy::ChargeRequest>> JobCharges::Of(StepRange steps, double noise_factor, bool histogram,
                                                           uint64_t runs) const {
  const PrivateTraining& p = options_.privacy;
  const auto noise = p.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure;
  std::vector<privacy::ChargeRequest> charges;
  if (job_.histogram_noise > 0 && histogram) {
    WISP_ASSIGN_OR_RETURN(privacy::Mechanism mechanism, overheads_.front().WithSteps(runs));
    charges.push_back({.mechanism = mechanism,
                       .run = p.run,
                       .purpose = "item popularity",
                       .noise = noise,
                       .loss_slack = static_cast<double>(runs) *
                                     PopularityLossSlack(job_.histogram_noise, job_.architecture.num_items),
                       .part = p.part});
  }
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(job_.architecture, options_));
  WISP_ASSIGN_OR_RETURN(auto of_steps, plan.ChargesTogether(steps, noise_factor));
  for (privacy::ChargeRequest& charge : of_steps) {
    WISP_ASSIGN_OR_RETURN(charge.mechanism, charge.mechanism.WithSteps(charge.mechanism.steps() * runs));
    charge.loss_slack *= static_cast<double>(runs);
    charges.push_back(std::move(charge));
  }
  return charges;
}

uint64_t FindLastCallStep(const TrainingJob& job, uint64_t num_steps, uint64_t done) {
  const uint64_t left = num_steps - std::min(done, num_steps);
  return num_steps - left + (job.pause_after > 0 ? std::min(job.pause_after, left) : left);
}

Result<JobCharges::End> JobCharges::Check(const Checkpoint* checkpoint) {
  const uint64_t done = checkpoint ? std::min(checkpoint->step, options_.num_steps) : 0;
  const End whole{.step = FindLastCallStep(job_, options_.num_steps, done), .early = {}};
  if (job_.planned_runs > 1 && checkpoint == nullptr && !options_.privacy.reproducible_seed) {
    WISP_RETURN_IF_ERROR(CheckPlan());
    return whole;
  }
  const RunBudget budget{*options_.privacy.ledger, job_.new_limit, whole.step - done,
                         [&](uint64_t steps, double factor) {
                           return Of({done, steps}, factor, checkpoint == nullptr);
                         },
                         OneNoise(options_)};
  WISP_ASSIGN_OR_RETURN(to_come_, budget.charges(budget.steps, 1));
  const Status refusal = budget.ledger.CheckFits(to_come_, budget.new_limit);
  if (refusal.ok()) return whole;
  if (refusal.code() != StatusCode::kPrivacyRefused || options_.privacy.reproducible_seed) return refusal;
  if (done == 0) return AddAffordableSteps(budget, refusal);
  WISP_ASSIGN_OR_RETURN(const uint64_t fit, StepsThatFit(budget));
  WISP_ASSIGN_OR_RETURN(to_come_, budget.charges(fit, 1));
  return End{.step = done + fit, .early = EndedEarly(done + fit, whole.step, refusal)};
}

// Says why the plan of a ledger that has charges does not cover this run.
Status JobCharges::NoRoomInPlan() const {
  const privacy::Ledger& ledger = *options_.privacy.ledger;
  WISP_ASSIGN_OR_RETURN(const auto plans, ledger.Plans());
  const bool planned = !plans.empty() && plans.back().purpose == kPlannedRuns;
  const auto foreseen = [&](const privacy::ChargeRequest& charge) {
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
Status JobCharges::CheckPlan() {
  const privacy::Ledger& ledger = *options_.privacy.ledger;
  WISP_ASSIGN_OR_RETURN(to_come_, Of(options_.num_steps, 1, /*histogram=*/true));
  WISP_ASSIGN_OR_RETURN(const bool covered, ledger.Covers(to_come_));
  if (covered) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const auto entries, ledger.Entries());
  if (!entries.empty()) return NoRoomInPlan();
  WISP_ASSIGN_OR_RETURN(plan_, Of(options_.num_steps, 1, /*histogram=*/true, job_.planned_runs));
  return ledger.CheckFits(plan_, job_.new_limit);
}

Status JobCharges::Begin() const {
  if (job_.new_limit) WISP_RETURN_IF_ERROR(options_.privacy.ledger->SetLimit(*job_.new_limit));
  if (!plan_.empty()) return options_.privacy.ledger->WritePlan(options_.privacy.run, kPlannedRuns, plan_);
  return options_.privacy.ledger->PlanRun(to_come_);
}

RunBudget JobCharges::Next(uint64_t step, uint64_t end) const {
  const uint64_t steps = std::min<uint64_t>(std::max(1u, options_.privacy.steps_per_charge), end - step);
  return {*options_.privacy.ledger, {}, steps, [this, step](uint64_t n, double factor) {
            return Of({step, n}, factor, /*histogram=*/false);
          }};
}

}  // namespace wisp
