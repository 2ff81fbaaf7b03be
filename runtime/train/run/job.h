// A whole training run: from sequences and options to a model file's contents, private or not.
//
// What `wisp train`, the C API and the tests share: calibrates the noise, pays for the popularity bias, trains,
// evaluates, says what was spent. The only files it touches are the ledger and, if asked for, the checkpoint.
//
//   TrainingJob job{.sequences = &sequences, .start = {...}, .training = {...}};
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
#include "runtime/train/run/initialise.h"
#include "runtime/train/run/noise_goal.h"
#include "runtime/train/run/records.h"
#include "runtime/train/trainer.h"

namespace wisp {

// FEST and AdaFEST+: which rows of the item table are trained.
struct RowSelection {
  enum class Source {
    kPrivate,  // the most frequent by the charged popularity histogram; needs histogram_noise
    kPublic,   // the largest of public_scores: costs nothing
  } source = Source::kPrivate;
  uint32_t count = 0;                         // rows; as many as there are items at most
  std::span<const float> public_scores = {};  // one per item; from public data, or released before
};

struct JobProgress {
  // Steps done, and at the end: fewer than planned where the limit allows no more.
  uint64_t step = 0, num_steps = 0;
  double mean_loss = 0;  // of the last step, per position; local only
  uint64_t batch = 0;    // records in it, DP-FP's head included; local only
  // Of a private step's gradients before clipping: their mean norm, and the share above the clipping norm. 0 where
  // there is none; local only.
  double mean_norm = 0, clipped = 0;
  // May be stated of this run so far, at the goal's delta; absent without a guarantee.
  std::optional<double> epsilon;
  std::optional<RankingQuality> validation;
  std::optional<uint64_t> saved;  // the step from which the checkpoint goes on
  // Why the newest checkpoint could not be written; the next is tried all the same.
  std::string save_failure;
};

struct JobResult;

struct TrainingJob {
  // What is trained on: records and test cases of these sequences, or `records` as they are. Must outlive the run.
  const data::Sequences* sequences = nullptr;
  HoldOut hold_out = HoldOut::kTest;
  std::span<const Record> records = {};
  Architecture architecture;
  // Start from these weights (flat layout of `architecture`); empty: initialise. Fewer are those of the first
  // parameters, and the others are initialised: of a base beside which an adapter trains, or a model without variances.
  // With training.base they are those that the run holds (StartBeside).
  std::span<const float> start_weights;
  InitialisationOptions initialisation;
  TrainingOptions training;  // num_steps 0: from epochs
  double epochs = 0;         // steps = ceil(epochs * records / expected_batch)
  // Standard deviation of the charged popularity histogram, in units of one record; 0: no bias is set.
  // Non-private training with an output bias uses the exact histogram.
  double histogram_noise = 0;
  // Read when training.method is kFest or kAdaFestPlus and training.sparse.rows is empty.
  RowSelection rows;
  PrivacyGoal goal;         // read when training is private; empty in DP-FP's mode paper
  double head_share = 0.3;  // of the goal, for DP-FP's mode clipped: GoalShare
  // So many runs like this one are fixed before the first charge to the ledger, as its plan: `goal.epsilon` is that of
  // all of them together, by PLD, however they are spread and whatever they show. Given with each of them; one that the
  // plan has no room for is refused.
  uint32_t planned_runs = 1;
  // Set: the ledger's limit from now on, over everything. Written once nothing else is refused, before the first
  // charge.
  std::optional<privacy::EpsilonDelta> new_limit;
  // Saved here every checkpoint_every steps and when the run is cancelled, gone on from when it exists, removed when
  // the run is complete and its model written. Empty: none. 0 steps: at the end of each charge of steps_per_charge, so
  // that a process that is killed loses what one charge paid for and no more; every 50 where nothing is charged. A run
  // that goes on pays for all of its own steps; where the limit does not allow all that are left it ends after those
  // that it allows (JobResult::planned_steps).
  std::string checkpoint_path;
  uint64_t checkpoint_every = 0;
  // Above 0: after so many more steps the run pauses. Its model is written as at its end, its checkpoint stays, and the
  // same job goes on from there another time, for what is left of its steps. Needs a checkpoint_path.
  uint64_t pause_after = 0;
  // Shrinks what a private run with Adam changed in rows of item tables (shrink_rows.h), in what it writes and returns;
  // what training goes on from stays as it is. Needs start_weights.
  bool shrink_rows = false;
  // What people are shown of the model that `write` would make of such a result: by these lists it is tested. What it
  // points to stays until the next call. None: lists of all items but those of the history.
  std::function<ModelLists(const JobResult&)> lists;
  uint64_t evaluate_every = 0;  // steps between validations (needs kValidationAndTest); 0: never
  // Called after each step from the caller's thread; return false to cancel. What was charged stays charged.
  std::function<bool(const JobProgress&)> progress;
  // Asked before anything is charged, which may be seconds after the start; true: cancelled.
  std::function<bool()> cancelled;
  // Called once, before the first step: the run has what it needs of `start_weights`, and they may go. Not where rows
  // are shrunk.
  std::function<void()> started;
  // Called once, when all else is done: where the model is written. What it could not write the checkpoint still holds,
  // so that a later run has nothing to pay for. Its error is the run's.
  std::function<Status(const JobResult&)> write;
};

// What the steps of one call saw of its records. Counted without noise: local only.
struct SeenBySteps {
  uint64_t num_gradients = 0, num_clipped = 0;  // of records, one that two steps drew counts twice
  double mean_loss = 0;                         // of the steps; per position
  double mean_norm = 0;                         // of the gradients, before clipping
};

struct JobResult {
  std::vector<float> weights;  // that the run held
  size_t first_weight = 0;     // where they begin in the flat layout: FirstHeld
  uint64_t num_steps = 0, num_records = 0;
  uint64_t num_dropped = 0;  // records left out, and gradients that a step could not take; local only
  // Above num_steps: the ledger's limit allowed no more, and `ended_early` says so.
  uint64_t planned_steps = 0;
  uint64_t resumed_from = 0;  // the step of the checkpoint that was gone on from
  SeenBySteps seen;           // local only
  bool paused = false;        // steps are left that can be paid for: TrainingJob::pause_after
  // Sentences for people, empty where there is nothing to say; save_failure: the newest.
  std::string ended_early, save_failure;
  // What its figure stands on: whether it took the steps that were fixed when it began.
  privacy::RunLength length() const {
    return resumed_from == 0 && ended_early.empty() && !paused ? privacy::RunLength::kFixed
                                                               : privacy::RunLength::kChosen;
  }
  double seconds = 0;
  size_t planned_bytes = 0, record_state_bytes = 0;  // of the Trainer
  std::vector<privacy::Mechanism> mechanisms;        // of a private run, in the order of spending
  std::string run;                                   // its name in the ledger: that of the run that was gone on with
  TrainingOptions options;                           // as they ran: steps and noise filled in
  double noise_multiplier = 0;                       // of the gradients; with DP-FP of the releases for the head
  double norm_bound = 0;                             // what a head of classes reads at inference is clipped to
  // Of a head that is made of releases: the class that it names at the mean of every class; else none.
  std::optional<uint32_t> class_of_all_means;
  std::optional<double> epsilon;  // at goal.delta; absent without a guarantee
  std::string accountant;         // who proved it, as privacy::RunEpsilon has it
  std::optional<RankingQuality> validation, test;
};

// Whether the run must know how frequent the items are, for Re-Attention with the printed deviations.
bool NeedsFrequencies(const TrainingJob& job);

Result<JobResult> RunTrainingJob(const TrainingJob& job);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_JOB_H_
