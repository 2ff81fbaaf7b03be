// The weights that a run holds, in its device's memory: the current ones, their average, and their packed form.
#ifndef WISP_RUNTIME_TRAIN_HELD_WEIGHTS_H_
#define WISP_RUNTIME_TRAIN_HELD_WEIGHTS_H_

#include <span>
#include <string>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/core/function_ref.h"
#include "runtime/core/trained_set.h"
#include "runtime/layers/graph.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/options.h"

namespace wisp {

class HeldWeights {
 public:
  // `start` are the weights from FirstHeld on, in host memory. `changes`: for each parameter, 1 if a step changes it.
  // `graph` and `trained` must outlive this object.
  HeldWeights(const Graph& graph, const TrainedSet& trained, std::span<const float> start, std::vector<uint8_t> changes,
              const TrainingOptions& options);

  // The current weights, in the graph's memory.
  std::span<float> current() { return {current_.data(), current_.size()}; }
  // The index of the parameter's first number in current().
  size_t offset(const ParameterSpec& parameter) const { return parameter.offset - first_held_; }
  // The weights as the graph reads them, after Pack.
  const Weights& view() const { return packed_.view(); }
  // Packs one part's share of the weights that have changed.
  void Pack(size_t part, size_t num_parts);
  // Computes one part's share of the weights that follow from others, and of their average (Graph::Derive).
  void Derive(size_t part, size_t num_parts);
  // Call this after all parts have called Pack.
  void Packed() { packed_once_ = true; }

  // Copies that the next call overwrites, unless the weights lie in host memory. CheckDevice says if the copy
  // succeeded. FinalOnHost: the averaged weights if there are any.
  std::span<const float> OnHost() const { return OnHost(current_); }
  std::span<const float> FinalOnHost() const { return OnHost(has_average() ? average_ : current_); }
  // Lets `change` alter the current weights in host memory.
  void ChangeOnHost(FunctionRef<void(std::span<float>)> change);

  // Sets a parameter and its average to `values`, which are in host memory.
  void Set(const ParameterSpec& parameter, std::span<const float> values);

  bool has_average() const { return average_.size() > 0; }
  // Moves the average of weights [first, first + n) towards the current ones, which a step has changed.
  void Average(size_t first, size_t n, uint64_t step);
  // Sets the average of a parameter to its current values.
  void AverageIsCurrent(const ParameterSpec& parameter);

  // A checkpoint keeps all weights, or with an adapter only those that train: the base does not change, and the
  // resuming process has it. Take is the way back; `kept` must have kept_size numbers.
  size_t kept_size() const { return keeps_trained_ ? trained_->size() : current_.size(); }
  std::vector<float> Kept() const { return Kept(current_); }
  std::vector<float> CachedAverage() const { return has_average() ? Kept(average_) : std::vector<float>(); }
  void Take(const std::vector<float>& kept, const std::vector<float>& average);

  // Waits for the device. An error if it has failed, now or before: the weights are then lost in this process.
  Status WaitForDevice(const char* what_for);
  Status CheckDevice() const;

  size_t size_bytes() const {
    return current_.allocated_bytes() + average_.allocated_bytes() + on_host_.size() * sizeof(float);
  }
  size_t packed_bytes() const { return packed_.allocated_bytes(); }

 private:
  std::span<const float> OnHost(const AlignedArray<float>& flat) const;
  std::vector<float> Kept(const AlignedArray<float>& flat) const;
  void Take(const std::vector<float>& kept, AlignedArray<float>& flat);

  const Graph* graph_;
  const TrainedSet* trained_;
  kernels::Memory memory_;
  float decay_;
  bool keeps_trained_;
  size_t first_held_;  // where the weights begin in the flat layout (FirstHeld)
  std::vector<uint8_t> changes_;
  AlignedArray<float> current_;
  std::vector<StoredTensor> tensors_;  // places of all parameters; empty if the run holds all
  PackedWeights packed_;
  bool packed_once_ = false;  // all of the current weights are packed
  AlignedArray<float> average_;
  mutable std::vector<float> on_host_;  // for a run on a device: the weights that were asked for
  mutable std::string failed_;          // names the device that failed, and the error
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_HELD_WEIGHTS_H_
