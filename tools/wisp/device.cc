#include "tools/wisp/device.h"

#include <cstdio>

namespace wisp::tools {

Result<OpenedDevice> OpenDevice(const DeviceArguments& a) {
  return wisp::OpenDevice(
      {.name = a.name, .module = a.module, .arithmetic = a.arithmetic, .max_bytes = a.megabytes * 1'000'000});
}

OpenedDevice DeviceOrProcessor(const DeviceArguments& a) {
  Result<OpenedDevice> opened = OpenDevice(a);
  if (opened.ok()) return *std::move(opened);
  std::fprintf(stderr, "wisp: %s. What follows runs on the processor\n", opened.status().message().c_str());
  return {};
}

}  // namespace wisp::tools
