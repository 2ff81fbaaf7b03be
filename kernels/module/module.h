// What a module of kernels for another device gives to the program that loads it, and how one is loaded.
//
//   OpenedModule opened = OpenModule({.name = "cuda"});
//   if (opened.module == nullptr) return opened.why;                     // a sentence
//   const Device device(opened.module->ops(Arithmetic::kFloat32), Memory(opened.module->memory(), nullptr));
//
// A module is a shared library with one function, kModuleEntry. It is loaded when it is asked for and stays until the
// process ends. A program that loads modules runs where there is neither module, nor driver, nor device.
#ifndef WISP_KERNELS_MODULE_MODULE_H_
#define WISP_KERNELS_MODULE_MODULE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/device.h"

namespace wisp::kernels {

// What a device says of itself.
struct DeviceFacts {
  char name[128] = {};
  uint64_t total_bytes = 0, free_bytes = 0;  // of its memory; of memory that the host shares, what both have
  uint64_t cache_bytes = 0;                  // of the last cache that all its processors share
  uint32_t processors = 0;
  uint32_t version = 0;        // of its instruction set, major * 10 + minor
  bool shares_memory = false;  // with the host
  bool is_managed = false;     // what this process takes of it: the host reaches that too
};

struct KernelModule {
  // WISP_OPS_VERSION, a hash of the headers that define tables, arguments and this struct. Another one is refused.
  const char* ops_version;
  // Makes the first device that the driver shows ready, once a process. Null, or a sentence why there is none.
  const char* (*open)();
  DeviceFacts (*facts)();
  // Allocations beyond so many bytes together are refused; 0: none.
  void (*limit)(uint64_t bytes);
  const OpTable& (*ops)(Arithmetic arithmetic);
  const MemoryTable& (*memory)();
  size_t (*allocated)();  // bytes of the device's memory that this process has now

  // For tests. From now on kernels have run when an op returns.
  void (*run_at_once)();
  // Memory that both sides read and write, until the process ends; null where there is none.
  void* (*allocate_shared)(size_t bytes);
};

inline constexpr char kModuleEntry[] = "wisp_kernels_module";
using ModuleEntry = const KernelModule* (*)();

struct ModuleRequest {
  std::string name;  // "cuda": libwisp_cuda.so
  // A file; empty: beside the program or library that asks, then, for an installed program, where cmake --install puts
  // modules, then where the system looks for libraries.
  std::string file = {};
};

struct OpenedModule {
  const KernelModule* module = nullptr;
  std::string why = {};   // a sentence, where there is none
  bool is_wrong = false;  // the file that was named is none, or no module of this program
};

OpenedModule OpenModule(const ModuleRequest& request);

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_MODULE_MODULE_H_
