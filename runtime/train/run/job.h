// A whole training run: from sequences and options to a model file's contents, private or not.
//
// `wisp train`, the C API and tests share it: it calibrates the noise, pays for the popularity bias, trains, evaluates,
// and says what was spent. The only files it touches are the ledger and, if asked for, the checkpoint.
//
//   TrainingJob job{.spec = spec, .sequences = &sequences};
//   WISP_ASSIGN_OR_RETURN(JobResult result, RunTrainingJob(job));
#ifndef WISP_RUNTIME_TRAIN_RUN_JOB_H_
#define WISP_RUNTIME_TRAIN_RUN_JOB_H_

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/sequences.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/ledger_statement.h"
#include "runtime/train/run/evaluate.h"
#include "runtime/train/run/run_spec.h"
#include "runtime/train/trainer.h"

namespace wisp {

struct JobProgress {
  // Steps done, and the step at which the run ends: fewer than planned if the limit allows no more.
  uint64_t step = 0, num_steps = 0;
  double mean_loss = 0;  // loss of the last step, per position; local only
  uint64_t batch = 0;    // records in that step, DP-FP's head included; local only
  // A private step's gradients before clipping: their mean norm, and the share above the clipping norm. 0 if there are
  // no gradients; local only.
  double mean_norm = 0, clipped = 0;
  // The epsilon that may be stated for this run so far, at the goal's delta; absent without a guarantee.
  std::optional<double> epsilon;
  std::optional<RankingQuality> validation;
  std::optional<uint64_t> saved;  // the step that the checkpoint resumes from
  // The reason why the newest checkpoint could not be written; the next one is tried nevertheless.
  std::string save_failure;
};

struct JobResult;

// Releases beside the steps, spread evenly over them; the first comes before the first step.
struct ReleasePlan {
  uint32_t releases = 0;        // 0: none
  double noise_multiplier = 0;  // of each
};

struct TrainingJob {
  RunSpec spec;  // its architecture is that of the model that trains
  // The training data: records and test cases of these sequences, or `records` as they are. Must outlive the run.
  const data::Sequences* sequences = nullptr;
  std::span<const Record> records = {};
  // The start weights, in the flat layout of the architecture; empty: those of the base, or initialised ones. If there
  // are fewer, they are those of the first parameters, and the others are initialised: a base beside which an adapter
  // trains, or a model without variances. With training.base they are the weights that the run holds (StartBeside).
  std::span<const float> start_weights = {};
  // Path of the checkpoint; empty: none. The run is saved here every checkpoint_every steps and when it is cancelled.
  // It resumes from this file if it exists, and removes it when it is complete and its model written. 0 steps: saved at
  // the end of each charge of steps_per_charge, so that a process that is killed loses at most what one charge paid
  // for; every 50 steps if nothing is charged.
  //
  // A run that resumes pays for all of its own steps. If the limit does not allow all that are left, it ends after
  // those that it allows (JobResult::planned_steps).
  std::string checkpoint_path;
  uint64_t checkpoint_every = 0;
  // Above 0: the run pauses after so many more steps. It writes its model as at its end and keeps its checkpoint, and
  // the same job resumes there another time for the steps that are left. Needs a checkpoint_path.
  uint64_t pause_after = 0;
  // Shrinks what a private run with Adam changed by what noise alone would change (ShrinkChanges), in the weights that
  // it writes and returns; training itself resumes from the unshrunk weights. Needs start_weights.
  bool shrink_changes = false;
  // Releases of successions (successions.h), and of the weight of the output bias (bias_weight.h) where the model has a
  // fixed one. Only for private runs that start from all weights of a model.
  ReleasePlan successions = {}, bias_weight = {};
  // The model whose bias is weighed, and trained with from then on: all its weights, lists and hash. The first release
  // for another one comes before the next step. Without weights it is the model that the run starts from.
  struct {
    std::span<const float> weights;
    ModelLists lists;
    uint64_t hash = 0;
  } weighed = {};
  // The lists of the model that the run starts from. Rows of its untrained items that only noise has moved are restored
  // (RestoreRows) in the weights that a private run with Adam writes and returns.
  ModelLists start_lists = {};
  // The rules of the lists that people are shown with the model that `write` would make of a result: the test uses
  // these lists. What it points to stays valid until the next call. Empty: lists of all items except those of the
  // history.
  std::function<ModelLists(const JobResult&)> lists;
  uint64_t evaluate_every = 0;  // steps between validations (needs kValidationAndTest); 0: never
  // Called after each step from the caller's thread; return false to cancel. What was charged stays charged.
  std::function<bool(const JobProgress&)> progress;
  // Called several times before anything is charged, while the noise is found too, and now and then during steps;
  // return true to cancel the run. A step that takes long is then given up, although it was charged.
  std::function<bool()> cancelled;
  // Called once, before the first step: the run has copied what it needs, and `start_weights` may be freed. Not called
  // if changes are shrunk or restored, or something is released beside the steps.
  std::function<void()> started;
  // Writes the model; called once, after everything else. If it fails, the checkpoint still holds the result, so that a
  // later run has nothing to pay for. Its error is the run's.
  std::function<Status(const JobResult&)> write;
};

// Figures of the records that one call's steps drew. Counted without noise: local only.
struct SeenBySteps {
  uint64_t num_gradients = 0, num_clipped = 0;  // gradients of records; one that two steps drew counts twice
  double mean_loss = 0;                         // mean over the steps; per position
  double mean_norm = 0;                         // mean norm of the gradients, before clipping
};

struct JobResult {
  std::vector<float> weights;  // the weights that the run held
  size_t first_weight = 0;     // where they begin in the flat layout: FirstHeld
  uint64_t num_steps = 0, num_records = 0;
  uint64_t num_dropped = 0;  // records left out, and gradients left out of a step; local only
  // Above num_steps if the ledger's limit allowed no more, which `ended_early` explains.
  uint64_t planned_steps = 0;
  uint64_t resumed_from = 0;  // the step of the checkpoint that the run resumed from
  SeenBySteps seen;           // local only
  bool paused = false;        // payable steps are left: TrainingJob::pause_after
  // Sentences for people, empty if there is nothing to say; save_failure is the newest one.
  std::string ended_early, save_failure;
  // The basis of the run's epsilon: whether it took exactly the steps that were fixed when it began.
  privacy::RunLength length() const {
    return resumed_from == 0 && ended_early.empty() && !paused ? privacy::RunLength::kFixed
                                                               : privacy::RunLength::kChosen;
  }
  double seconds = 0;
  size_t planned_bytes = 0, record_state_bytes = 0;    // of the Trainer
  std::vector<privacy::Mechanism> mechanisms;          // of a private run, in the order of spending
  std::string run;                                     // name in the ledger; that of the resumed run
  std::optional<std::vector<Succession>> successions;  // the newest released ones; nullopt: none were released
  TrainingOptions options;                             // the options as they ran: steps and noise filled in
  double noise_multiplier = 0;  // noise of the gradients; with DP-FP of the releases for the head
  double norm_bound = 0;        // the bound to which a head of classes clips its input at inference
  // For a head that is made of releases: the class that it predicts at the mean of every class, if it is a single one.
  std::optional<uint32_t> class_of_all_means;
  std::optional<double> epsilon;  // at goal.delta; absent without a guarantee
  std::string accountant;         // the name that privacy::RunEpsilon gives the accountant
  std::optional<RankingQuality> validation, test;
};

// True if the run must know how frequent the items are, for Re-Attention with the printed deviations.
bool NeedsFrequencies(const RunSpec& spec);

Result<JobResult> RunTrainingJob(const TrainingJob& job);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_JOB_H_
