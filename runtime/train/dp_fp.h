// DP-FP for classifiers (docs/algorithms.md, section 6, with its errata): a noised forward pass, in three modes.
//
//   kAggregate  (default) everything below the noise is frozen. Each of a step's m micro-batches, a Poisson draw with
//               p = B / (m N), releases one noised [num_classes, D] matrix (head_releases.h), and the head is made of
//               the releases. Labels are protected. One mechanism: Poisson-subsampled Gaussian, q = p, m releases a
//               step.
//   kClipped    the same for the head; after it the encoder and the pooler take one step along the clipped and noised
//               record gradients (docs/algorithms.md, section 1) of a draw of its own, q = B / N. Both mechanisms are
//               charged.
//   kPaper      as the paper prints it: every record's representation is clipped and noised, AdamW moves everything.
//               For comparison. It has NO guarantee (WhyPaperHasNoGuarantee says why), so it takes no ledger, has no
//               mechanisms and no epsilon, and is never chosen by default.
//
// Where is what in the private modes:
//   sensitivity   HeadReleases::Add and PhantomGradients::FinishRecord, both by a check of the integers that were added
//   released      the noised matrices and (kClipped) the noised gradient sum of each step, and what is computed of
//                 them; StepReport's figures marked local are not private
//   ledger        DpFpTrainer::Step charges all mechanisms of the step (or the block it opens) before anything is drawn
//   noise         HeadReleases::Release and DpFpTrainer::UpdateWeights, exact discrete Gaussians
// The head reads clip(h) in the private modes, at inference too: that is what it was fitted to, and clipping one's own
// input is no access to the data. In kPaper inference neither clips nor noises, as printed.
//
//   WISP_ASSIGN_OR_RETURN(auto trainer, DpFpTrainer::Create(architecture, weights, records, options));
//   while (trainer->step() < options.num_steps) WISP_ASSIGN_OR_RETURN(DpFpStepReport report, trainer->Step());
#ifndef WISP_RUNTIME_TRAIN_DP_FP_H_
#define WISP_RUNTIME_TRAIN_DP_FP_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/gradients/phantom_gradients.h"
#include "runtime/layers/classifier.h"
#include "runtime/model/checkpoint.h"
#include "runtime/privacy/ledger.h"
#include "runtime/train/head_releases.h"
#include "runtime/train/memory.h"
#include "runtime/train/optimizer.h"

namespace wisp {

enum class DpFpMode { kAggregate, kClipped, kPaper };

// What trains the encoder in kClipped.
struct EncoderGradients {
  double noise_multiplier = 0;
  double clipping_norm = 1;
  ClipKind clipping = ClipKind::kAutomatic;
  NormForm norm_form = NormForm::kAutomatic;
};

struct DpFpOptions {
  DpFpMode mode = DpFpMode::kAggregate;
  uint64_t num_steps = 0;
  uint32_t expected_batch = 32;     // B: records a step, over all micro-batches, in expectation
  uint32_t micro_batches = 32;      // m
  uint32_t num_records_public = 0;  // N: a public constant, never counted from private data. kPaper: 0 counts
  double clipping_norm = 1;         // C: of a representation
  double noise_multiplier = 0;      // of a release; kPaper: sigma / C of a record's representation
  double release_decay = 1;         // as HeadReleaseOptions
  double effective_dimensions = 1;  // likewise
  std::vector<double> class_prior;  // likewise
  EncoderGradients encoder;         // read in kClipped
  OptimizerOptions optimizer{.kind = OptimizerKind::kAdamW};  // of the encoder in kClipped, of everything in kPaper
  privacy::Ledger* ledger = nullptr;          // must outlive the trainer; required, but for kPaper, which refuses one
  std::string run;                            // names the run in the ledger
  uint32_t steps_per_charge = 1;              // steps charged at a time; what was charged is spent, used or not
  std::optional<uint64_t> reproducible_seed;  // set: draws and noise repeat and there is NO guarantee
  uint64_t base_model_hash = 0;               // as TrainingOptions'
  size_t num_threads = 0;                     // 0: DefaultThreads()
};

// Local-only: none of these figures but `step` is private.
struct DpFpStepReport {
  uint64_t step = 0;
  size_t num_records = 0;          // in the micro-batches together; one that two of them drew counts twice
  size_t num_encoder_records = 0;  // kClipped: in the encoder's draw
  size_t num_dropped = 0;          // not finite, or not within the bound after rounding
  double mean_loss = 0;  // kClipped: of the encoder's draw; kPaper: of the micro-batches; else 0, it is not computed
};

class DpFpTrainer {
 public:
  // Everything that Create would refuse, without making anything. The private modes refuse nothing for the sake of the
  // records, as Trainer does not.
  static Status Check(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
                      const DpFpOptions& options);

  // `weights` is the start, flat layout, and must not stem from private data that is not accounted for. `records` must
  // outlive the trainer, and so must what they point at.
  static Result<std::unique_ptr<DpFpTrainer>> Create(const Architecture& architecture, std::span<const float> weights,
                                                     std::span<const Record> records, const DpFpOptions& options);
  ~DpFpTrainer();

  // One step. An error leaves the weights as they were; a charge already made stays and is used by the next call.
  Result<DpFpStepReport> Step();

  uint64_t step() const { return step_; }
  // As Trainer's.
  void EndAt(uint64_t end) { schedule_ = {options_.num_steps, step_, end}; }
  bool at_end_of_charge() const;
  uint64_t num_charged() const { return num_charged_; }
  size_t num_left_out() const { return num_left_out_; }
  const std::string& run() const { return options_.run; }
  Checkpoint Save();
  Status Restore(const Checkpoint& checkpoint);
  std::span<const float> weights() const { return {weights_.data(), weights_.size()}; }
  // What this object holds, the same after any step. PlanClassificationMemory says it before there is a trainer.
  TrainingMemory memory() const;
  const Classifier& graph() const { return graph_; }
  Workers& workers() { return workers_; }
  // What the head reads at inference with these weights.
  HeadInput inference_input() const {
    return {.norm_bound = options_.mode == DpFpMode::kPaper ? 0 : options_.clipping_norm};
  }

 private:
  struct Worker;
  struct Draw {
    uint32_t record, micro_batch;
  };
  friend Result<TrainingMemory> PlanClassificationMemory(const Architecture&, size_t, const DpFpOptions&);
  DpFpTrainer(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
              const DpFpOptions& options, std::vector<privacy::RandomStream> streams);

  bool is_private() const { return options_.mode != DpFpMode::kPaper; }
  std::string Config() const;
  std::vector<privacy::RandomStream*> AllStreams();
  double micro_probability() const;
  Status PlanSteps(uint64_t steps) const;
  Status ChargeIfNeeded();
  void DrawBatches();
  void Pack();
  void AddRepresentations(size_t worker);
  void AddRecordGradient(Worker& worker, const Record& record, const HeadInput& input);
  void AddEncoderGradients(size_t worker);
  void AddPaperGradients(size_t worker);
  void UpdateWeights(size_t worker, double divisor);
  void UpdateHead();

  DpFpOptions options_;
  Schedule schedule_;
  Classifier graph_;
  std::span<const Record> records_;
  std::vector<Record> trainable_;  // of records_, where some are not
  size_t num_left_out_ = 0;
  Workers workers_;
  std::vector<ParameterSpec> gradient_parameters_;  // `trained` where the gradient moves them: not the head in kClipped
  AlignedArray<float> weights_, packed_;
  std::optional<Optimizer> optimizer_;               // kClipped and kPaper
  std::optional<HeadReleases> releases_;             // kAggregate and kClipped
  std::optional<privacy::ExactGrid> gradient_grid_;  // kClipped
  std::unique_ptr<GridGradientSum> grid_sum_;        // kClipped
  std::unique_ptr<FloatGradientSum> float_sum_;      // kPaper
  std::vector<std::unique_ptr<Worker>> worker_state_;
  privacy::RandomStream sampling_stream_;
  std::vector<uint32_t> sample_, encoder_batch_;
  std::vector<Draw> draws_;
  uint64_t step_ = 0;
  std::vector<uint64_t> charged_until_;  // of each of DpFpMechanisms
  uint64_t num_charged_ = 0;
  float rate_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_DP_FP_H_
