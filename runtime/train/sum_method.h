// The common part of gradient methods that sum all gradients of a step in one StepSum.
#ifndef WISP_RUNTIME_TRAIN_SUM_METHOD_H_
#define WISP_RUNTIME_TRAIN_SUM_METHOD_H_

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/function_ref.h"
#include "runtime/layers/graph.h"
#include "runtime/train/gradient_method.h"
#include "runtime/train/options.h"
#include "runtime/train/step_sum.h"

namespace wisp {

// A method is made from these. All of it was checked by Trainer::Check, with num_threads set, and must outlive the
// method.
struct MethodSetup {
  const Graph& graph;
  const TrainedSet& trained;
  std::span<const float> start;  // the weights that the run holds at its start, in host memory
  const TrainingOptions& options;
};

// The planned bytes of a method, without making it: its sums, and its gradients' state of the records in hand.
struct MethodBytes {
  size_t sums = 0, records = 0;
  size_t growth_at_most = 0, rows_at_most = 0, records_at_most = 0;  // as TrainingMemory's
};

// On the host each worker adds records of its own. A device has one caller.
inline size_t NumCallers(const TrainingOptions& o) { return o.device.memory.is_host() ? o.num_threads : 1; }

// Coordinates noised and stepped at a time: 16 KB of gradient on the stack.
inline constexpr size_t kUpdateChunk = 4096;

class SumMethod : public GradientMethod {
 public:
  Gradients GetGradients(size_t worker) override { return gradients_[worker < gradients_.size() ? worker : 0].get(); }
  void DrawNoise(size_t worker, privacy::RandomStream& noise, double share) override;
  void Reduce() override { sum_.Reduce(); }
  void Prepare() override { sum_.Send(); }
  void Update(size_t worker, privacy::RandomStream& noise, double divisor, const Apply& apply) override;
  size_t planned_bytes() const override;

 protected:
  // A range of the sum. `parameter` and `first` say which weights it changes, if the sum has their layout.
  struct Piece {
    size_t offset, n;
    size_t parameter = 0, first = 0;
  };
  using Visit = FunctionRef<void(const Piece&)>;

  // `size` and `num_released` as StepSum's.
  SumMethod(const MethodSetup& setup, size_t size, uint64_t num_released);
  // Begins the sum of a step (StepSum::Begin).
  void BeginSum(uint64_t step, size_t size, privacy::RandomStream& noise);
  // Calls `visit` for this worker's pieces of the step's sum, of at most kUpdateChunk numbers: together each coordinate
  // once. Their order is that in which noise is drawn.
  virtual void ForEachPiece(size_t worker, const Visit& visit) const = 0;
  // Asks for all changes of the step. `gradient` lies in a device's memory, in the layout of the sum.
  virtual void ApplyAll(const float* gradient, const Apply& apply) = 0;
  // For implementing ForEachPiece: the worker's pieces of the parameters `which`, where `offset_of(parameter)` is their
  // place in the sum.
  template <class GetOffset>
  void VisitPieces(std::span<const uint32_t> which, size_t worker, const GetOffset& offset_of,
                   const Visit& visit) const {
    size_t turn = 0;
    for (const uint32_t i : which) {
      const size_t size = graph_->parameters()[i].size();
      for (size_t first = 0; first < size; first += kUpdateChunk) {
        if (turn++ % num_workers_ != worker) continue;
        visit({.offset = offset_of(i) + first,
               .n = std::min(kUpdateChunk, size - first),
               .parameter = i,
               .first = first});
      }
    }
  }
  // Adds a worker's Gradients, which this object owns.
  template <class AnyGradients>
  AnyGradients* Own(std::unique_ptr<AnyGradients> gradients) {
    AnyGradients* const made = gradients.get();
    gradients_.emplace_back(std::move(gradients));
    return made;
  }
  void Own(OwnedGradients gradients) { gradients_.push_back(std::move(gradients)); }
  // Overwrites what a device holds of the records of the step.
  void Forget();

  const Graph* graph_;
  const TrainedSet* trained_;
  size_t num_workers_;
  StepSum sum_;

 private:
  std::vector<OwnedGradients> gradients_;
  std::vector<size_t> num_drawn_;  // for each worker: pieces whose noise of this step is drawn ahead
};

// A sum in the layout of the trained weights.
class FlatMethod : public SumMethod {
 public:
  void Begin(uint64_t step, std::span<const float> /*weights*/, const StepBatch& /*batch*/,
             privacy::RandomStream& noise) override {
    BeginSum(step, trained_->size(), noise);
  }

 protected:
  explicit FlatMethod(const MethodSetup& setup)
      : SumMethod(setup, setup.trained.size(), setup.trained.num_coordinates()) {}
  void ForEachPiece(size_t worker, const Visit& visit) const override;
  void ApplyAll(const float* gradient, const Apply& apply) override;
};

// The setup of Gradients that take all records of a pass at once.
BatchGradients::Setup MakeBatchSetup(const Graph& graph, const TrainedSet& trained);

// Training without a guarantee: the sum of the records' gradients. DpFpMode::kPaper uses it too, with noise in the
// records' representations.
std::unique_ptr<GradientMethod> MakeOrdinaryMethod(const MethodSetup& setup);
MethodBytes PlanOrdinaryMethod(const Graph& graph, const TrainedSet& trained, size_t num_records,
                               const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_SUM_METHOD_H_
