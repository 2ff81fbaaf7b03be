// Chooses the kind of memory for a GPU's buffers from facts that the GPU reports. Plain C++, so it needs no GPU.
//
//   const MemoryChoice choice = ChooseMemory({.integrated = true, .managed = true}, std::getenv(kMemoryVariable));
//   if (choice.why != nullptr) return choice.why;                         // a message: the request is impossible
//
// A discrete GPU (Hopper) has its own memory behind a bus. Buffers lie there, and incoming bytes are staged in pinned
// host memory, from which the GPU fetches them.
// An integrated GPU (Jetson) uses the processor's DRAM. Each kind of memory is cached by:
//   device memory    the GPU; the host cannot access it, so every incoming byte is copied twice
//   pinned memory    the host; the GPU bypasses its cache (Orin), which costs time in each pass over the weights
//   managed memory   both; waiting for the stream makes each side's writes visible to the other
// So buffers there are managed, and the host copies bytes in and out while nothing runs. Orin forbids the host to touch
// them while anything runs (`concurrent` is false). Thor allows it, but the order of the stream requires the same wait.
// A pass ends with numbers that the host waits for, so nothing runs when the next records enter.
//
// Managed memory is never chosen for a discrete GPU: its pages would move over the bus when they are touched.
#ifndef WISP_KERNELS_CUDA_MEMORY_KINDS_H_
#define WISP_KERNELS_CUDA_MEMORY_KINDS_H_

#include <string_view>

namespace wisp::kernels::cuda {

// From the driver: cudaDevAttrIntegrated, cudaDevAttrManagedMemory, cudaDevAttrConcurrentManagedAccess.
struct MemoryFacts {
  bool integrated = false;  // the GPU uses the host's memory
  bool managed = false;     // memory exists that both sides access by the same address
  bool concurrent = false;  // the host may access managed memory while the GPU works
};

enum class MemoryKind { kDevice, kManaged };

struct MemoryChoice {
  MemoryKind kind = MemoryKind::kDevice;
  // Managed memory belongs to our stream, so work in other streams of the process does not block access to it.
  bool of_stream = false;
  const char* why = nullptr;  // a message, if the request is impossible
};

// Its value names the other kind, for a board whose driver is slower with the default kind.
inline constexpr char kMemoryVariable[] = "WISP_CUDA_MEMORY";

// `asked` is the value of kMemoryVariable; null or empty leaves the choice to this function.
constexpr MemoryChoice ChooseMemory(const MemoryFacts& facts, const char* asked) {
  const std::string_view name = asked == nullptr ? "" : asked;
  if (!name.empty() && name != "device" && name != "managed")
    return {.why = "WISP_CUDA_MEMORY names no kind of memory; allowed are device and managed"};
  const bool can = facts.integrated && facts.managed;
  if (name == "managed" && !can)
    return {.why = "WISP_CUDA_MEMORY is managed, which is for GPUs that share the processor's memory and manage it"};
  if (!can || name == "device") return {};
  return {.kind = MemoryKind::kManaged, .of_stream = !facts.concurrent};
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_MEMORY_KINDS_H_
