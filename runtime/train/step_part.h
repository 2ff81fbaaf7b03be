// A step of training has one part for each mechanism that the run's plan charges (PrivacyPlan::Part): releases of which
// a classifier's head is made (methods/dp_fp), and a change along a sum of gradients (gradient_step.h).
#ifndef WISP_RUNTIME_TRAIN_STEP_PART_H_
#define WISP_RUNTIME_TRAIN_STEP_PART_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/layers/graph.h"
#include "runtime/model/checkpoint.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/held_weights.h"
#include "runtime/train/memory.h"
#include "runtime/train/options.h"
#include "runtime/train/state_cache.h"

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

// Gives a step up that somebody asks to stop. A step that ends soon is not given up, because it is paid for.
class StepStop {
 public:
  // Asked now and then during steps, on the caller's thread; true: stop. Empty: never.
  void AskBy(std::function<bool()> wanted) { wanted_ = std::move(wanted); }
  // Call it on the caller's thread, between records.
  void Ask();
  bool wanted() const { return since_.has_value(); }
  // True once the step is given up. Any thread may ask.
  bool now() const { return now_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::function<bool()> wanted_;
  Clock::time_point asked_{};
  std::optional<Clock::time_point> since_;  // the time from which a stop is wanted
  std::atomic<bool> now_ = false;
};

// The state that the parts of a step share. On a device the caller's thread does the work that the workers share on the
// host.
struct StepContext {
  struct Worker {
    Buffers buffers;
    privacy::RandomStream noise;
  };

  const Graph& graph;
  const TrainedSet& trained;
  const TrainingOptions& options;
  std::span<const Record> records;  // those that the run trains on
  Workers& workers;
  HeldWeights& weights;
  std::vector<Worker> of_workers;
  std::unique_ptr<StateCache> states;  // of the frozen layers; null: layers below others train
  size_t num_callers;                  // workers that pass records
  uint64_t step = 0;
  float rate = 0;  // the step's learning rate
  StepStop stop = {};

  privacy::RandomStream& GetNoise(size_t worker) { return of_workers[worker].noise; }
  // Calls part(w) for each of num_callers workers, and waits for all.
  template <class F>
  void ForParts(const F& part) {
    workers.Run([&](size_t w) {
      if (w < num_callers) part(w);
    });
  }
  // The options with which a classifier's head reads its input at inference with these weights.
  HeadInput inference_input() const { return {.norm_bound = ReleasesHead(options) ? options.dp_fp.clipping_norm : 0}; }
  void Pack() {
    ForParts([this](size_t w) { weights.Pack(w, num_callers); });
    weights.Packed();
  }
  // Computes the weights that follow from those that the step has changed.
  void Derive() {
    if (graph.derived(trained)) ForParts([this](size_t w) { weights.Derive(w, num_callers); });
  }
};

class StepPart {
 public:
  virtual ~StepPart() = default;
  // Draws the records of the context's step.
  virtual void Draw(privacy::RandomStream& sampling) = 0;
  // Announces the drawn records to the context's cache.
  virtual void WantStates(StateCache& states) const = 0;
  // Takes the part's share of the step, and adds its figures to the report.
  virtual Status Run(StepReport& report) = 0;

  virtual void Save(Checkpoint& checkpoint) const = 0;
  // Check refuses a checkpoint that Restore could not take.
  virtual Status Check(const Checkpoint& checkpoint) const = 0;
  virtual void Restore(const Checkpoint& checkpoint) = 0;
  // Frees what only further steps need.
  virtual void EndSteps() {}
  virtual void AddMemory(TrainingMemory& memory) const = 0;
  // HeadReleases::class_of_all_means, of a part that makes a head of releases.
  virtual std::optional<uint32_t> class_of_all_means() const { return std::nullopt; }
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_STEP_PART_H_
