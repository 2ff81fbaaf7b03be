// The interface between a kernel module for another device and the program that loads it; and the loading.
//
//   OpenedModule opened = OpenModule({.name = "cuda"});
//   if (opened.module == nullptr) return opened.why;                     // a sentence
//   const Device device(opened.module->ops(Arithmetic::kFloat32), Memory(opened.module->memory(), nullptr));
//
// A module is a shared library with one function, kModuleEntry. It is loaded on request and stays until the process
// ends. A program that can load modules also runs without module, driver or device.
#ifndef WISP_KERNELS_MODULE_MODULE_H_
#define WISP_KERNELS_MODULE_MODULE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/device.h"

namespace wisp::kernels {

// Facts that a device reports about itself.
struct DeviceFacts {
  char name[128] = {};
  uint64_t total_bytes = 0, free_bytes = 0;  // of its memory; for memory shared with the host, that memory's
  uint64_t cache_bytes = 0;                  // of the last cache that all its processors share
  uint32_t processors = 0;
  uint32_t version = 0;        // version of its instruction set, major * 10 + minor
  bool shares_memory = false;  // true if its memory is the host's
  bool is_managed = false;     // true if the host can access the memory that this process takes on it
};

struct KernelModule {
  // WISP_OPS_VERSION, a hash of the headers that define tables, arguments and this struct. Any other value is refused.
  const char* ops_version;
  // Prepares the first device that the driver lists, once for a process. Returns null, or a message that says why there
  // is no device.
  const char* (*open)();
  DeviceFacts (*facts)();
  // Refuses allocations beyond this many bytes together; 0: no limit.
  void (*limit)(uint64_t bytes);
  const OpTable& (*ops)(Arithmetic arithmetic);
  const MemoryTable& (*memory)();
  size_t (*allocated)();  // bytes of the device's memory that this process has allocated

  // For tests: from now on, kernels have run when an op returns.
  void (*run_at_once)();
  // Memory that both sides access, until the process ends; null if the device has no such memory.
  void* (*allocate_shared)(size_t bytes);
};

inline constexpr char kModuleEntry[] = "wisp_kernels_module";
using ModuleEntry = const KernelModule* (*)();

struct ModuleRequest {
  std::string name;  // "cuda": libwisp_cuda.so
  // A file. If empty: beside the program or library that asks; then, for an installed program, where cmake --install
  // puts modules; then where the system looks for libraries.
  std::string file = {};
};

struct OpenedModule {
  const KernelModule* module = nullptr;
  std::string why = {};   // a message, if there is no module
  bool is_wrong = false;  // true if the named file does not exist or is not a module of this program
};

OpenedModule OpenModule(const ModuleRequest& request);

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_MODULE_MODULE_H_
