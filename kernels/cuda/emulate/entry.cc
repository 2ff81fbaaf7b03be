// The emulator as a module, so that programs which ask for a GPU are tested on machines without one.
#include <cstdio>
#include <cstdlib>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/emulate/emulate.h"
#include "kernels/cuda/emulate/memory.h"
#include "kernels/module/module.h"

namespace wisp::kernels::cuda::emulate {
namespace {

// For tests: WISP_TEST_INTEGRATED makes the GPU share the host's memory; WISP_TEST_NO_GPU simulates a machine without
// one.
const char* Open() {
  if (std::getenv("WISP_TEST_NO_GPU") != nullptr) return "the emulator plays a machine without a GPU";
  return PlayIntegrated(std::getenv("WISP_TEST_INTEGRATED") != nullptr);
}

DeviceFacts GetEmulatorFacts() {
  DeviceFacts facts{.total_bytes = uint64_t{1} << 32, .free_bytes = uint64_t{1} << 32, .processors = CountProcessors()};
  std::snprintf(facts.name, sizeof facts.name, "emulator");
  facts.shares_memory = IsIntegrated();
  facts.is_managed = IsManaged();
  return facts;
}

}  // namespace
}  // namespace wisp::kernels::cuda::emulate

extern "C" __attribute__((visibility("default"))) const wisp::kernels::KernelModule* wisp_kernels_module() {
  using namespace wisp::kernels;
  static constexpr KernelModule kModule = {.ops_version = WISP_OPS_VERSION,
                                           .open = cuda::emulate::Open,
                                           .facts = cuda::emulate::GetEmulatorFacts,
                                           .limit = cuda::emulate::LimitMemory,
                                           .ops = cuda::Ops,
                                           .memory = cuda::DeviceMemory,
                                           .allocated = cuda::AllocatedBytes,
                                           .run_at_once = [] {},  // the emulator always does
                                           .allocate_shared = cuda::emulate::AllocateShared};
  return &kModule;
}
