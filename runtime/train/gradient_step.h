// The part of a step that moves weights along a sum of gradients: Sampler, GradientMethod with its noise, optimizer.
#ifndef WISP_RUNTIME_TRAIN_GRADIENT_STEP_H_
#define WISP_RUNTIME_TRAIN_GRADIENT_STEP_H_

#include <memory>
#include <optional>
#include <vector>

#include "runtime/train/gradient_method.h"
#include "runtime/train/method_table.h"
#include "runtime/train/negative_sampler.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/record_pass.h"
#include "runtime/train/sampler.h"
#include "runtime/train/step_part.h"

namespace wisp {

class GradientStep final : public StepPart {
 public:
  // `start` as MethodSetup::start. `context` must outlive this object.
  GradientStep(StepContext& context, std::span<const float> start);

  void Draw(privacy::RandomStream& sampling) override;
  void WantStates(StateCache& states) const override;
  // kInvalidData if the loss of a run that is not private is not finite. The errors of WaitForDevice.
  Status Run(StepReport& report) override;
  void Save(Checkpoint& checkpoint) const override;
  Status Check(const Checkpoint& checkpoint) const override;
  void Restore(const Checkpoint& checkpoint) override;
  void EndSteps() override;
  void AddMemory(TrainingMemory& memory) const override;

  // The bytes that this object will hold, known without making it. The numbers of entries in its lists.
  static void AddPlannedMemory(const Graph& graph, size_t num_records, const TrainingOptions& options,
                               TrainingMemory& memory);

 private:
  // The state of one worker: its records of this step, and their figures.
  struct Worker {
    explicit Worker(const Graph& graph) : pass(graph) {}
    RecordPass<Graph> pass;
    std::unique_ptr<HeadNoise> head_noise;
    std::vector<uint32_t> records;
    size_t load = 0;       // rows of its records
    size_t num_begun = 0;  // records that it has taken up
    double loss = 0, norm = 0;
    size_t num_targets = 0, num_dropped = 0, num_clipped = 0;
  };

  bool is_balanced() const { return context_->options.method != Method::kDpFp; }
  std::span<const int32_t> negatives() const;
  void Assign();
  void RunRecords(size_t worker);
  void AddRecord(size_t worker, uint32_t record);
  void RunWaiting(size_t worker);
  size_t CountRecords(size_t worker) const;
  // Adds the workers' figures to the report. Returns the number of targets.
  size_t AddFigures(StepReport& report) const;
  double Divisor(size_t num_targets) const;
  void Apply(const Change& change);
  void MoveAlongFeatures();

  StepContext* context_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<GradientMethod> method_;
  std::optional<Optimizer> optimizer_;
  AlignedArray<float> along_;  // scratch of Optimizer::UpdateAlong
  std::unique_ptr<UpdateObserver> observer_;
  std::optional<NegativeSampler> negatives_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<uint32_t> batch_;
  std::vector<const Record*> batch_records_;
  GradientMethod::Apply apply_;  // Apply as a function, made once: a step allocates nothing
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_GRADIENT_STEP_H_
