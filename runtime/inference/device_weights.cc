#include "runtime/inference/device_weights.h"

namespace wisp {
namespace {

size_t BytesOf(const ParameterSpec& p, bool halves) {
  return p.size() * (halves ? sizeof(kernels::Half) : sizeof(float));
}

ArenaPlan PlanOf(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors,
                 std::vector<Slot<std::byte>>* slots) {
  ArenaPlan plan;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool halves = !tensors.empty() && tensors[i].halves != nullptr;
    const Slot<std::byte> slot = plan.Reserve<std::byte>(BytesOf(parameters[i], halves));
    if (slots != nullptr) slots->push_back(slot);
  }
  return plan;
}

}  // namespace

DeviceWeights::DeviceWeights(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors,
                             const kernels::Memory& memory) {
  std::vector<Slot<std::byte>> slots;
  arena_ = Arena(PlanOf(parameters, tensors, &slots), memory);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const StoredTensor& from = tensors[i];
    std::byte* to = arena_[slots[i]];
    if (from.halves != nullptr) {
      memory.copy_in(to, from.halves, BytesOf(parameters[i], true));
      tensors_.push_back({.halves = reinterpret_cast<const kernels::Half*>(to)});
    } else {
      memory.copy_in(to, from.floats, BytesOf(parameters[i], false));
      tensors_.push_back({.floats = reinterpret_cast<const float*>(to)});
    }
  }
}

size_t DeviceWeights::PlanBytes(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors) {
  return PlanOf(parameters, tensors, nullptr).allocated_bytes();
}

}  // namespace wisp
