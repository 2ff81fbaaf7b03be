// The figures of measured cells for `wisp-lab reproduce`. Cells that belong together are measured once, at the first
// request, and handed out one by one.
#ifndef WISP_TOOLS_LAB_REPRODUCE_MEASURED_RUNS_H_
#define WISP_TOOLS_LAB_REPRODUCE_MEASURED_RUNS_H_

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/run/baselines.h"
#include "tools/lab/bench/bench_decoding.h"
#include "tools/lab/bench/bench_parts.h"
#include "tools/lab/reproduce/reproduction.h"

namespace wisp::tools {

class MeasuredRuns {
 public:
  MeasuredRuns() = default;
  MeasuredRuns(uint32_t threads, DecodingData decoding) : threads_(threads), decoding_(std::move(decoding)) {}

  // Announces a decode cell that will be asked of Figures: all of these are measured in one pass.
  void Expect(const ReproductionCell& cell) { expected_.push_back(&cell); }

  // Returns flat numbers, and `together`, which lines of one measurement share.
  Result<nlohmann::ordered_json> Figures(const ReproductionCell& cell);

 private:
  Result<nlohmann::ordered_json> BenchFigures(const BenchCell& cell);
  Result<nlohmann::ordered_json> BaselineFigures(const ReproductionCell& cell);
  Status MeasureExpected();

  struct Measured {
    std::string id;
    std::vector<MethodFigures> methods;
  };
  uint32_t threads_ = 0;
  DecodingData decoding_;
  std::map<std::string, Measured> benches_;   // by BenchCell::together
  std::optional<BaselineQuality> baselines_;  // all cells of a table have one base
  std::vector<const ReproductionCell*> expected_;
  std::map<const ReproductionCell*, nlohmann::ordered_json> decodes_;
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_REPRODUCE_MEASURED_RUNS_H_
