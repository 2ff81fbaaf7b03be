#include "runtime/core/devices.h"

#ifdef WISP_HAS_MODULES
#include "kernels/module/module.h"
#endif

namespace wisp {

#ifdef WISP_HAS_MODULES

namespace {

const char* MemoryOf(const kernels::DeviceFacts& facts) {
  if (!facts.shares_memory) return ")";
  return facts.is_managed ? ", managed memory, shared with the processor)" : ", memory shared with the processor)";
}

std::string Describe(const std::string& name, const kernels::DeviceFacts& facts) {
  constexpr uint64_t kMegabyte = 1'000'000;
  return name + " (" + facts.name + ", " + std::to_string(facts.free_bytes / kMegabyte) + " of " +
         std::to_string(facts.total_bytes / kMegabyte) + " MB free" + MemoryOf(facts);
}

}  // namespace

Result<OpenedDevice> OpenDevice(const DeviceOptions& o) {
  if (o.name == "cpu") return OpenedDevice();
  const kernels::OpenedModule opened = kernels::OpenModule({.name = o.name, .file = o.module});
  if (opened.module == nullptr) return Unsupported("there is no device ", o.name, ": ", opened.why);
  if (o.max_bytes > 0) opened.module->limit(o.max_bytes);
  return OpenedDevice{.device =
                          kernels::Device(opened.module->ops(), kernels::Memory(opened.module->memory(), nullptr)),
                      .description = Describe(o.name, opened.module->facts())};
}

#else

Result<OpenedDevice> OpenDevice(const DeviceOptions& o) {
  if (o.name == "cpu") return OpenedDevice();
  return Unsupported("there is no device ", o.name, ": this build has none but the processor");
}

#endif

}  // namespace wisp
