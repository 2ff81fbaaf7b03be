// Measures the utility of private sampling: the perplexity of held-out next items under the laws of some cells
// (Majmudar et al. 2022, figure 2), in one pass over the users.
#ifndef WISP_TOOLS_LAB_BENCH_BENCH_DECODING_H_
#define WISP_TOOLS_LAB_BENCH_BENCH_DECODING_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/wisp/commands.h"
#include "tools/lab/reproduce/measured_cell.h"

namespace wisp::tools {

struct DecodingData {
  std::string model, base;  // files; the base is optional
  std::vector<std::string> public_datasets;
  DataArguments data;
  uint32_t users = 0, items = 0;  // that the data must have; 0: any
  uint32_t threads = 0;           // 0: up to 4
};

// Content hashes, as they stand in result lines. A line counts as done only for the files that it was measured with.
struct DecodingFiles {
  std::string model, base;  // empty: no file
};
// Refuses a model that carries a guarantee: sampling from it is free, so there is nothing to trade. Also refuses a base
// that is not public, and files that do not go together.
Result<DecodingFiles> CheckDecodingFiles(const DecodingData& data);

// Returns flat figures, one object per cell. The support of a sample is all items, or the base's best ones, without the
// user's history. A user whose next item is outside the support does not enter the perplexity; `covered` is the
// share of the users inside.
//
// lambda and clip are calibrated for samples from the whole catalogue (or from the base's K best), as
// ChargeFor::kWholeCatalogue charges.
Result<std::vector<nlohmann::ordered_json>> MeasureDecoding(const DecodingData& data,
                                                            const std::vector<DecodeCell>& cells);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_BENCH_BENCH_DECODING_H_
