// Recipes: a RunSpec as a strict JSON file. Unknown keys, wrong types and values out of range are errors that name the
// file, the key, the value and what is allowed.
#ifndef WISP_TOOLS_WISP_RECIPE_RECIPE_H_
#define WISP_TOOLS_WISP_RECIPE_RECIPE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/train/run/run_spec.h"

namespace wisp::tools {

Result<RunSpec> ReadRecipe(const std::string& path);
// Parses a recipe that was read or composed elsewhere; errors begin with `where`.
Result<RunSpec> ParseRecipe(const std::string& where, const nlohmann::json& json);

// Reads the recipe of a classifier.
Result<RunSpec> ReadClassifyRecipe(const std::string& path);

// Returns true for a recipe of a classifier: it has dp_fp or names classes.
bool DescribesClassifier(const nlohmann::json& json);

// Checks that a declaration can stand in the name of a run: at most 256 bytes of UTF-8 without control characters and
// semicolons. Returns kInvalidArgument otherwise.
Status CheckTuning(const std::string& declared);

// Reads a whole file. Returns kIo, or kInvalidData if it is not JSON.
Result<nlohmann::json> ReadJson(const std::string& path);

// Applies --trains to a classifier whose method is already chosen; empty changes nothing. Returns kInvalidArgument for
// an unknown word, and for a word that DP-FP expresses by its mode.
Status OverrideTrains(const std::string& trains, TrainingOptions& options);

// Checks a list of items that comes from the data: it must not depend on counts, which no declaration covers. Returns
// kPrivacyRefused.
Status CheckPublicCatalogue(const RunSpec& recipe);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_RECIPE_H_
