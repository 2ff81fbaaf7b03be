// Which kind of memory a GPU's buffers lie in, from what the GPU says of itself. Plain C++: it needs no GPU.
//
//   const MemoryChoice choice = ChooseMemory({.integrated = true, .managed = true}, std::getenv(kMemoryVariable));
//   if (choice.why != nullptr) return choice.why;                         // a sentence: what was asked for cannot be
//
// A GPU of its own (Hopper) has its own memory behind a bus: buffers lie there, and what goes in is staged in pinned
// memory of the host, from where the GPU fetches it.
// A GPU beside the processor (Jetson) has the processor's DRAM. What both sides keep in their caches there:
//   device memory    the GPU; the host cannot reach it, so every byte that goes in is copied twice
//   pinned memory    the host; the GPU goes past its cache (Orin), which costs with each pass over the weights
//   managed memory   both. The driver makes one side's writes visible to the other when the stream is waited for
// So buffers are managed there, and bytes go in and out as the host copies them, when nothing runs. Orin allows the
// host no touch of them while anything does (`concurrent` is false). Thor does, but the order of the stream asks for
// the same wait. A pass ends with numbers that the host waits for: when the next records enter nothing runs anyway.
//
// Managed memory is never chosen for a GPU of its own: there pages would travel over the bus when they are touched.
#ifndef WISP_KERNELS_CUDA_MEMORY_KINDS_H_
#define WISP_KERNELS_CUDA_MEMORY_KINDS_H_

#include <string_view>

namespace wisp::kernels::cuda {

// As the driver has them: cudaDevAttrIntegrated, cudaDevAttrManagedMemory, cudaDevAttrConcurrentManagedAccess.
struct MemoryFacts {
  bool integrated = false;  // the GPU's memory is the host's
  bool managed = false;     // there is memory that both sides reach by the same address
  bool concurrent = false;  // the host may touch it while the GPU works
};

enum class MemoryKind { kDevice, kManaged };

struct MemoryChoice {
  MemoryKind kind = MemoryKind::kDevice;
  // Of managed memory: it belongs to our stream, and what another stream of the process runs keeps nobody from it.
  bool of_stream = false;
  const char* why = nullptr;  // a sentence, where what was asked for cannot be
};

// A name of the other kind, for a board whose driver does worse with the one that is chosen.
inline constexpr char kMemoryVariable[] = "WISP_CUDA_MEMORY";

// `asked` is what kMemoryVariable says: null or empty leaves the choice to this function.
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
