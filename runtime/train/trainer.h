// The training loop: sample records, sum their gradients (clipped and noised, or not), let the optimizer step.
//
//   WISP_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(architecture, weights, records, options));
//   while (trainer->step() < options.num_steps) WISP_ASSIGN_OR_RETURN(StepReport report, trainer->Step());
//
// Private training (every method but kOrdinary) is one Poisson-subsampled Gaussian mechanism. Where is what:
//   sensitivity   RecordGradients::FinishRecord: clip factor from the norm, then the check of what was added
//   released      the noised sum of each step, and nothing else; StepReport's figures marked local are not private
//   ledger        Trainer::Step charges the step (or the block it opens) before the batch is drawn
//   noise         StepRelease, exact discrete Gaussian on the integer grid of privacy::ExactGrid
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
#include "runtime/model/checkpoint.h"
#include "runtime/privacy/ledger.h"
#include "runtime/privacy/random.h"
#include "runtime/train/memory.h"
#include "runtime/train/noise_variance.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/negative_sampler.h"
#include "runtime/train/sparse_release.h"
#include "runtime/train/step_release.h"

namespace wisp {

enum class Method { kOrdinary, kPhantom, kRgp, kFest, kAdaFest, kAdaFestPlus };
bool IsSparse(Method method);  // only some rows of the item table are trained: FEST, AdaFEST, AdaFEST+
enum class Sampling { kPoisson, kShuffled };
// What a record's loss is: the mean over its positions (the only choice under DP), or their sum, so that a step
// averages over all positions of the batch.
enum class LossWeighting { kRecordMean, kPositionMean };

// Everything that makes a run private. Created by the caller, who owns the ledger.
struct PrivateTraining {
  double noise_multiplier = 0;
  double clipping_norm = 1;
  ClipKind clipping = ClipKind::kAutomatic;
  NormForm norm_form = NormForm::kAutomatic;
  privacy::Ledger* ledger = nullptr;  // must outlive the trainer; required
  std::string run;                    // names the run in the ledger; unique, or its cost is added to its namesake's
  uint32_t steps_per_charge = 1;      // steps charged at a time; what was charged is spent, used or not
  std::optional<uint64_t> reproducible_seed;  // set: noise repeats and there is NO guarantee
};

struct TrainingOptions {
  Method method = Method::kOrdinary;
  Sampling sampling = Sampling::kShuffled;
  LossWeighting loss = LossWeighting::kRecordMean;
  uint64_t num_steps = 0;
  // Records; with Poisson sampling the expectation, q = expected_batch / num_records.
  uint32_t expected_batch = 256;
  // N in q = B / N: a public constant of the run, never counted from private data. Private methods require it; 0 means
  // "as many as there are" otherwise.
  uint32_t num_records_public = 0;
  OptimizerOptions optimizer;
  DropoutRates dropout;
  ReAttentionOptions re_attention;  // read when the architecture has it and the method is private
  float ema_decay = 0;              // 0: no weight averaging
  // ModelFile::content_hash() of the start, 0: none; a checkpoint is gone on with from the same only.
  uint64_t base_model_hash = 0;
  uint64_t seed = 1;  // shuffling, dropout and (unless private and secure) sampling
  // 0: DefaultThreads(). Workers, whose number decides the bits; 1 creates no thread.
  size_t num_threads = 0;
  Executor executor;        // the app's own threads; when given, none are created here
  PrivateTraining privacy;  // read when method is private
  RgpOptions rgp;           // read when method is kRgp
  SparseOptions sparse;     // read when method is kFest, kAdaFest or kAdaFestPlus
  // Sampled softmax: this many items, drawn anew each step from all of them without looking at the data, stand for all
  // others. 0: the full softmax.
  uint32_t num_negatives = 0;
};

// Local-only: none of these figures but `step` and `learning_rate` is private.
struct StepReport {
  uint64_t step = 0;
  float learning_rate = 0;
  size_t num_records = 0;
  double mean_loss = 0;    // per position
  double mean_norm = 0;    // of the records' gradients before clipping
  size_t num_dropped = 0;  // records whose gradient was not finite, or not within the bound after rounding
};

class Trainer {
 public:
  // Everything that Create would refuse, without making anything: to be asked before budget is spent on the run.
  // Private training refuses nothing for the sake of its records, or the refusal would tell of them: it runs on none,
  // and leaves out what is no record.
  static Status Check(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
                      const TrainingOptions& options);

  // `weights` is the start, flat layout. `records` must outlive the trainer, and so must what they point at.
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
  // Whether no step is charged that was not taken. Steps charged so far by this object, taken or not.
  bool at_end_of_charge() const { return step_ >= charged_until_; }
  uint64_t num_charged() const { return num_charged_; }
  // Records that were left out of a private run: IsTrainable says why. Local-only.
  size_t num_left_out() const { return num_left_out_; }
  // The run's name in the ledger; after Restore that of the run that goes on.
  const std::string& run() const { return options_.privacy.run; }
  std::span<const float> weights() const { return {weights_.data(), weights_.size()}; }
  // The averaged weights where ema_decay > 0, else the current ones.
  std::span<const float> final_weights() const;
  const Graph& graph() const { return *graph_; }
  Workers& workers() { return workers_; }

  // The mechanism of one step, as it is charged. Only for private methods.
  Result<privacy::Mechanism> StepMechanism(uint64_t steps) const;

  // What a later process needs to go on. The keys of secure streams are never part of it.
  Checkpoint Save();
  // Restores what Save gave; refused when it belongs to another architecture, seed or base model, and kPrivacyRefused
  // where the ledger does not hold the charges of its steps: what they cost would be forgotten.
  Status Restore(const Checkpoint& checkpoint);

  // What this object holds, known before the first step and the same after it (DP-AdaFEST's sums grow with the rows
  // that it selects). PlanTrainingMemory says it before there is a trainer, and how far that growth may go.
  TrainingMemory memory() const;
  size_t planned_bytes() const { return memory().total(); }
  // Of these, what the gradient method keeps of the one record that a worker is at.
  size_t record_state_bytes() const { return release_->Gradients(0).scratch_bytes(); }

 private:
  struct Worker;
  Trainer(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
          const TrainingOptions& options, std::vector<privacy::RandomStream> streams);

  std::string Config() const;
  privacy::RandomStream& NoiseStream(size_t worker);
  std::vector<privacy::RandomStream*> AllStreams();
  void DrawBatch();
  void AssignBatch();
  void RunRecords(size_t worker);
  Status PlanSteps(const privacy::ChargeRequest& first) const;
  Status ChargeIfNeeded();
  void Apply(const ParameterSpec& parameter, size_t first, const float* gradient, size_t n);
  void UpdateVariances(size_t worker);
  void KeepVariances();
  bool is_private() const { return options_.method != Method::kOrdinary; }
  void KeepTrainable();

  TrainingOptions options_;
  Schedule schedule_;
  std::unique_ptr<Graph> graph_;
  std::span<const Record> records_;
  std::vector<Record> trainable_;  // of records_, where some are not
  size_t num_left_out_ = 0;
  Workers workers_;
  AlignedArray<float> weights_, packed_, ema_;
  Optimizer optimizer_;
  std::optional<NoiseVariance> noise_variance_;  // private training with Re-Attention
  std::unique_ptr<StepRelease> release_;
  std::optional<NegativeSampler> negatives_;
  std::vector<std::unique_ptr<Worker>> worker_state_;
  privacy::RandomStream sampling_stream_;
  std::vector<uint32_t> batch_, order_;
  std::vector<int32_t> sparse_rows_;  // what options_.sparse.rows shows
  std::vector<const Record*> batch_records_;
  StepRelease::Apply apply_;  // Apply as a function, made once: a step allocates nothing
  size_t order_next_ = 0;
  uint64_t step_ = 0, charged_until_ = 0, num_charged_ = 0;
  float rate_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_TRAINER_H_
