// Sections of a recipe that describe a model.
#ifndef WISP_TOOLS_WISP_RECIPE_RECIPE_SECTION_H_
#define WISP_TOOLS_WISP_RECIPE_RECIPE_SECTION_H_

#include "runtime/core/architecture.h"
#include "tools/wisp/recipe/json_section.h"

namespace wisp::tools {

// `defaults` gives the values that the section does not name, and num_items, which a recipe does not have. Blocks that
// differ are objects under "blocks"; an object takes missing keys from the section.
void ReadArchitecture(JsonSection& section, const UniformArchitecture& defaults, Architecture& architecture);
// Writes an object that ReadArchitecture reads.
nlohmann::ordered_json WriteArchitecture(const Architecture& architecture);
// Writes an object for each block, as under "blocks".
nlohmann::ordered_json WriteBlocks(const Architecture& architecture);
// Reads the section "adapter" of a recipe.
void ReadAdapter(JsonSection& section, std::optional<AdapterSpec>& adapter);
nlohmann::ordered_json WriteAdapter(const AdapterSpec& adapter);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_RECIPE_SECTION_H_
