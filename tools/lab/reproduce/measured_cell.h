// Cells of a reproduction that are measured instead of trained, in the form of the table's file.
//
//   "kind": "bench",  "bench": {"what": "clipping", "method": "phantom", "items": 3416, "batch": 256, "length": 200,
//                     "repeats": 12}
//   "kind": "bench",  "bench": {"what": "sparse", "method": "adafest", "items": 100000, "batch": 1024, "repeats": 20}
//   "kind": "decode", "decode": {"mode": "uniform", "composition": "pld", "epsilon": 8, "delta": 1e-6, "samples": 100,
//                      "support": "all"}
#ifndef WISP_TOOLS_LAB_REPRODUCE_MEASURED_CELL_H_
#define WISP_TOOLS_LAB_REPRODUCE_MEASURED_CELL_H_

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/private_sampling/private_sampling.h"
#include "tools/lab/commands.h"

namespace wisp::tools {

// One method of a measurement. Cells that differ only in the method are measured together, in turns, and each takes its
// part.
struct BenchCell {
  BenchArguments arguments;  // all but the threads
  std::string method;        // clipping: ordinary, phantom or ghost; sparse: adafest or dense
  std::string together;      // equal for cells that are measured together
};
Result<BenchCell> ReadBenchCell(const std::string& where, const nlohmann::json& json);

// The perplexity of the next item under a law of sampling. The modes plain and base are those of the model and the base
// themselves. Private sampling lies between them; they take no target.
struct DecodeCell {
  enum class Composition {
    kPure,  // epsilon over `samples` samples at delta 0
    kPld,   // at delta, by the accountant
  };
  DecodingMode mode = DecodingMode::kPlain;
  bool of_base = false;  // for kPlain: the base
  Composition composition = Composition::kPld;
  double epsilon = 0, delta = 0, temperature = 1;
  uint64_t samples = 0;   // over all queries of the model
  uint32_t base_top = 0;  // the support: this many best items of the base outside the history; 0: all items outside
  bool NeedsBase() const { return mode == DecodingMode::kBaseAnchored || of_base || base_top > 0; }
};
Result<DecodeCell> ReadDecodeCell(const std::string& where, const nlohmann::json& json);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_REPRODUCE_MEASURED_CELL_H_
