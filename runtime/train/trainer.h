// The training loop of every graph and method: charge, sample records, sum their gradients or representations (clipped
// and noised, or not), update.
//
//   WISP_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(architecture, weights, records, options));
//   while (trainer->step() < options.num_steps) WISP_ASSIGN_OR_RETURN(StepReport report, trainer->Step());
//
// A step has one part or two (step_part.h): releases of which a classifier's head is made (DP-FP), and a sum of
// gradients (gradient_step.h: all but DP-FP's mode aggregate). PrivacyPlan has their cost. In private training:
//   sensitivity   RecordGradients::FinishRecord and HeadReleases::Add: the bound is checked on what was really added
//   released      the noised sums of each step, and nothing else; StepReport's figures marked local are not private
//   ledger        Trainer::Step charges every part of the step (or the block it opens) before anything is drawn
//   noise         StepSum and HeadReleases, exact discrete Gaussian on the integer grid of privacy::ExactGrid
//
// On a device (TrainingOptions::device) one worker runs the records, in larger batches. It draws its noise while the
// device computes, as the others do. Weights are copied to the host on request; a private step's sum never is.
//
// Determinism: equal seeds, options and numbers of threads give equal bits (except private runs with a secure
// generator, on purpose). A steady step allocates nothing.
#ifndef WISP_RUNTIME_TRAIN_TRAINER_H_
#define WISP_RUNTIME_TRAIN_TRAINER_H_

#include <limits>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/layers/graph.h"
#include "runtime/model/checkpoint.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/checkpoint_parts.h"
#include "runtime/train/held_weights.h"
#include "runtime/train/memory.h"
#include "runtime/train/options.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/step_charges.h"
#include "runtime/train/step_part.h"

namespace wisp {

class Trainer {
 public:
  // Returns every error that Create would return, without constructing anything; ask it before budget is spent on the
  // run. Private training never refuses because of its records, as the refusal would reveal something about them. It
  // runs even with no records, and leaves out invalid ones.
  static Status Check(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
                      const TrainingOptions& options);

  // `weights` is the start, in the flat layout; with options.base it begins at FirstHeld. `records`, and what they
  // point at, must outlive the trainer.
  static Result<std::unique_ptr<Trainer>> Create(const Architecture& architecture, std::span<const float> weights,
                                                 std::span<const Record> records, const TrainingOptions& options);

  // Takes one step. An error leaves weights and ledger as they were (a charge already made stays).
  Result<StepReport> Step();
  // Steps ask `wanted` now and then, on the caller's thread. Once it is true, a step that does not end soon is given
  // up: kCancelled. For steps of one part (step_part.h).
  void StopBy(std::function<bool()> wanted) { context_.stop.AskBy(std::move(wanted)); }
  bool stop_wanted() const { return context_.stop.wanted(); }

  uint64_t step() const { return context_.step; }
  // The step count at which the run ends: num_steps, unless EndAt shortened it.
  uint64_t end() const { return schedule_.end; }
  // Ends a run early that cannot be paid for to its planned end. step() <= end <= num_steps; the learning rate then
  // reaches its final value at `end`.
  void EndAt(uint64_t end) { schedule_ = {options_.num_steps, step(), end}; }
  // Charges no step from this one on for now; a later process resumes the run there. The schedule stays.
  void PauseAt(uint64_t step) { pause_ = step; }
  // True if every charged step was taken. num_charged counts the steps charged by this object, taken or not.
  bool at_end_of_charge() const { return !charges_ || charges_->all_taken(step()); }
  uint64_t num_charged() const { return charges_ ? charges_->num_charged() : 0; }
  // The number of records left out of a private run because IsTrainable refuses them. Local-only.
  size_t num_left_out() const { return num_left_out_; }
  // The run's name in the ledger; after Restore, that of the resumed run.
  const std::string& run() const { return options_.privacy.run; }
  // The weights that the run holds (from FirstHeld on), in host memory, valid as long as the trainer. For a run on a
  // device this is a copy of their current values, which the next call of weights or final_weights overwrites.
  // CheckDevice then says whether the copy succeeded.
  std::span<const float> weights() const { return weights_.OnHost(); }
  // The averaged weights if ema_decay > 0, else the current ones.
  std::span<const float> final_weights() const { return weights_.FinalOnHost(); }
  // Sets a parameter that no step changes, and its average. `values` are in host memory.
  void SetParameter(const ParameterSpec& parameter, std::span<const float> values) { weights_.Set(parameter, values); }
  const Graph& graph() const { return *graph_; }
  Workers& workers() { return workers_; }

  // The charges of the run. Only for private methods.
  const PrivacyPlan& privacy_plan() const { return charges_->plan(); }
  HeadInput inference_input() const { return context_.inference_input(); }
  // HeadReleases::class_of_all_means, if the head is made of releases.
  std::optional<uint32_t> class_of_all_means() const;

  // An error if the device has failed: the weights are then lost in this process, and steps are refused.
  Status CheckDevice() const { return weights_.CheckDevice(); }

  // Saves everything that a later process needs to resume. The keys of secure streams are never part of it. Fails if
  // CheckDevice does.
  Result<Checkpoint> Save();
  // Restores a checkpoint from Save. Refuses one of another architecture, seed or base model. kPrivacyRefused if the
  // ledger does not hold the charges of its steps, because their cost would be forgotten.
  Status Restore(const Checkpoint& checkpoint);

  // Call this after the last step: frees sums, moments and the gradient methods' state.
  void EndSteps();

  // The bytes that this object holds, known before the first step and unchanged after it (DP-AdaFEST's sums grow with
  // the rows that it selects). PlanTrainingMemory computes the same without a trainer, and bounds that growth.
  TrainingMemory memory() const;
  size_t planned_bytes() const { return memory().total(); }
  // The part of these that is the gradient method's state of a worker's current record.
  size_t record_state_bytes() const { return memory().record_gradients / context_.num_callers; }

 private:
  Trainer(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
          const TrainingOptions& options, std::vector<privacy::RandomStream> streams);

  // RunIdentity of this run.
  std::string Config() const;
  uint64_t SavedSeed() const;
  bool is_private() const { return IsPrivate(options_); }
  // Leaves out the invalid ones. Whether a record is valid depends on that record alone, so it changes nothing for the
  // others.
  std::span<const Record> Trainable(std::span<const Record> records);
  // For each parameter: 1 if a step changes it.
  std::vector<uint8_t> Changes() const;
  // The first samples, the others draw the workers' noise.
  checkpoint_parts::Streams AllStreams();
  Status CheckRun(const Checkpoint& checkpoint);
  void Draw();
  void PassFrozenLayers();

  TrainingOptions options_;
  Schedule schedule_;
  std::unique_ptr<Graph> graph_;
  TrainedSet trained_;
  std::vector<Record> trainable_;  // the trainable ones of the records, if some are not
  size_t num_left_out_ = 0;
  Workers workers_;
  HeldWeights weights_;
  privacy::RandomStream sampling_;
  std::vector<int32_t> sparse_rows_;  // owns the rows of options_.sparse.rows
  StepContext context_;
  std::vector<std::unique_ptr<StepPart>> parts_;  // as the plan's
  std::optional<StepCharges> charges_;            // private training
  uint64_t pause_ = std::numeric_limits<uint64_t>::max();
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_TRAINER_H_
