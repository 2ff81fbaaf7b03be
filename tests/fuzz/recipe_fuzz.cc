// Recipes of recommenders and of classifiers: strict JSON, a sentence for everything else.
// Needs TEXTS, with which the reader of JSON comes.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/fuzz/input.h"
#include "tests/unit/core/temporary_folder.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/recipe/recipe_section.h"

namespace {

// Requires that a written architecture reads back equal.
void RequireSameArchitecture(const wisp::RunSpec& recipe) {
  const nlohmann::json written = wisp::tools::WriteArchitecture(recipe.architecture);
  wisp::tools::JsonSection section("written", written);
  wisp::Architecture read;
  wisp::tools::ReadArchitecture(section, {}, read);
  wisp::fuzz::Require(section.Finish().ok(), "what is written of an architecture can be read");
  wisp::fuzz::Require(read == recipe.architecture, "what is read is what was written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace wisp;
  static const test::TemporaryFolder folder;
  const std::string path = folder / "recipe.json";
  fuzz::Input input(data, size);
  fuzz::WriteFile(path, input.Rest());
  const auto recipe = tools::ReadRecipe(path);
  if (!recipe.ok()) fuzz::RequireSentence(recipe.status().message());
  if (recipe.ok()) {
    fuzz::Require(std::isfinite(recipe->epochs) && std::isfinite(recipe->training.optimizer.learning_rate),
                  "an accepted number is finite");
    RequireSameArchitecture(*recipe);
  }
  const auto classify = tools::ReadClassifyRecipe(path);
  if (!classify.ok()) fuzz::RequireSentence(classify.status().message());
  return 0;
}
