// Recipes of classifiers: strict JSON like recipe.h, with a section "dp_fp".
#ifndef WISP_TOOLS_WISP_RECIPE_CLASSIFY_RECIPE_H_
#define WISP_TOOLS_WISP_RECIPE_CLASSIFY_RECIPE_H_

#include <string>
#include <vector>

#include "runtime/data/labelled.h"
#include "runtime/train/run/job.h"

namespace wisp::tools {

// Method names in recipes and on the command line.
inline constexpr std::pair<const char*, Method> kClassifyMethods[] = {
    {"dp-fp", Method::kDpFp}, {"phantom", Method::kPhantom}, {"rgp", Method::kRgp}, {"ordinary", Method::kOrdinary}};

struct ClassifyRecipe {
  std::string name;
  // The encoder without its head: the classes below define the head. num_items comes from the vocabulary or the base.
  Architecture encoder = UniformArchitecture{.attend = Attend::kAll};
  InitialisationOptions initialisation;
  // The method is DP-FP by default. Its noise multiplier, under dp_fp.paper, is that of kPaper.
  TrainingOptions options{.method = Method::kDpFp,
                          .sampling = Sampling::kPoisson,
                          .expected_batch = 32,
                          .optimizer = {.kind = OptimizerKind::kAdamW}};
  std::optional<AdapterSpec> adapter;  // trains beside --base, which does not change
  double epochs = 0;
  uint64_t seed = 1;  // for fresh weights
  PrivacyGoal goal;   // for the private modes
  double head_share = 0.3;
  privacy::PrivacyUnit unit = privacy::PrivacyUnit::kInteraction;  // one labelled text is one record
  bool unit_chosen = false;                                        // the recipe names it
  std::string uncharged_tuning;                                    // as in the recipe of a recommender
  std::vector<std::string> classes;                                // public, in the order of the classes' numbers
  data::LetterCase letters = data::LetterCase::kLower;
  // True if anybody may know which tokens occur: a vocabulary from the data requires it.
  bool catalogue_public = false;
  std::string text_column, label_column;
};

Result<ClassifyRecipe> ReadClassifyRecipe(const std::string& path);

// Applies --trains to a classifier whose method is already chosen; empty changes nothing. Returns kInvalidArgument for
// an unknown word, and for a word that DP-FP expresses by its mode.
Status OverrideTrains(const std::string& trains, TrainingOptions& options);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_CLASSIFY_RECIPE_H_
