// Sections that several kinds of recipe have.
#ifndef WISP_TOOLS_WISP_RECIPE_SECTION_H_
#define WISP_TOOLS_WISP_RECIPE_SECTION_H_

#include "runtime/core/architecture.h"
#include "runtime/train/initialise.h"
#include "runtime/train/optimizer.h"
#include "tools/wisp/json_section.h"

namespace wisp::tools {

void ReadArchitecture(JsonSection& section, Architecture& architecture);
// What ReadArchitecture reads: every key but num_items, which a recipe does not have.
nlohmann::ordered_json WriteArchitecture(const Architecture& architecture);
void ReadInitialisation(JsonSection& section, InitialisationOptions& options);
void ReadOptimizer(JsonSection& section, OptimizerOptions& options);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_SECTION_H_
