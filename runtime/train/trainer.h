// The training loop of every graph and method: draw records, sum what they give (clipped and noised, or not), step.
//
//   WISP_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(architecture, weights, records, options));
//   while (trainer->step() < options.num_steps) WISP_ASSIGN_OR_RETURN(StepReport report, trainer->Step());
//
// A step has two parts, and a method one of them or both: releases that the head of a classifier is made of (HeadPass:
// DP-FP), and a sum of gradients (StepRelease: all but DP-FP's mode aggregate). What they cost is the PrivacyPlan's to
// say. Where is what in private training:
//   sensitivity   RecordGradients::FinishRecord and HeadReleases::Add: the bound is checked on what was really added
//   released      the noised sums of each step, and nothing else; StepReport's figures marked local are not private
//   ledger        Trainer::Step charges every part of the step (or the block it opens) before anything is drawn
//   noise         StepRelease and HeadReleases, exact discrete Gaussian on the integer grid of privacy::ExactGrid
//
// On a device (TrainingOptions::device) one worker's records pass, in larger batches, and the others draw noise.
// Weights come to the host when they are asked for; a private step's sum never does.
//
// Determinism: the same seed, options and number of threads give the same bits (private runs with a secure generator
// excepted, on purpose). No allocation in a steady step.
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

// Local-only: none of these figures but `step` and `learning_rate` is private.
struct StepReport {
  uint64_t step = 0;
  float learning_rate = 0;
  size_t num_records = 0;       // in the draw that gradients were taken of
  size_t num_head_records = 0;  // DP-FP: in the head's micro-batches together; one that two of them drew counts twice
  double mean_loss = 0;         // per position; 0 where no gradient is taken
  double mean_norm = 0;         // of the records' gradients before clipping
  size_t num_clipped = 0;       // records whose gradient was longer than the clipping norm
  size_t num_dropped = 0;       // records whose gradient was not finite, or not within the bound after rounding
};

class Trainer {
 public:
  // Everything that Create would refuse, without making anything: to be asked before budget is spent on the run.
  // Private training refuses nothing for the sake of its records, or the refusal would tell of them: it runs on none,
  // and leaves out what is no record.
  static Status Check(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
                      const TrainingOptions& options);

  // `weights` is the start, flat layout; with options.base from FirstHeld on. `records` must outlive the trainer, and
  // so must what they point at.
  static Result<std::unique_ptr<Trainer>> Create(const Architecture& architecture, std::span<const float> weights,
                                                 std::span<const Record> records, const TrainingOptions& options);
  ~Trainer();

  // One step. An error leaves weights and ledger as they were before it (a charge already made stays).
  Result<StepReport> Step();

  uint64_t step() const { return step_; }
  // One after the last step: num_steps, unless it is to end sooner.
  uint64_t end() const { return schedule_.end; }
  // From now on, for a run that cannot be paid to its end. step() <= end <= num_steps; the learning rate comes to its
  // end there.
  void EndAt(uint64_t end) { schedule_ = {options_.num_steps, step_, end}; }
  // No step beyond this one is charged now: the run goes on from there another time. Its schedule stays as it is.
  void PauseAt(uint64_t step) { pause_ = step; }
  // Whether no step is charged that was not taken. Steps charged so far by this object, taken or not.
  bool at_end_of_charge() const;
  uint64_t num_charged() const { return num_charged_; }
  // Records that were left out of a private run: IsTrainable says why. Local-only.
  size_t num_left_out() const { return num_left_out_; }
  // The run's name in the ledger; after Restore that of the run that goes on.
  const std::string& run() const { return options_.privacy.run; }
  // Those that the run holds (FirstHeld). In host memory, as long as the trainer; of a run on a device a copy of what
  // they are now, which the next call of either takes over. Then CheckDevice says whether they could be copied.
  std::span<const float> weights() const { return OnHost(weights_); }
  // The averaged weights where ema_decay > 0, else the current ones.
  std::span<const float> final_weights() const { return OnHost(ema_.size() > 0 ? ema_ : weights_); }
  const Graph& graph() const { return *graph_; }
  Workers& workers() { return workers_; }

  // What is charged. Only for private methods.
  const PrivacyPlan& privacy_plan() const { return *plan_; }
  // What the head of a classifier reads at inference with these weights.
  HeadInput inference_input() const {
    return {.norm_bound = ReleasesHead(options_) ? options_.dp_fp.clipping_norm : 0};
  }

  // Of a head that is made of releases: HeadReleases::class_of_all_means.
  std::optional<uint32_t> class_of_all_means() const { return head_ ? head_->class_of_all_means() : std::nullopt; }

  // An error where the device has failed: weights mean nothing any more, in this process, and steps are refused.
  Status CheckDevice() const;

  // What a later process needs to go on. The keys of secure streams are never part of it. An error as of CheckDevice.
  Result<Checkpoint> Save();
  // Restores what Save gave; refused when it belongs to another architecture, seed or base model, and kPrivacyRefused
  // where the ledger does not hold the charges of its steps: what they cost would be forgotten.
  Status Restore(const Checkpoint& checkpoint);

  // No step comes any more: gives back sums and moments, and what gradient methods keep.
  void EndSteps() {
    release_.reset();
    optimizer_.reset();
  }

  // What this object holds, known before the first step and the same after it (DP-AdaFEST's sums grow with the rows
  // that it selects). PlanTrainingMemory says it before there is a trainer, and how far that growth may go.
  TrainingMemory memory() const;
  size_t planned_bytes() const { return memory().total(); }
  // Of these, what the gradient method keeps of the one record that a worker is at.
  size_t record_state_bytes() const { return release_ ? release_->GradientsOf(0).scratch_bytes() : 0; }

 private:
  struct Worker;
  Trainer(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
          const TrainingOptions& options, std::vector<privacy::RandomStream> streams);

  std::string Config() const { return RunIdentity(options_, records_.size(), noise_variance_.has_value()); }
  uint64_t SavedSeed() const;
  std::vector<float> MomentOf(const std::vector<float>& saved) const;
  std::vector<float> HeldOf(const std::vector<float>& saved) const;
  // What a checkpoint has of a flat buffer, and back into one.
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
  // On a device the calling thread does what the workers share on the host.
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
  std::vector<Record> trainable_;  // of records_, where some are not
  size_t num_left_out_ = 0;
  Workers workers_;
  AlignedArray<float> weights_;        // those that the run holds
  size_t first_held_;                  // where they begin (FirstHeld)
  std::vector<StoredTensor> tensors_;  // of all parameters
  PackedWeights packed_;
  AlignedArray<float> ema_;
  mutable std::vector<float> on_host_;           // of a run on a device: room for the weights that are asked for
  mutable std::string failed_;                   // the device, and with what
  std::optional<PrivacyPlan> plan_;              // private training
  std::optional<Optimizer> optimizer_;           // where gradients move weights, as release_
  std::optional<NoiseVariance> noise_variance_;  // private training with Re-Attention
  std::optional<HeadPass> head_;                 // where releases make the head
  std::optional<PooledCache> pooled_;            // where nothing below the head trains
  std::vector<uint8_t> changes_;                 // of each parameter, whether a step changes it
  bool packed_once_ = false;                     // all of the weights that there are now
  std::unique_ptr<StepRelease> release_;
  std::optional<NegativeSampler> negatives_;
  std::vector<std::unique_ptr<Worker>> worker_state_;
  privacy::RandomStream sampling_stream_;
  std::vector<uint32_t> sample_, batch_, order_;
  std::vector<int32_t> sparse_rows_;  // what options_.sparse.rows shows
  std::vector<const Record*> batch_records_;
  StepRelease::Apply apply_;  // Apply as a function, made once: a step allocates nothing
  size_t order_next_ = 0;
  uint64_t step_ = 0, num_charged_ = 0;
  uint64_t pause_ = std::numeric_limits<uint64_t>::max();
  privacy::Receipt receipt_;             // of what was charged so far, that of a checkpoint gone on with included
  std::vector<uint64_t> charged_until_;  // of each part of the plan
  float rate_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_TRAINER_H_
