// Times each op of the kernels at the recommender's shapes, on one thread, and shows the time beside the op's roofline.
// Each op is compared with the reference first.
//
// An op takes at least as long as its arithmetic at the measured peak of multiply-adds, and at least as long as its
// bytes at the measured bandwidth of memory. The larger of the two times is its roofline. Bytes are those that are read
// and written once, counted as if they lay in memory. In this loop, as in a step, most of them lie in caches, so that
// such an op passes 100 % of the bandwidth of memory.
#include <algorithm>
#include <cmath>

#include "tools/lab/bench/bench_ops_cases.h"
#include "tools/lab/bench/bench_parts.h"
#include "tools/lab/bench/fma_peak.h"
#include "tools/lab/bench/memory_bandwidth.h"

namespace wisp::tools {

using kernels::OpTable;

Status WrongOp(const std::string& op, const std::string& how) {
  return InvalidData("op ", op, " of ", kernels::BestOps().name, " is wrong, nothing was timed: ", how);
}

namespace {

constexpr double kSampleSeconds = 2e-4;

// Runs the reference and then the best table from the same start, and compares the results.
Status Check(const OpCase& c) {
  if (c.check) {
    c.run(kernels::BestOps());
    return c.check();
  }
  std::vector<std::vector<float>> start, expected;
  for (const auto& out : c.out) start.emplace_back(out.begin(), out.end());
  c.run(kernels::ReferenceOps());
  for (size_t i = 0; i < c.out.size(); ++i) {
    expected.emplace_back(c.out[i].begin(), c.out[i].end());
    std::copy(start[i].begin(), start[i].end(), c.out[i].begin());
  }
  c.run(kernels::BestOps());
  for (size_t i = 0; i < c.out.size(); ++i) {
    double largest = 0, off = 0;
    for (size_t j = 0; j < expected[i].size(); ++j) {
      largest = std::max(largest, std::abs(static_cast<double>(expected[i][j])));
      const double here = std::abs(static_cast<double>(c.out[i][j]) - expected[i][j]);
      off = here <= off ? off : here;  // keeps a NaN
    }
    if (!(off <= c.tolerance * largest)) {
      return WrongOp(c.op, "at " + c.shape + " it is off by " + Json(off / largest).dump() +
                               " of the largest, allowed are " + Json(c.tolerance).dump());
    }
  }
  return OkStatus();
}

Json Measure(const OpCase& c, double memory_gb_per_s, double& best_peak, uint32_t repeats) {
  const OpTable& ops = kernels::BestOps();
  double once = 1;
  for (int i = 0; i < 3; ++i) once = std::min(once, Seconds([&] { c.run(ops); }));
  const auto calls = static_cast<size_t>(std::clamp(kSampleSeconds / std::max(once, 1e-9), 1.0, 1e5));
  std::vector<double> us, percents;
  std::string bound_by;
  for (uint32_t i = 0; i < repeats; ++i) {
    double peak = 0;
    for (int probe = 0; probe < 10; ++probe) peak = std::max(peak, FmaProbe());
    best_peak = std::max(best_peak, peak);
    const double seconds = Seconds([&] {
                             for (size_t call = 0; call < calls; ++call) c.run(ops);
                           }) /
                           static_cast<double>(calls);
    const double least_arithmetic = c.operations / peak / 1e9, least_memory = c.bytes / memory_gb_per_s / 1e9;
    us.push_back(1e6 * seconds);
    percents.push_back(100 * std::max(least_arithmetic, least_memory) / seconds);
    bound_by = least_arithmetic >= least_memory ? "arithmetic" : "memory";
  }
  const double median = ComputeSpread(us).median;
  return {{"op", c.op},
          {"shape", c.shape},
          {"us", ToJson(ComputeSpread(us))},
          {"gflops", c.operations / median / 1e3},
          {"gb_per_s", c.bytes / median / 1e3},
          {"bound_by", bound_by},
          {"percent_of_roofline", ToJson(ComputeSpread(percents))}};
}

}  // namespace

Status BenchOps(const BenchArguments& a, std::vector<Json>& lines) {
  if (a.items > 1u << 22 || a.length > 4096)
    return InvalidArgument("--items and --length are at most 4194304 and 4096 for the ops");
  const OpCases cases(a);
  for (const OpCase& c : cases.all()) WISP_RETURN_IF_ERROR(Check(c));
  const MemoryBandwidth memory = MeasureMemoryBandwidth();
  double peak = 0;
  std::vector<Json> figures;
  for (const OpCase& c : cases.all()) figures.push_back(Measure(c, memory.gb_per_s, peak, a.repeats));
  lines.push_back({{"ops", kernels::BestOps().name},
                   {"threads", 1},
                   {"fma_peak_gflops", peak},
                   {"memory_gb_per_s", memory.gb_per_s},
                   {"memory_measured_over_bytes", memory.bytes},
                   {"last_cache_bytes", memory.last_cache_bytes}});
  lines.insert(lines.end(), figures.begin(), figures.end());
  return OkStatus();
}

}  // namespace wisp::tools
