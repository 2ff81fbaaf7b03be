// The privacy budget of a deployment, fixed before the first look at its data: numbers of training runs and of
// evaluations, whose noise follows from public numbers alone. All of it is a plan in the ledger, so it composes by PLD
// however the runs are spread and whatever they show (docs/algorithms.md, sections 10 and 11).
//
//   WISP_ASSIGN_OR_RETURN(const Deployment deployment, CalibrateDeployment(architecture, {.num_records_public = 2000,
//       .epsilon = 4, .delta = 1e-5, .runs = 365, .steps_per_run = 4, .evaluations = 12}));
//   WISP_RETURN_IF_ERROR(WriteDeployment(ledger, deployment, "plan"));             // before the first run
//   ... a year later
//   WISP_ASSIGN_OR_RETURN(const auto settings, ReadSettings(ledger));
//   WISP_ASSIGN_OR_RETURN(const DeploymentLeft left, ComputeLeft(ledger, *settings));
#ifndef WISP_RUNTIME_PERSONALISE_DEPLOYMENT_H_
#define WISP_RUNTIME_PERSONALISE_DEPLOYMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/model/model_file.h"
#include "runtime/personalise/evaluate_candidate.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/options.h"
#include "runtime/train/privacy_plan.h"

namespace wisp {

// The properties of the base that a plan depends on.
struct PlannedBase {
  explicit PlannedBase(const ModelFile& base) : PlannedBase(base.architecture(), base.lists().allow_seen) {}
  PlannedBase(Architecture a, bool seen) : architecture(std::move(a)), allow_seen(seen) {}
  Architecture architecture;
  bool allow_seen;  // ModelLists::allow_seen
};

// Public constants, equal for every run of the plan.
struct DeploymentSettings {
  uint32_t num_records_public = 0;
  double epsilon = 0, delta = 0;  // of the whole plan, for every record
  uint32_t runs = 0;              // runs of training
  uint64_t steps_per_run = 0;
  uint32_t expected_batch = 0;
  double clipping_norm = 1;
  double training_noise = 0;    // noise multiplier, found by CalibrateDeployment
  uint32_t evaluations = 0;     // 0: the newest model is served, better or not
  double evaluation_noise = 0;  // found by CalibrateDeployment
  // 1: evaluation without noise and without a charge. Whoever sees which model is served, or its recommendations,
  // learns something about the records: for models that never leave the device.
  uint32_t evaluates_locally = 0;
  double gain_scale = 0.2, error = 0.05, decay = 0.7;  // EvaluationOptions and EvaluationRule
  uint32_t num_targets = 8;
  double learning_rate = 0.003;  // Adam's, constant
  double averaging = 0;          // TrainingOptions::ema_decay
  uint32_t num_negatives = 0;    // for a sampled softmax; 0: the full one
  uint32_t shrinks_changes = 0;  // 1: TrainingJob::shrink_changes
  // Releases of the output bias's weight and of successions (ReleasePlan); 0: none. Each kind takes its share of the
  // plan's budget (plan_releases.h); the noise of each release is found by CalibrateDeployment.
  uint32_t bias_weight_releases = 0;
  double bias_weight_share = 0, bias_weight_noise = 0;
  uint32_t succession_releases = 0;
  double succession_share = 0, succession_noise = 0;
  // 1: the base that the plan was made for allows items of the history in its lists (ModelFile::lists). Models are
  // evaluated by their own rules for lists, so a run whose base has another rule is refused.
  uint32_t allow_seen = 0;
  // Above 0: in all runs, events after this second since 1970 are for evaluation and do not train, for a log that
  // does not grow. 0: the moment follows from the ledger (TrainsUntil).
  int64_t trains_until = 0;
  // For a changed plan (plan_change.h). steps_in_all: the steps of the single run that its runs share, including
  // those before the change if that run continues; 0: runs * steps_per_run. evaluations_before: evaluations before the
  // change, if the run does not continue; else 0.
  uint64_t steps_in_all = 0;
  uint32_t evaluations_before = 0;
  // The number of records when the plan begins; it grows evenly every run up to num_records_public. This growth is
  // public, like that number. Runs then share the steps in proportion to the records present. 0: all of them are
  // there from the first run on.
  uint32_t num_records_at_start = 0;
  // Seconds between runs, of which a run waits for half (CheckDue); 0: runs may come at any time.
  uint64_t every = 0;

  // The rules by which candidates, and weights of the bias, are found better than what is served. Where a plan has
  // both, each has half of the error.
  EvaluationRule rule() const;
  EvaluationRule weight_rule() const;
  uint64_t num_steps() const { return steps_in_all > 0 ? steps_in_all : steps_per_run * runs; }
  // The mean share of all records that is there when a step is taken: 1, or less if records come over time.
  double share_present() const;
  bool operator==(const DeploymentSettings&) const = default;
};

// kInvalidArgument names the setting that is out of range.
Status CheckSettings(const DeploymentSettings& settings);
// kInvalidArgument: the ledger's plan was made for a base with another rule for its lists. An evaluation by lists that
// nobody is shown would break the plan's promise.
Status CheckPlanBase(const DeploymentSettings& settings, const ModelFile& base, const privacy::Ledger& ledger);
// The architecture with as many items as a catalogue may grow to under a plan.
Architecture Grown(Architecture architecture);

// The training options of every run. All steps of the plan are one job, which pauses after those of each run.
TrainingOptions MakeTrainingOptions(const DeploymentSettings& settings);

// The cost of steps with these settings, for a model of this shape.
Result<PrivacyPlan> PlanSteps(const Architecture& architecture, const DeploymentSettings& settings);

// The mechanisms of the dearest run: its steps, and a release of each kind that the plan has.
Result<std::vector<privacy::Mechanism>> RunMechanisms(const Architecture& architecture,
                                                      const DeploymentSettings& settings);

// Writes "num_records_public=2000 epsilon=4 ...", and reads it back; kInvalidData for anything else.
std::string ToText(const DeploymentSettings& settings);
Result<DeploymentSettings> ParseDeploymentSettings(const std::string& text);

// The most of the plan's budget (plan_releases.h) that its evaluations take.
inline constexpr double kMostOfEvaluations = 0.1;
// True if evaluations are charged.
inline bool EvaluatesPrivately(const DeploymentSettings& s) { return s.evaluations > 0 && s.evaluates_locally == 0; }

struct Deployment {
  DeploymentSettings settings;
  std::vector<privacy::ChargeRequest> charges;  // everything that will ever be charged; steps come first
};

// Finds the noise. kInvalidArgument for settings out of range; kPrivacyRefused for a delta that is invalid with so many
// records, or an epsilon that no noise meets.
Result<Deployment> CalibrateDeployment(const Architecture& architecture, const DeploymentSettings& settings);

// Writes the limit and the plan into a ledger without charges, both or nothing. A limit that somebody else set stays.
// kPrivacyRefused if something was charged, or was written after `newest_row` (Ledger::NewestRow), up to which the
// caller read; nullopt: the caller read nothing. Apps call MakePlan (make_plan.h) instead.
Status WriteDeployment(privacy::Ledger& ledger, const Deployment& deployment, const std::string& run,
                       std::optional<uint64_t> newest_row = {});

// The settings of the plan in force, which may be a changed one; nullopt without a plan.
Result<std::optional<DeploymentSettings>> ReadSettings(const privacy::Ledger& ledger);
// The settings of a ledger that must have a plan: kPrivacyRefused says how to make one, or that it is too late.
Result<DeploymentSettings> RequireSettings(const privacy::Ledger& ledger);
// The settings of the plan that was in force before row `seq` of the ledger was written.
Result<std::optional<DeploymentSettings>> SettingsBefore(const privacy::Ledger& ledger, uint64_t seq);

// The rest of the plan, which costs nothing beyond the plan's epsilon.
struct DeploymentLeft {
  uint64_t steps = 0, runs = 0, evaluations = 0;  // whole runs
  uint64_t steps_of_next = 0;                     // steps of the next run
  uint64_t bias_weight_releases = 0, succession_releases = 0;
  // The part of the limit beside the plan: what remains when all of the plan is used. 0 without a limit.
  double epsilon = 0;
  bool by_filter = false;  // steps belong to a changed plan, and go through the filter
};
Result<DeploymentLeft> ComputeLeft(const privacy::Ledger& ledger, const DeploymentSettings& settings);

// The charges of so many steps, and of the evaluations that are left.
Result<std::vector<privacy::ChargeRequest>> ChargesWithEvaluations(const PrivacyPlan& plan, uint64_t steps,
                                                                   const DeploymentSettings& settings,
                                                                   const DeploymentLeft& left);

// kTooEarly if the steps of a whole run were charged within half of the plan's `every`, before or after `now`, seconds
// since 1970: so no loop uses up a plan, and a run that was cut short resumes at once. A charge that is further away,
// because the clock jumped, blocks no run.
Status CheckDue(const privacy::Ledger& ledger, const DeploymentSettings& settings, const DeploymentLeft& left,
                int64_t now);

// Steps of training that were charged under this plan and the plans that it was changed from.
Result<uint64_t> StepsTrained(const privacy::Ledger& ledger);

// The second since 1970 up to which events train; later ones are for evaluation. It is public: the plan's constant, or
// the time of the charge with which the newest of the plan's evaluations became due. So training lags behind by the
// time between two evaluations, and each evaluation uses events that no candidate has learned from. For the first
// evaluation it is the charge with which that was half due, and before it the newest charge of training, or `now`
// without charges. Without evaluation all events train.
Result<int64_t> TrainsUntil(const privacy::Ledger& ledger, const DeploymentSettings& settings, int64_t now);

// The steps, up to `most`, that the plan pays for when it trains a model of this shape. They are fewer than the plan
// has left only if the model releases many times the coordinates of the planned one; or, for steps that go through the
// filter, if something was charged beside the plan.
Result<uint64_t> StepsThatPlanCovers(const privacy::Ledger& ledger, const DeploymentSettings& settings,
                                     const DeploymentLeft& left, const Architecture& architecture, uint64_t most);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_DEPLOYMENT_H_
