// What the parts of `wisp bench` share: times, spreads, JSON.
#ifndef WISP_TOOLS_WISP_BENCH_PARTS_H_
#define WISP_TOOLS_WISP_BENCH_PARTS_H_

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/wisp/commands.h"
#include "tools/wisp/temporary_folder.h"

namespace wisp::tools {

using Json = nlohmann::ordered_json;

inline double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Spread {
  double low, median, high;  // quartiles
};

inline Spread SpreadOf(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  return {samples[n / 4], samples[n / 2], samples[n * 3 / 4]};
}

inline Json ToJson(const Spread& s) { return {{"median", s.median}, {"quartiles", {s.low, s.high}}}; }

// A step of DP-AdaFEST and of dense DP-SGD over catalogues of 1e5 to 1e7 items (bench_sparse.cc).
Status BenchSparse(const BenchArguments& arguments, Json& result);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_BENCH_PARTS_H_
