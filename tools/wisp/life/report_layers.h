// How far each layer of a personalised model is from what it began with, beside how far noise alone would have gone.
#ifndef WISP_TOOLS_WISP_LIFE_REPORT_LAYERS_H_
#define WISP_TOOLS_WISP_LIFE_REPORT_LAYERS_H_

#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/personalise/lifetime.h"

namespace wisp::tools {

// Of a layer's weights: the root of the mean square of what they changed by, and of what noise alone would have changed
// them by (VarianceOfNoise). Released values and public constants only.
struct LayerChange {
  std::string name;  // "block 1, attention"
  double moved = 0, by_noise = 0;
};

// `start` and `weights` in the flat layout of `architecture`; so many steps lie between them.
std::vector<LayerChange> LayerChanges(const Architecture& architecture, std::span<const float> start,
                                      std::span<const float> weights, const LifetimeSettings& settings, uint64_t steps);

// Of the candidate beside `output`, from what its training began with; none where there is none.
Result<std::vector<LayerChange>> ChangesOfCandidate(const std::string& base_path, const std::string& output,
                                                    const LifetimeSettings& settings);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_LIFE_REPORT_LAYERS_H_
