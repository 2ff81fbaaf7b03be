// Recipes of classifiers: strict JSON as recipe.h, with a section "dp_fp".
#ifndef WISP_TOOLS_WISP_RECIPE_CLASSIFY_RECIPE_H_
#define WISP_TOOLS_WISP_RECIPE_CLASSIFY_RECIPE_H_

#include <string>
#include <vector>

#include "runtime/data/labelled.h"
#include "runtime/train/run/job.h"

namespace wisp::tools {

// As recipes and the program write them.
inline constexpr std::pair<const char*, Method> kClassifyMethods[] = {
    {"dp-fp", Method::kDpFp}, {"phantom", Method::kPhantom}, {"rgp", Method::kRgp}, {"ordinary", Method::kOrdinary}};

struct ClassifyRecipe {
  std::string name;
  // Without its head, whose classes are those below; num_items comes from the vocabulary or the base.
  Architecture encoder = UniformArchitecture{.attend = Attend::kAll};
  InitialisationOptions initialisation;
  // DP-FP by default; its noise multiplier is that of kPaper, under dp_fp.paper.
  TrainingOptions options{.method = Method::kDpFp,
                          .sampling = Sampling::kPoisson,
                          .expected_batch = 32,
                          .optimizer = {.kind = OptimizerKind::kAdamW}};
  std::optional<AdapterSpec> adapter;  // trains beside --base, which stays as it is
  double epochs = 0;
  uint64_t seed = 1;  // of fresh weights
  PrivacyGoal goal;   // of the private modes
  double head_share = 0.3;
  privacy::PrivacyUnit unit = privacy::PrivacyUnit::kInteraction;  // one labelled text is one record
  bool unit_chosen = false;                                        // the recipe names it
  std::string uncharged_tuning;                                    // as a recommender's
  std::vector<std::string> classes;                                // public: the order is that of the classes' numbers
  data::LetterCase letters = data::LetterCase::kLower;
  // Whether which tokens occur may be known to anybody: a vocabulary from the data requires it.
  bool catalogue_public = false;
  std::string text_column, label_column;
};

Result<ClassifyRecipe> ReadClassifyRecipe(const std::string& path);

// What --trains says of a classifier whose method is chosen; empty: as it is. kInvalidArgument: another word, or what
// DP-FP says by its mode.
Status OverrideTrains(const std::string& trains, TrainingOptions& options);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_CLASSIFY_RECIPE_H_
