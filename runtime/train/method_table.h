// The methods of training, as the rest of this folder sees them. Each lives in a folder of runtime/methods, and
// methods/methods.cc has the table: it alone knows them all.
#ifndef WISP_RUNTIME_TRAIN_METHOD_TABLE_H_
#define WISP_RUNTIME_TRAIN_METHOD_TABLE_H_

#include <memory>
#include <string>

#include "runtime/train/privacy_plan.h"
#include "runtime/train/step_part.h"
#include "runtime/train/sum_method.h"

namespace wisp {

// The functions through which the training loop asks a method about its gradients.
struct MethodEntry {
  // True if the method trains this parameter. Asked only for parameters that the options choose. Null: it trains all.
  bool (*trains)(const ParameterSpec& parameter, const TrainingOptions& options) = nullptr;
  // The most numbers that a step releases. Null: it releases every coordinate that trains.
  uint64_t (*num_released)(const Architecture& architecture, const TrainingOptions& options) = nullptr;
  // Refuses options. Null: the method refuses only what every method refuses.
  Status (*check)(const Architecture& architecture, const TrainingOptions& options) = nullptr;
  std::unique_ptr<GradientMethod> (*make)(const MethodSetup& setup);
  MethodBytes (*plan)(const Graph& graph, const TrainedSet& trained, size_t num_records,
                      const TrainingOptions& options);
  // The number of floats of a record's gradient on a device. Null: one for each number that trains.
  size_t (*row_floats)(const Architecture& architecture, const TrainingOptions& options) = nullptr;
};
const MethodEntry& GetEntry(const TrainingOptions& options);

// kUnsupported: the run needs a folder of runtime/methods that WISP_METHODS leaves out of this build.
Status CheckBuilt(const Architecture& architecture, const TrainingOptions& options);
// True if this build has the folder.
extern const bool kHasRgp, kHasSparse, kHasDpFp, kHasReAttention;

// The part of a step that makes a classifier's head of releases; null if the run makes none. Its mechanism.
std::unique_ptr<StepPart> MakeHeadStep(StepContext& context);
void AddHeadMemory(const Graph& graph, size_t num_records, const TrainingOptions& options, TrainingMemory& memory);
PrivacyPlan::Part HeadPart(const Architecture& architecture, const TrainingOptions& options);
Status CheckHead(const Architecture& architecture, const TrainingOptions& options);
// Says in words which claims of DP-FP's paper do not hold. It has no figure.
const std::string& ExplainPaperMode();
// Describes for people the mode, what is released, what is protected, and the mechanisms. It never states an epsilon:
// in the private modes the ledger states it, and kPaper has no guarantee, so the reason stands there instead.
std::string DescribeDpFp(const Architecture& architecture, const TrainingOptions& options, uint64_t steps);

// The noise that a worker adds to the input of a classifier's head.
class HeadNoise {
 public:
  virtual ~HeadNoise() = default;
  // Draws the noise of record b of a pass, which stays until the next Draw for b.
  virtual void Draw(privacy::RandomStream& noise, size_t b) = 0;
  // The head's input with the noise drawn so far; valid until the next Input.
  virtual HeadInput Input() = 0;
  virtual size_t size_bytes() const = 0;
};
// Null if the run has none.
std::unique_ptr<HeadNoise> MakeHeadNoise(const Graph& graph, const TrainingOptions& options);
size_t PlanHeadNoise(const Graph& graph, const TrainingOptions& options);

// Called after a step has changed the weights: brings an estimate up to date that is part of them.
class UpdateObserver {
 public:
  virtual ~UpdateObserver() = default;
  // Called once, when the weights have their start.
  virtual void Start(HeldWeights& weights) = 0;
  // Called after each step. `item_rows`: the rows of the item table that it changed; nullopt: all.
  virtual void Follow(StepContext& context, const Optimizer& optimizer, std::optional<ItemRows> item_rows) = 0;
  virtual size_t size_bytes() const = 0;
};
// True if the run has one.
bool FollowsUpdates(const Architecture& architecture, const TrainingOptions& options);
// Null if the run has none. `fixed_rows`: GradientMethod::FixedItemRows.
std::unique_ptr<UpdateObserver> MakeUpdateObserver(const Graph& graph, const TrainedSet& trained,
                                                   const TrainingOptions& options, std::span<const int32_t> fixed_rows);
size_t PlanUpdateObserver(const Architecture& architecture, const TrainingOptions& options);
Status CheckUpdateObserver(const Architecture& architecture, const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_METHOD_TABLE_H_
