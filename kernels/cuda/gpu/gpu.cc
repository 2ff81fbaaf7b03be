#include "kernels/cuda/gpu/gpu.h"

#include <atomic>
#include <cstdio>
#include <vector>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device_code.h"
#include "kernels/cuda/results.h"

namespace wisp::kernels::cuda {
namespace {

constexpr int kDevice = 0;  // the first that the driver lists

struct Gpu {
  cudaStream_t stream = nullptr;
  std::atomic<cudaError_t> first_error = cudaSuccess;
  std::atomic<bool> runs_at_once = false;
};

Gpu& TheGpu() {
  static Gpu gpu;
  return gpu;
}

std::vector<const void*>& KnownKernels() {
  static std::vector<const void*> kernels;
  return kernels;
}

cudaError_t LoadKernels() {
  for (const void* kernel : KnownKernels()) {
    cudaFuncAttributes attributes;
    const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

__global__ void Answer(unsigned* number) {
  if (GlobalThread() == 0) *number = 42;
}

// Runs a kernel, to find out if the module has code for this GPU.
cudaError_t Try() {
  unsigned *number = nullptr, answer = 0;
  cudaError_t error = cudaMalloc(reinterpret_cast<void**>(&number), sizeof(unsigned));
  if (error == cudaSuccess) {
    Launch<Answer>({.threads = kWarp}, number);
    error = TheGpu().first_error;
  }
  if (error == cudaSuccess) error = cudaStreamSynchronize(TheGpu().stream);
  if (error == cudaSuccess) error = cudaMemcpy(&answer, number, sizeof(unsigned), cudaMemcpyDeviceToHost);
  (void)cudaFree(number);
  return error == cudaSuccess && answer != 42 ? cudaErrorUnknown : error;
}

const char* Refuse(const char* what, cudaError_t error) {
  static char sentence[512];
  ClearIfFailed(error);
  std::snprintf(sentence, sizeof sentence, "%s (CUDA: %s)", what, cudaGetErrorString(error));
  return sentence;
}

const char* OpenOnce() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorInsufficientDriver)
    return Refuse("there is no NVIDIA driver, or it is older than the module's CUDA", counted);
  if (counted == cudaErrorNoDevice || (counted == cudaSuccess && count == 0))
    return Refuse("the NVIDIA driver shows no GPU", counted);
  if (counted != cudaSuccess) return Refuse("the NVIDIA driver does not answer", counted);
  const OnGpu on_gpu;
  cudaError_t error = TheGpu().first_error;
  cudaDeviceProp properties = {};
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, kDevice);
  if (error != cudaSuccess) return Refuse("the GPU cannot be used", error);
  if (const char* why = ChooseGpuMemory(properties)) return why;
  error = cudaStreamCreateWithFlags(&TheGpu().stream, cudaStreamNonBlocking);
  if (error == cudaSuccess) error = OpenMemory();
  if (error != cudaSuccess) return Refuse("the GPU cannot be used", error);
  error = LoadKernels();
  if (error == cudaSuccess) error = Try();
  return error == cudaSuccess ? nullptr
                              : Refuse("the module's kernels cannot be loaded, or do not run, on this GPU", error);
}

}  // namespace

const char* OpenGpu() {
  static const char* const why = OpenOnce();
  return why;
}

DeviceFacts GetGpuFacts() {
  DeviceFacts facts;
  cudaDeviceProp properties;
  if (!ClearIfFailed(cudaGetDeviceProperties(&properties, kDevice))) return facts;
  std::snprintf(facts.name, sizeof facts.name, "%.127s", properties.name);
  size_t free = 0, total = 0;
  if (ClearIfFailed(cudaMemGetInfo(&free, &total))) {
    facts.free_bytes = free;
    facts.total_bytes = total;
  }
  facts.cache_bytes = static_cast<uint64_t>(properties.l2CacheSize);
  facts.processors = static_cast<uint32_t>(properties.multiProcessorCount);
  facts.version = static_cast<uint32_t>(properties.major * 10 + properties.minor);
  facts.shares_memory = properties.integrated != 0;
  facts.is_managed = IsManaged();
  return facts;
}

cudaStream_t Stream() { return TheGpu().stream; }

OnGpu::OnGpu() : callers_(kDevice) {
  // Where the caller's device is unknown, ours stays.
  const bool known = ClearIfFailed(cudaGetDevice(&callers_));
  if (!known || callers_ != kDevice) Note(cudaSetDevice(kDevice));
  if (!known) callers_ = kDevice;
}

OnGpu::~OnGpu() {
  if (callers_ != kDevice) (void)ClearIfFailed(cudaSetDevice(callers_));
}

bool KnowKernel(const void* kernel) {
  KnownKernels().push_back(kernel);
  return true;
}

void Note(cudaError_t error) {
  cudaError_t none = cudaSuccess;
  if (error != cudaSuccess) TheGpu().first_error.compare_exchange_strong(none, error);
}

bool ClearIfFailed(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error == cudaSuccess;
}

unsigned CountProcessors() {
  static const unsigned count = [] {
    int processors = 0;
    return ClearIfFailed(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0)) && processors > 0
               ? static_cast<unsigned>(processors)
               : 1u;
  }();
  return count;
}

bool IsRefusal(cudaError_t error) {
  return error == cudaErrorCooperativeLaunchTooLarge || error == cudaErrorNotSupported ||
         error == cudaErrorNotPermitted || error == cudaErrorLaunchOutOfResources;
}

unsigned BlocksAtOnce(const void* kernel, unsigned threads) {
  const OnGpu on_gpu;
  int together = 0, processors = 0, of_one = 0;
  const bool known =
      ClearIfFailed(cudaDeviceGetAttribute(&together, cudaDevAttrCooperativeLaunch, kDevice)) &&
      ClearIfFailed(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, kDevice)) &&
      ClearIfFailed(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_one, kernel, static_cast<int>(threads), 0));
  if (!known || together == 0 || of_one <= 0) return 0;
  // One block for each processor: a second would make every barrier slower, and the models are small.
  return static_cast<unsigned>(processors);
}

void RunAtOnce() { TheGpu().runs_at_once = true; }

void NoteLaunch() {
  const OnGpu on_gpu;
  Note(cudaGetLastError());
  if (TheGpu().runs_at_once) Note(cudaStreamSynchronize(Stream()));
}

bool Wait() {
  WaitForStaged();
  return TheGpu().first_error == cudaSuccess;
}

const char* Failure() {
  const cudaError_t error = TheGpu().first_error;
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

}  // namespace wisp::kernels::cuda
