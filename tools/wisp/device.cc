#include "tools/wisp/device.h"

#include <cstdio>

namespace wisp::tools {
namespace {

DeviceOptions MakeOptions(const DeviceArguments& a, DeviceUse use) {
  return {
      .name = a.name, .module = a.module, .arithmetic = a.arithmetic, .use = use, .max_bytes = a.megabytes * 1'000'000};
}

}  // namespace

Result<OpenedDevice> OpenDevice(const DeviceArguments& a, DeviceUse use) {
  return wisp::OpenDevice(MakeOptions(a, use));
}

Result<OpenedDevice> DeviceOrProcessor(const DeviceArguments& a, DeviceUse use) {
  WISP_ASSIGN_OR_RETURN(OpenedDevice opened, OpenDeviceOrProcessor(MakeOptions(a, use)));
  if (!opened.missing.empty())
    std::fprintf(stderr, "wisp: %s. What follows runs on the processor\n", opened.missing.c_str());
  if (!opened.is_processor()) std::fprintf(stderr, "wisp: computing on %s\n", opened.description.c_str());
  return opened;
}

}  // namespace wisp::tools
