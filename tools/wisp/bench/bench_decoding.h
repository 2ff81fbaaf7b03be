// What private draws are worth: the perplexity of held-out next items under the laws of some cells (Majmudar et al.
// 2022, figure 2), in one pass over the users.
#ifndef WISP_TOOLS_WISP_BENCH_BENCH_DECODING_H_
#define WISP_TOOLS_WISP_BENCH_BENCH_DECODING_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/wisp/commands.h"
#include "tools/wisp/reproduce/measured_cell.h"

namespace wisp::tools {

struct DecodingData {
  std::string model, base;  // files; the base may be absent
  std::vector<std::string> public_datasets;
  DataArguments data;
  uint32_t users = 0, items = 0;  // that the data must have; 0: any
  uint32_t threads = 0;           // 0: up to 4
};

// As they stand in result lines: content hashes. A line counts as done for the files that it was measured with only.
struct DecodingFiles {
  std::string model, base;  // empty: none
};
// Refuses a model that carries a guarantee (its draws are free, there is nothing to trade), a base that is not public
// and files that do not go together.
Result<DecodingFiles> CheckDecodingFiles(const DecodingData& data);

// Flat figures, one object per cell. The support of a draw is all items, or the base's best, less the user's history. A
// user whose next item is not in it is left out of the perplexity and counted by `covered`.
//
// lambda and clip are calibrated for draws from the whole catalogue (or the base's K best), as
// ChargeFor::kWholeCatalogue charges.
Result<std::vector<nlohmann::ordered_json>> MeasureDecoding(const DecodingData& data,
                                                            const std::vector<DecodeCell>& cells);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_BENCH_BENCH_DECODING_H_
