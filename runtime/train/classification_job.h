// A whole DP-FP run: from labelled records and options to a classifier's weights and what may be said of them.
//
// What `wisp classify train` and the tests share: steps from epochs, noise from a target epsilon, training, the figures
// of the ledger. It touches no file but the ledger and, if asked for, the checkpoint. Sensitivity, release, noise and
// charges are those of Trainer; here is only which noise it is given.
//
//   ClassificationJob job{.records = records, .architecture = a, .start_weights = weights, .options = {...},
//       .epochs = 10, .goal = {...}};
//   WISP_ASSIGN_OR_RETURN(ClassificationResult result, RunClassificationJob(job));
#ifndef WISP_RUNTIME_TRAIN_CLASSIFICATION_JOB_H_
#define WISP_RUNTIME_TRAIN_CLASSIFICATION_JOB_H_

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/privacy/mechanism.h"
#include "runtime/privacy/ledger_statement.h"
#include "runtime/train/job.h"

namespace wisp {

struct ClassificationProgress {
  uint64_t step = 0, num_steps = 0;
  double mean_loss = 0;           // as StepReport: local only, 0 in kAggregate
  std::optional<uint64_t> saved;  // as JobProgress
  std::string save_failure;
};

struct ClassificationResult;

struct ClassificationJob {
  std::span<const Record> records;  // must outlive the run
  Architecture architecture;
  std::span<const float> start_weights;  // flat layout; must not stem from private data that is not accounted for
  // num_steps 0: from epochs. The noise multipliers are read where the goal names none; in kPaper always, for there the
  // goal must be empty: nothing can be calibrated to, and nothing be charged.
  TrainingOptions options;
  // Steps = ceil(epochs * N / expected_batch), N declared or, in kPaper, counted.
  double epochs = 0;
  // goal.epsilon: calibrate to this at goal.delta, everything of the run included. goal.noise_multiplier: of the
  // releases; kClipped takes options.privacy.noise_multiplier beside it. Exactly one of the two in the private modes.
  PrivacyGoal goal;
  std::optional<privacy::EpsilonDelta> new_limit;  // as TrainingJob's
  // kClipped with goal.epsilon: the part of it that the releases for the head would cost alone; the encoder's noise is
  // the smallest with which both together meet the goal. Composition is sublinear: the encoder gets more than the rest.
  double head_share = 0.3;
  std::string checkpoint_path;  // as TrainingJob's, these three
  uint64_t checkpoint_every = 0;
  std::function<Status(const ClassificationResult&)> write;
  std::function<bool(const ClassificationProgress&)> progress;  // after each step; false cancels. Charges stay
};

struct ClassificationResult {
  std::vector<float> weights;
  TrainingOptions options;  // as they ran: steps and noise filled in
  double norm_bound = 0;    // what the head reads at inference is clipped to
  uint64_t num_steps = 0, num_dropped = 0;
  uint64_t planned_steps = 0, resumed_from = 0;  // as JobResult, these four
  std::string ended_early, save_failure;
  privacy::RunLength length() const {
    return resumed_from == 0 && ended_early.empty() ? privacy::RunLength::kFixed : privacy::RunLength::kChosen;
  }
  std::string run;
  double seconds = 0;
  std::vector<privacy::Mechanism> mechanisms;  // none in kPaper
  // Of this run, at goal.delta; absent without a guarantee: kPaper, reproducible noise.
  std::optional<double> epsilon;
  std::string accountant;   // as JobResult's
  std::string description;  // DescribeDpFp: what is released and protected, or why nothing is
};

// The noise of a run with those steps, filled into `options`. Private modes only.
Status FillInNoise(const ClassificationJob& job, TrainingOptions& options);

Result<ClassificationResult> RunClassificationJob(const ClassificationJob& job);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_CLASSIFICATION_JOB_H_
