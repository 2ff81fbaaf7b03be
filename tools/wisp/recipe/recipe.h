// Recipes: architecture and hyper-parameters as data, in a strict JSON file. Unknown keys, wrong types and values out
// of range are errors that name the file, the key, the value and what is allowed.
#ifndef WISP_TOOLS_WISP_RECIPE_RECIPE_H_
#define WISP_TOOLS_WISP_RECIPE_RECIPE_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/sequences.h"
#include "runtime/data/texts.h"
#include "runtime/train/run/job.h"

namespace wisp::tools {

// The settings of a decoder that learns texts: what a record is, and how texts become tokens.
struct TextRecipe {
  data::TextUnit unit;
  std::string tokenizer;      // for a model without a base: "bytes"; empty: the command names a file
  uint32_t max_length = 0;    // positions of a record that are read; 0: as many as the model has
  double hold_out_share = 0;  // share of the texts that is kept for testing
};

struct Recipe {
  std::string name;
  Architecture architecture = UniformArchitecture();  // num_items comes from the data or the model
  std::optional<AdapterSpec> adapter;                 // trains beside --model, which does not change
  std::vector<std::string> names_architecture;        // its keys that the recipe names
  InitialisationOptions initialisation;
  TrainingOptions training;
  double epochs = 0;
  PrivacyGoal goal;
  double histogram_noise = 0;
  RowSelection rows;
  privacy::PrivacyUnit unit = privacy::PrivacyUnit::kUser;
  bool unit_chosen = false;       // the recipe names it
  int64_t session_gap = 0;        // for the unit session, in seconds
  uint32_t times_per_second = 1;  // unit of the log's times
  std::string uncharged_tuning;   // for the statement: choices made by looking at the same data without a charge
  HoldOut hold_out = HoldOut::kTest;
  std::optional<bool> allow_seen;  // ModelFile::lists of the result; not set: as in the base, or false
  uint32_t min_user_events = 1, min_item_events = 1;
  // Says if anybody may know which items exist: private training from data alone requires it.
  enum class Catalogue { kUnsaid, kPublic } catalogue = Catalogue::kUnsaid;
  std::optional<TextRecipe> text;  // set: the data are texts, not events
};

// Returns the recipe for fine-tuning a decoder on texts if none is given; its name is empty.
Recipe TextDefaults();

Result<Recipe> ReadRecipe(const std::string& path);
// Parses a recipe that was read or composed elsewhere; errors begin with `where`.
Result<Recipe> ParseRecipe(const std::string& where, const nlohmann::json& json);

// Returns true for a recipe of a classifier (classify_recipe.h): it has dp_fp or names classes.
bool IsOfClassifier(const nlohmann::json& json);

// Checks that a declaration can stand in the name of a run: at most 256 bytes of UTF-8 without control characters and
// semicolons. Returns kInvalidArgument otherwise.
Status CheckTuning(const std::string& declared);

// Reads a whole file. Returns kIo, or kInvalidData if it is not JSON.
Result<nlohmann::json> ReadJson(const std::string& path);

// Replaces the recipe's method by the one on the command line; an empty name changes nothing.
Status OverrideMethod(const std::string& method, TrainingOptions& options);

// Checks a list of items that comes from the data: it must not depend on counts, which no declaration covers. Returns
// kPrivacyRefused.
Status CheckPublicCatalogue(const Recipe& recipe);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_RECIPE_H_
