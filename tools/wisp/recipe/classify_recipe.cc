#include "tools/wisp/recipe/classify_recipe.h"

#include "runtime/privacy/accounting/calibration.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/recipe/recipe_section.h"

namespace wisp::tools {
namespace {

void ReadTraining(JsonSection& s, ClassifyRecipe& r) {
  s.ChoiceOf<Method>("method", r.options.method, kClassifyMethods);
  ReadTrainedPart(s, r.options.trained_part);
  s.Object("dropout", [&](JsonSection& inner) { ReadDropout(inner, r.options.dropout); });
  s.Object("rgp", [&](JsonSection& inner) { ReadRgp(inner, r.options.rgp); });
  s.Number("epochs", r.epochs, 0, 1e6);
  s.Number("steps", r.options.num_steps, 0, 1e12);
  s.Number("expected_batch", r.options.expected_batch, 1, 4e9);
  s.Number("rows_at_once", r.options.rows_at_once, 0, 1 << 20);
  s.Flag("recompute_blocks", r.options.recompute_blocks);
  s.Number("cache_at_most", r.options.cache_at_most, 0, 1e12);
  s.Number("num_records_public", r.options.num_records_public, 1, 4e9);
  s.Number("seed", r.seed, 0, 1.8e19);
  s.Object("optimizer", [&](JsonSection& inner) { ReadOptimizer(inner, r.options.optimizer); });
}

void ReadDpFp(JsonSection& s, ClassifyRecipe& r) {
  DpFpOptions& o = r.options.dp_fp;
  PrivateTraining& gradients = r.options.privacy;
  s.Choice<DpFpMode>(
      "mode", o.mode,
      {{"aggregate", DpFpMode::kAggregate}, {"clipped", DpFpMode::kClipped}, {"paper", DpFpMode::kPaper}});
  s.Number("micro_batches", o.micro_batches, 1, 1e6);
  s.Number("clipping_norm", o.clipping_norm, 1e-9, 1e9);
  s.Number("release_decay", o.release_decay, 0, 1);
  s.Number("effective_dimensions", o.effective_dimensions, 1, kMaxWidth);
  s.List("class_prior", o.class_prior);
  s.Number("head_share", r.head_share, 1e-3, 0.999);
  s.Object("encoder", [&](JsonSection& inner) {
    ReadClipping(inner, gradients);
    inner.Number("noise_multiplier", gradients.noise_multiplier, 1e-6, 1e5);
  });
  s.Object("paper", [&](JsonSection& inner) { inner.Number("noise_multiplier", o.noise_multiplier, 1e-6, 1e5); });
}

void ReadPrivacy(JsonSection& s, ClassifyRecipe& r) {
  s.Number("epsilon", r.goal.epsilon, privacy::kSmallestTarget, privacy::kLargestTarget);
  s.Number("noise_multiplier", r.goal.noise_multiplier, 1e-6, 1e5);
  s.Number("delta", r.goal.delta, 1e-300, 0.5);
  s.Flag("allow_delta_of_one_record", r.goal.allow_delta_of_one_record);
  s.Number("steps_per_charge", r.options.privacy.steps_per_charge, 1, 1e9);
  // The clipping of phantom and rgp; that of dp-fp's encoder stands in its own section.
  ReadClipping(s, r.options.privacy);
  s.Text("uncharged_tuning", r.uncharged_tuning);
  using privacy::PrivacyUnit;
  s.Choice<PrivacyUnit>("unit", r.unit, {{"user", PrivacyUnit::kUser}, {"interaction", PrivacyUnit::kInteraction}});
  r.unit_chosen = s.Any("unit") != nullptr;
}

void ReadData(JsonSection& s, ClassifyRecipe& r) {
  s.List("classes", r.classes);
  s.Choice<bool>("catalogue", r.catalogue_public, {{"public", true}});
  s.Choice<data::LetterCase>("letters", r.letters,
                             {{"lower", data::LetterCase::kLower}, {"keep", data::LetterCase::kKeep}});
  s.Text("text_column", r.text_column);
  s.Text("label_column", r.label_column);
}

}  // namespace

Result<ClassifyRecipe> ReadClassifyRecipe(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(path));
  if (json.is_object() && !IsOfClassifier(json)) {
    return InvalidData(
        path,
        ": it is the recipe of a recommender, for wisp train; one of a classifier names its classes (data.classes)");
  }
  ClassifyRecipe recipe;
  JsonSection s(path + ":", json);
  s.Text("name", recipe.name);
  s.Object("architecture",
           [&](JsonSection& inner) { ReadArchitecture(inner, {.attend = Attend::kAll}, recipe.encoder); });
  s.Object("initialisation", [&](JsonSection& inner) { ReadInitialisation(inner, recipe.initialisation); });
  s.Object("training", [&](JsonSection& inner) { ReadTraining(inner, recipe); });
  s.Object("adapter", [&](JsonSection& inner) {
    std::optional<AdapterSpec> adapter;
    ReadAdapter(inner, adapter);
    if (json.contains("adapter")) recipe.adapter = adapter;
  });
  s.Object("dp_fp", [&](JsonSection& inner) { ReadDpFp(inner, recipe); });
  s.Object("privacy", [&](JsonSection& inner) { ReadPrivacy(inner, recipe); });
  s.Object("data", [&](JsonSection& inner) { ReadData(inner, recipe); });
  WISP_RETURN_IF_ERROR(s.Finish());
  if (recipe.classes.size() < 2)
    return InvalidData(path, ": data.classes names ", recipe.classes.size(), " classes, allowed are 2 and more");
  return recipe;
}

Status OverrideTrains(const std::string& trains, TrainingOptions& o) {
  if (trains.empty()) return OkStatus();
  if (trains != "all" && trains != "blocks" && trains != "head")
    return InvalidArgument("--trains is '", trains, "', allowed are all, blocks and head");
  if (o.method == Method::kDpFp && trains != "all")
    return InvalidArgument("--trains is '", trains,
                           "', and dp-fp says by --mode what trains: aggregate the head alone, ",
                           "clipped and paper everything; leave --trains out");
  o.trained_part = trains == "all" ? TrainedPart::kAll : trains == "blocks" ? TrainedPart::kBlocks : TrainedPart::kHead;
  return OkStatus();
}

}  // namespace wisp::tools
