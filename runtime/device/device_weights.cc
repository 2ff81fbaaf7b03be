#include "runtime/device/device_weights.h"

#include <algorithm>

namespace wisp {
namespace {

constexpr size_t kInPlaceBytes = size_t{16} << 10;  // smaller tensors are copied

// Bytes of the parameter on the device. Integer blocks are converted to float32, because a device multiplies floats.
size_t CountDeviceBytes(const ParameterSpec& p, const StoredTensor* tensor) {
  const bool halves = tensor != nullptr && tensor->halves != nullptr;
  return p.size() * (halves ? sizeof(kernels::Half) : sizeof(float));
}

// The memory of all parameters if they lie in one piece, as in a file, with small gaps. Empty if they do not, as those
// of a model and an adapter's file.
std::span<const std::byte> GetPiece(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors) {
  if (tensors.empty()) return {};
  const std::byte *begin = nullptr, *end = nullptr;
  size_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::span<const std::byte> tensor = GetBytes(parameters[i], tensors[i]);
    if (begin == nullptr || tensor.data() < begin) begin = tensor.data();
    end = std::max(end, tensor.data() + tensor.size());
    bytes += tensor.size();
  }
  constexpr size_t kBetweenTwo = 4096;
  if (static_cast<size_t>(end - begin) > bytes + tensors.size() * kBetweenTwo) return {};
  return {begin, end};
}

// Vectors are copied: they are read often, some of them by the host.
bool IsInPlace(const ParameterSpec& p, const StoredTensor& tensor) {
  return p.shape != ParameterShape::kVector && tensor.panels.data == nullptr &&
         GetBytes(p, tensor).size() >= kInPlaceBytes;
}

// The plan for tensors that are copied. Slots of the others are empty.
ArenaPlan GetPlan(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors, bool in_place,
                  std::vector<Slot<std::byte>>* slots) {
  ArenaPlan plan;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Slot<std::byte> slot;
    if (!in_place || !IsInPlace(parameters[i], tensors[i]))
      slot = plan.Reserve<std::byte>(CountDeviceBytes(parameters[i], tensors.empty() ? nullptr : &tensors[i]));
    if (slots != nullptr) slots->push_back(slot);
  }
  return plan;
}

const std::byte* CopyIn(const kernels::Memory& memory, const ParameterSpec& p, const StoredTensor& tensor,
                        std::byte* to) {
  if (tensor.panels.data == nullptr) {
    memory.copy_in(to, GetBytes(p, tensor).data(), GetBytes(p, tensor).size());
    return to;
  }
  std::vector<float> dequantised(p.size());
  kernels::WidenPanels(tensor.panels, 0, p.rows, p.cols, dequantised.data());
  memory.copy_in(to, dequantised.data(), dequantised.size() * sizeof(float));
  return to;
}

}  // namespace

CopiedWeights::CopiedWeights(std::span<const ParameterSpec> parameters, std::span<const StoredTensor> tensors,
                             const kernels::Memory& memory)
    : shared_(memory, memory.can_share() ? GetPiece(parameters, tensors) : std::span<const std::byte>()) {
  std::vector<Slot<std::byte>> slots;
  const bool in_place = shared_.is_there();
  const ArenaPlan plan = GetPlan(parameters, tensors, in_place, &slots);
  allocated_bytes_ = plan.allocated_bytes();
  arena_ = Arena(plan, memory);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::span<const std::byte> from = GetBytes(parameters[i], tensors[i]);
    const std::byte* there = nullptr;
    if (in_place && IsInPlace(parameters[i], tensors[i])) {
      there = shared_.At(from.data());
    } else {
      there = CopyIn(memory, parameters[i], tensors[i], arena_[slots[i]]);
    }
    if (tensors[i].halves != nullptr) {
      tensors_.push_back({.halves = reinterpret_cast<const kernels::Half*>(there)});
    } else {
      tensors_.push_back({.floats = reinterpret_cast<const float*>(there)});
    }
  }
}

std::unique_ptr<DeviceWeights> MakeDeviceWeights(std::span<const ParameterSpec> parameters,
                                                 std::span<const StoredTensor> tensors, const kernels::Memory& memory) {
  return std::make_unique<CopiedWeights>(parameters, tensors, memory);
}

[[gnu::cold]] DeviceWeightBytes PlanDeviceWeights(std::span<const ParameterSpec> parameters,
                                                  std::span<const StoredTensor> tensors,
                                                  const kernels::Memory& memory) {
  const bool in_place = memory.can_share() && !GetPiece(parameters, tensors).empty();
  return {.expected = GetPlan(parameters, tensors, in_place, nullptr).allocated_bytes(),
          .at_most = GetPlan(parameters, tensors, false, nullptr).allocated_bytes()};
}

}  // namespace wisp
