// DP-FP's two contributions to a step: a head that is made of releases, and the noise of DpFpMode::kPaper. The trainer
// calls what method_table.h declares.
#ifndef WISP_RUNTIME_METHODS_DP_FP_DP_FP_METHOD_H_
#define WISP_RUNTIME_METHODS_DP_FP_DP_FP_METHOD_H_

#include <vector>

#include "runtime/methods/dp_fp/head_pass.h"
#include "runtime/train/method_table.h"

namespace wisp {

// The part of a step that makes the head, in DP-FP's private modes.
class HeadStep final : public StepPart {
 public:
  // `context` must outlive this object.
  explicit HeadStep(StepContext& context)
      : context_(&context),
        pass_(context.graph, context.options, context.records.size()),
        dropped_(context.num_callers) {}

  void Draw(privacy::RandomStream& sampling) override { pass_.Draw(sampling, context_->records.size()); }
  void WantStates(StateCache& states) const override {
    pass_.ForEachDrawn([&states](uint32_t i) { states.Want(i); });
  }
  Status Run(StepReport& report) override;
  void Save(Checkpoint& checkpoint) const override { checkpoint.head_releases = pass_.State(); }
  Status Check(const Checkpoint& checkpoint) const override;
  void Restore(const Checkpoint& checkpoint) override { (void)pass_.Restore(checkpoint.head_releases); }
  void AddMemory(TrainingMemory& memory) const override;
  std::optional<uint32_t> class_of_all_means() const override { return pass_.class_of_all_means(); }

 private:
  StepContext* context_;
  HeadPass pass_;
  std::vector<size_t> dropped_;  // in this step, by worker
};

// The noise of DpFpMode::kPaper on each record's representation, from one worker's stream.
class PaperNoise final : public HeadNoise {
 public:
  // For up to max_records records at once. The graph that reads it is on the options' device.
  PaperNoise(const TrainingOptions& options, size_t width, size_t max_records);
  void Draw(privacy::RandomStream& noise, size_t b) override;
  HeadInput Input() override;
  size_t size_bytes() const override {
    return steps_.capacity() * sizeof(int64_t) + values_.capacity() * sizeof(float) + on_device_.allocated_bytes();
  }

 private:
  double norm_bound_, grid_;
  uint64_t sigma_;
  std::vector<int64_t> steps_;
  std::vector<float> values_;
  kernels::Memory memory_;
  AlignedArray<float> on_device_;  // a copy of values_, if the device is not the host
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_DP_FP_DP_FP_METHOD_H_
