// The training loop of every graph and method: sample records, sum their gradients or representations (clipped and
// noised, or not), update.
//
//   WISP_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(architecture, weights, records, options));
//   while (trainer->step() < options.num_steps) WISP_ASSIGN_OR_RETURN(StepReport report, trainer->Step());
//
// A step has two parts, and a method uses one or both: releases of which a classifier's head is made (HeadPass: DP-FP),
// and a sum of gradients (StepRelease: all but DP-FP's mode aggregate). PrivacyPlan has their cost. In private
// training:
//   sensitivity   RecordGradients::FinishRecord and HeadReleases::Add: the bound is checked on what was really added
//   released      the noised sums of each step, and nothing else; StepReport's figures marked local are not private
//   ledger        Trainer::Step charges every part of the step (or the block it opens) before anything is drawn
//   noise         StepRelease and HeadReleases, exact discrete Gaussian on the integer grid of privacy::ExactGrid
//
// On a device (TrainingOptions::device) one worker runs the records, in larger batches, and the others draw noise.
// Weights are copied to the host on request; a private step's sum never is.
//
// Determinism: equal seeds, options and numbers of threads give equal bits (except private runs with a secure
// generator, on purpose). A steady step allocates nothing.
#ifndef WISP_RUNTIME_TRAIN_TRAINER_H_
#define WISP_RUNTIME_TRAIN_TRAINER_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/gradients/phantom_gradients.h"
#include "runtime/gradients/rgp_carriers.h"
#include "runtime/layers/graph.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/model/checkpoint.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/memory.h"
#include "runtime/train/negative_sampler.h"
#include "runtime/train/noise_variance.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/options.h"
#include "runtime/train/pooled_cache.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/release/head_pass.h"
#include "runtime/train/release/step_release.h"

namespace wisp {

// Local-only: no figure here is private, except `step` and `learning_rate`.
struct StepReport {
  uint64_t step = 0;
  float learning_rate = 0;
  size_t num_records = 0;       // in the draw whose gradients were summed
  size_t num_head_records = 0;  // DP-FP: in all micro-batches of the head; a record drawn by two of them counts twice
  double mean_loss = 0;         // per position; 0 if the step has no gradient
  double mean_norm = 0;         // mean norm of the records' gradients before clipping
  size_t num_clipped = 0;       // records whose gradient was longer than the clipping norm
  size_t num_dropped = 0;       // records whose gradient was not finite, or not within the bound after rounding
};

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
  ~Trainer();

  // Takes one step. An error leaves weights and ledger as they were (a charge already made stays).
  Result<StepReport> Step();

  uint64_t step() const { return step_; }
  // The step count at which the run ends: num_steps, unless EndAt shortened it.
  uint64_t end() const { return schedule_.end; }
  // Ends a run early that cannot be paid for to its planned end. step() <= end <= num_steps; the learning rate then
  // reaches its final value at `end`.
  void EndAt(uint64_t end) { schedule_ = {options_.num_steps, step_, end}; }
  // Charges no step from this one on for now; a later process resumes the run there. The schedule stays.
  void PauseAt(uint64_t step) { pause_ = step; }
  // True if every charged step was taken. num_charged counts the steps charged by this object, taken or not.
  bool at_end_of_charge() const;
  uint64_t num_charged() const { return num_charged_; }
  // The number of records left out of a private run because IsTrainable refuses them. Local-only.
  size_t num_left_out() const { return num_left_out_; }
  // The run's name in the ledger; after Restore, that of the resumed run.
  const std::string& run() const { return options_.privacy.run; }
  // The weights that the run holds (from FirstHeld on), in host memory, valid as long as the trainer. For a run on a
  // device this is a copy of their current values, which the next call of weights or final_weights overwrites.
  // CheckDevice then says whether the copy succeeded.
  std::span<const float> weights() const { return OnHost(weights_); }
  // The averaged weights if ema_decay > 0, else the current ones.
  std::span<const float> final_weights() const { return OnHost(ema_.size() > 0 ? ema_ : weights_); }
  const Graph& graph() const { return *graph_; }
  Workers& workers() { return workers_; }

  // The charges of the run. Only for private methods.
  const PrivacyPlan& privacy_plan() const { return *plan_; }
  // The options with which a classifier's head reads its input at inference with these weights.
  HeadInput inference_input() const {
    return {.norm_bound = ReleasesHead(options_) ? options_.dp_fp.clipping_norm : 0};
  }

  // HeadReleases::class_of_all_means, if the head is made of releases.
  std::optional<uint32_t> class_of_all_means() const { return head_ ? head_->class_of_all_means() : std::nullopt; }

  // An error if the device has failed: the weights are then lost in this process, and steps are refused.
  Status CheckDevice() const;

  // Saves everything that a later process needs to resume. The keys of secure streams are never part of it. Fails if
  // CheckDevice does.
  Result<Checkpoint> Save();
  // Restores a checkpoint from Save. Refuses one of another architecture, seed or base model. kPrivacyRefused if the
  // ledger does not hold the charges of its steps, because their cost would be forgotten.
  Status Restore(const Checkpoint& checkpoint);

  // Call this after the last step: frees sums, moments and the gradient methods' state.
  void EndSteps() {
    release_.reset();
    optimizer_.reset();
  }

  // The bytes that this object holds, known before the first step and unchanged after it (DP-AdaFEST's sums grow with
  // the rows that it selects). PlanTrainingMemory computes the same without a trainer, and bounds that growth.
  TrainingMemory memory() const;
  size_t planned_bytes() const { return memory().total(); }
  // The part of these that is the gradient method's state of a worker's current record.
  size_t record_state_bytes() const { return release_ ? release_->GradientsOf(0).scratch_bytes() : 0; }

 private:
  struct Worker;
  Trainer(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
          const TrainingOptions& options, std::vector<privacy::RandomStream> streams);

  std::string Config() const { return RunIdentity(options_, records_.size(), noise_variance_.has_value()); }
  uint64_t SavedSeed() const;
  std::vector<float> MomentOf(const std::vector<float>& saved) const;
  std::vector<float> HeldOf(const std::vector<float>& saved) const;
  // Copy a flat buffer into a checkpoint; with an adapter only the trained weights.
  bool keeps_trained() const { return graph_->architecture().adapter.has_value(); }
  std::vector<float> Kept(const AlignedArray<float>& flat) const;
  void TakeKept(const std::vector<float>& kept, AlignedArray<float>& flat) const;
  privacy::RandomStream& NoiseStream(size_t worker);
  std::vector<privacy::RandomStream*> AllStreams();
  void DrawBatch();
  void AssignBatch();
  void RunRecords(size_t worker);
  void AddRecord(size_t worker, uint32_t record);
  void RunWaiting(size_t worker);
  Status ChargeIfNeeded();
  void DrawGradientBatch();
  void KeepWhatChanges();
  void Pack();
  void PoolOnce();
  void FitHead(StepReport& report);
  Status StepWeights(StepReport& report);
  double Divisor(size_t num_targets) const;
  void Apply(const Change& change);
  void UpdateVariances(size_t worker);
  void KeepVariances();
  bool is_private() const { return IsPrivate(options_); }
  // On a device the calling thread does the work that the workers share on the host.
  bool is_host() const { return options_.device.memory.is_host(); }
  size_t num_parts() const { return is_host() ? workers_.size() : 1; }
  template <class F>
  void ForParts(const F& part);
  std::span<const float> OnHost(const AlignedArray<float>& flat) const;
  std::vector<float> CopyOf(const AlignedArray<float>& array) const;
  Status WaitForDevice(const char* what_for);
  void MakeWeights(std::span<const float> start);
  bool is_balanced() const { return options_.method != Method::kDpFp; }
  void KeepTrainable();
  void KeepNoiseVariance();

  TrainingOptions options_;
  Schedule schedule_;
  std::unique_ptr<Graph> graph_;
  TrainedSet trained_;
  std::span<const Record> records_;
  std::vector<Record> trainable_;  // the trainable ones of records_, if some are not
  size_t num_left_out_ = 0;
  Workers workers_;
  AlignedArray<float> weights_;        // the weights that the run holds
  size_t first_held_;                  // where weights_ begin in the flat layout (FirstHeld)
  std::vector<StoredTensor> tensors_;  // places of all parameters
  PackedWeights packed_;
  AlignedArray<float> ema_;
  mutable std::vector<float> on_host_;           // for a run on a device: holds the weights that were asked for
  mutable std::string failed_;                   // names the device that failed, and the error
  std::optional<PrivacyPlan> plan_;              // private training
  std::optional<Optimizer> optimizer_;           // set if gradients move weights, like release_
  std::optional<NoiseVariance> noise_variance_;  // private training with Re-Attention
  std::optional<HeadPass> head_;                 // set if the head is made of releases
  std::optional<PooledCache> pooled_;            // set if nothing below the head trains
  std::vector<uint8_t> changes_;                 // per parameter: 1 if a step changes it
  bool packed_once_ = false;                     // all of the current weights are packed
  std::unique_ptr<StepRelease> release_;
  std::optional<NegativeSampler> negatives_;
  std::vector<std::unique_ptr<Worker>> worker_state_;
  privacy::RandomStream sampling_stream_;
  std::vector<uint32_t> sample_, batch_, order_;
  std::vector<int32_t> sparse_rows_;  // owns the rows of options_.sparse.rows
  std::vector<const Record*> batch_records_;
  StepRelease::Apply apply_;  // Apply as a function, made once: a step allocates nothing
  size_t order_next_ = 0;
  uint64_t step_ = 0, num_charged_ = 0;
  uint64_t pause_ = std::numeric_limits<uint64_t>::max();
  privacy::Receipt receipt_;             // covers all charges so far, those of a resumed checkpoint included
  std::vector<uint64_t> charged_until_;  // per part of the plan
  float rate_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_TRAINER_H_
