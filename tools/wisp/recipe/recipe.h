// Recipes: architecture and hyper-parameters as data, a strict JSON file. Unknown keys, wrong types and values out of
// range are errors that name file, key, value and what is allowed.
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

// Of a decoder that learns texts: what a record is, and what the recipe fixes of how texts become tokens.
struct TextRecipe {
  data::TextUnit unit;
  std::string tokenizer;      // of a model without a base: "bytes"; empty: the command names a file
  uint32_t max_length = 0;    // positions of a record that are read; 0: as many as the model has
  double hold_out_share = 0;  // of the texts, kept from training to test with
};

struct Recipe {
  std::string name;
  Architecture architecture = UniformArchitecture();  // num_items comes from the data or the model
  std::optional<AdapterSpec> adapter;                 // trains beside --model, which stays as it is
  std::vector<std::string> names_architecture;        // keys of it that the recipe has
  InitialisationOptions initialisation;
  TrainingOptions training;
  double epochs = 0;
  PrivacyGoal goal;
  double histogram_noise = 0;
  RowSelection rows;
  privacy::PrivacyUnit unit = privacy::PrivacyUnit::kUser;
  bool unit_chosen = false;       // the recipe names it
  int64_t session_gap = 0;        // of the unit session, in seconds
  uint32_t times_per_second = 1;  // of the log
  std::string uncharged_tuning;   // what was chosen by looking at the same data without a charge, for the statement
  HoldOut hold_out = HoldOut::kTest;
  std::optional<bool> allow_seen;  // ModelFile::lists of what is made; not named: as the base says, or not
  uint32_t min_user_events = 1, min_item_events = 1;
  // Whether which items exist may be known to anybody: private training from data alone requires it.
  enum class Catalogue { kUnsaid, kPublic } catalogue = Catalogue::kUnsaid;
  std::optional<TextRecipe> text;  // set: the data are texts, no events
};

// What fine-tuning a decoder on texts does where no recipe says otherwise; its name is empty.
Recipe TextDefaults();

Result<Recipe> ReadRecipe(const std::string& path);
// The same of what was read or put together elsewhere; errors begin with `where`.
Result<Recipe> ParseRecipe(const std::string& where, const nlohmann::json& json);

// Whether it is a recipe of a classifier (classify_recipe.h): it has dp_fp or names classes.
bool IsOfClassifier(const nlohmann::json& json);

// That a declaration can stand in the name of a run: at most 256 bytes of UTF-8 without control characters and
// semicolons. kInvalidArgument.
Status CheckTuning(const std::string& declared);

// The whole of a file. kIo, or kInvalidData when it is not JSON.
Result<nlohmann::json> ReadJson(const std::string& path);

// The method named on the command line in place of the recipe's; nothing for an empty name.
Status OverrideMethod(const std::string& method, TrainingOptions& options);

// Where the list of items is taken from the data: which items are in it must not depend on counts, which no declaration
// covers. kPrivacyRefused.
Status CheckPublicCatalogue(const Recipe& recipe);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_RECIPE_H_
