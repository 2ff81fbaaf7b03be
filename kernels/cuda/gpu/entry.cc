// The only function of the module that is exported.
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/gpu/gpu.h"

extern "C" __attribute__((visibility("default"))) const wisp::kernels::KernelModule* wisp_kernels_module() {
  using namespace wisp::kernels;
  static constexpr KernelModule kModule = {.ops_version = WISP_OPS_VERSION,
                                           .open = cuda::OpenGpu,
                                           .facts = cuda::MadeOnGpu<cuda::GetGpuFacts>::Call,
                                           .limit = cuda::LimitMemory,
                                           .ops = cuda::Ops,
                                           .memory = cuda::DeviceMemory,
                                           .allocated = cuda::AllocatedBytes,
                                           .run_at_once = cuda::RunAtOnce,
                                           .allocate_shared = cuda::MadeOnGpu<cuda::AllocateShared>::Call};
  return &kModule;
}
