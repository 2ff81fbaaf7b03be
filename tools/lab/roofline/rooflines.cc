// The peak rates of devices by their data sheets. A multiply-add is two operations.
#include <algorithm>

#include "tools/lab/roofline/counting_device.h"

namespace wisp::tools {
namespace {

// 32-bit floats on the ordinary cores: each does one multiply-add per clock.
Roofline CoreRoofline(const char* name, double gb_per_s, double cores, double gigahertz, const char* source) {
  return {.name = name, .gb_per_s = gb_per_s, .gflops = 2 * cores * gigahertz, .source = source};
}

}  // namespace

double Roofline::ComputeSeconds(const OpCost& cost) const {
  const double memory = cost.bytes / (1e9 * gb_per_s);
  return gflops > 0 ? std::max(memory, cost.operations / (1e9 * gflops)) : memory;
}

const std::vector<Roofline>& Rooflines() {
  static const std::vector<Roofline> kRooflines = {
      {.name = "H100", .gb_per_s = 3350, .gflops = 67000, .source = "H100 SXM: 3.35 TB/s, 67 TFLOP/s"},
      {.name = "H200", .gb_per_s = 4800, .gflops = 67000, .source = "H200 SXM: 4.8 TB/s, 67 TFLOP/s"},
      CoreRoofline("Orin", 204.8, 2048, 1.3, "Jetson AGX Orin 64GB: 204.8 GB/s; 2048 cores at 1.3 GHz"),
      CoreRoofline("Thor", 273, 2560, 1.57, "Jetson T5000: 273 GB/s; 2560 cores at 1.57 GHz")};
  return kRooflines;
}

}  // namespace wisp::tools
