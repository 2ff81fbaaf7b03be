#include "runtime/train/held_weights.h"

#include <algorithm>
#include <utility>

namespace wisp {

HeldWeights::HeldWeights(const Graph& graph, const TrainedSet& trained, std::span<const float> start,
                         std::vector<uint8_t> changes, const TrainingOptions& o)
    : graph_(&graph),
      trained_(&trained),
      memory_(o.device.memory),
      decay_(o.ema_decay),
      keeps_trained_(graph.architecture().adapter.has_value()),
      first_held_(FirstHeld(graph.parameters(), o)),
      changes_(std::move(changes)),
      current_(start.size(), memory_),
      tensors_(o.base.empty() ? std::vector<StoredTensor>()
                              : LocateTensors(graph.parameters(), o.base, current_.data())),
      packed_(graph.base(), tensors_.empty() ? current_.data() : ParameterSource(tensors_),
              PackedWeights::Packing::kLater),
      average_(o.ema_decay > 0 ? start.size() : 0, memory_),
      on_host_(memory_.is_host() ? 0 : start.size()) {
  if (has_average()) memory_.copy_in(average_.data(), start.data(), start.size_bytes());
  memory_.copy_in(current_.data(), start.data(), start.size_bytes());
  if (graph.derived(trained)) Derive(0, 1);
}

void HeldWeights::Derive(size_t part, size_t num_parts) {
  graph_->Derive(current(), part, num_parts);
  if (has_average()) graph_->Derive({average_.data(), average_.size()}, part, num_parts);
}

void HeldWeights::Pack(size_t part, size_t num_parts) {
  const std::span<const uint8_t> all;
  packed_.Pack(part, num_parts, packed_once_ ? changes_ : all);
}

std::span<const float> HeldWeights::OnHost(const AlignedArray<float>& flat) const {
  if (memory_.is_host()) return {flat.data(), flat.size()};
  memory_.copy_out(on_host_.data(), flat.data(), flat.size() * sizeof(float));
  if (!memory_.wait()) failed_ = memory_.failure();
  return {on_host_.data(), flat.size()};
}

void HeldWeights::ChangeOnHost(FunctionRef<void(std::span<float>)> change) {
  if (memory_.is_host()) return change(current());
  (void)OnHost();
  change(on_host_);
  memory_.copy_in(current_.data(), on_host_.data(), on_host_.size() * sizeof(float));
}

void HeldWeights::Set(const ParameterSpec& p, std::span<const float> values) {
  memory_.copy_in(current_.data() + offset(p), values.data(), values.size_bytes());
  if (has_average()) memory_.copy_in(average_.data() + offset(p), values.data(), values.size_bytes());
  packed_once_ = false;
}

// The decay grows towards its final value, or the average would never forget the start.
void HeldWeights::Average(size_t first, size_t n, uint64_t step) {
  float* average = average_.data() + first;
  const float decay = std::min(decay_, static_cast<float>(1 + step) / static_cast<float>(10 + step));
  graph_->ops().scale({.x = average, .y = average, .n = n, .a = decay, .store = kernels::Store::kAssign});
  graph_->ops().scale(
      {.x = current_.data() + first, .y = average, .n = n, .a = 1 - decay, .store = kernels::Store::kAdd});
}

void HeldWeights::AverageIsCurrent(const ParameterSpec& p) {
  if (!has_average()) return;
  graph_->ops().scale({.x = current_.data() + offset(p),
                       .y = average_.data() + offset(p),
                       .n = p.size(),
                       .a = 1.0f,
                       .store = kernels::Store::kAssign});
}

std::vector<float> HeldWeights::Kept(const AlignedArray<float>& flat) const {
  std::vector<float> all(flat.size());
  memory_.copy_out(all.data(), flat.data(), all.size() * sizeof(float));
  if (!keeps_trained_) return all;
  std::vector<float> kept(trained_->size());
  trained_->Gather(graph_->parameters(), all, kept, first_held_);
  return kept;
}

void HeldWeights::Take(const std::vector<float>& kept, AlignedArray<float>& flat) {
  if (!keeps_trained_) return memory_.copy_in(flat.data(), kept.data(), kept.size() * sizeof(float));
  std::vector<float> all(flat.size());
  memory_.copy_out(all.data(), flat.data(), all.size() * sizeof(float));
  trained_->Scatter(graph_->parameters(), kept, all, first_held_);
  memory_.copy_in(flat.data(), all.data(), all.size() * sizeof(float));
}

void HeldWeights::Take(const std::vector<float>& kept, const std::vector<float>& average) {
  Take(kept, current_);
  if (has_average()) Take(average, average_);
  packed_once_ = false;
}

Status HeldWeights::WaitForDevice(const char* what_for) {
  if (!memory_.wait()) failed_ = std::string(memory_.failure()) + ", while " + what_for;
  return CheckDevice();
}

Status HeldWeights::CheckDevice() const {
  if (failed_.empty()) return OkStatus();
  return IoError("the device that trains failed: ", failed_,
                 ". Its weights are lost; resume from the last checkpoint, in a new process");
}

}  // namespace wisp
