// Sections that several kinds of recipe have.
#ifndef WISP_TOOLS_WISP_RECIPE_RECIPE_SECTION_H_
#define WISP_TOOLS_WISP_RECIPE_RECIPE_SECTION_H_

#include "runtime/core/architecture.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/options.h"
#include "runtime/train/run/initialise.h"
#include "tools/wisp/recipe/json_section.h"

namespace wisp::tools {

// `defaults` has what the section does not name, and num_items, which a recipe does not have. Blocks that differ are
// named one by one, as objects under "blocks": what such an object leaves out is as in the section.
void ReadArchitecture(JsonSection& section, const UniformArchitecture& defaults, Architecture& architecture);
// What ReadArchitecture reads.
nlohmann::ordered_json WriteArchitecture(const Architecture& architecture);
// An object for each block, as under "blocks".
nlohmann::ordered_json WriteBlocks(const Architecture& architecture);
// The section "adapter" of a recipe.
void ReadAdapter(JsonSection& section, std::optional<AdapterSpec>& adapter);
nlohmann::ordered_json WriteAdapter(const AdapterSpec& adapter);
void ReadInitialisation(JsonSection& section, InitialisationOptions& options);
void ReadOptimizer(JsonSection& section, OptimizerOptions& options);
void ReadDropout(JsonSection& section, DropoutRates& rates);
void ReadRgp(JsonSection& section, RgpOptions& options);
// Which parameters train, of those that can: the key "trains".
void ReadTrainedPart(JsonSection& section, TrainedPart& part);
// How records' gradients are bounded.
void ReadClipping(JsonSection& section, PrivateTraining& options);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_RECIPE_SECTION_H_
