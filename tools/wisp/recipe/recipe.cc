#include "tools/wisp/recipe/recipe.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/statement.h"
#include "tools/wisp/recipe/recipe_section.h"

namespace wisp::tools {

void ReadInitialisation(JsonSection& s, InitialisationOptions& o) {
  s.Number("table_deviation", o.table_deviation, 0, 100);
  s.Number("position_deviation", o.position_deviation, 0, 100);
  s.Number("matrix_gain", o.matrix_gain, 0, 100);
}

void ReadOptimizer(JsonSection& s, OptimizerOptions& o) {
  s.Choice<OptimizerKind>(
      "kind", o.kind, {{"adam", OptimizerKind::kAdam}, {"adamw", OptimizerKind::kAdamW}, {"sgd", OptimizerKind::kSgd}});
  s.Number("learning_rate", o.learning_rate, 1e-12, 1e3);
  s.Number("beta1", o.beta1, 0, 0.999999);
  s.Number("beta2", o.beta2, 0, 0.999999);
  s.Number("epsilon", o.epsilon, 1e-20, 0.1);
  s.Number("momentum", o.momentum, 0, 0.999999);
  s.Number("weight_decay", o.weight_decay, 0, 0.999999);
  s.Number("warmup_steps", o.warmup_steps, 0, 1e9);
  s.Choice<Decay>("decay", o.decay, {{"constant", Decay::kConstant}, {"linear", Decay::kLinear}});
  s.Number("final_fraction", o.final_fraction, 0, 1);
}

void ReadDropout(JsonSection& s, DropoutRates& rates) {
  s.Number("embedding", rates.embedding, 0, 0.99);
  s.Number("attention", rates.attention, 0, 0.99);
  s.Number("residual", rates.residual, 0, 0.99);
}

void ReadTrainedPart(JsonSection& s, TrainedPart& part) {
  s.Choice<TrainedPart>("trains", part,
                        {{"all", TrainedPart::kAll}, {"blocks", TrainedPart::kBlocks}, {"head", TrainedPart::kHead}});
}

void ReadClipping(JsonSection& s, PrivateTraining& p) {
  s.Choice<ClipKind>("clipping", p.clipping, {{"flat", ClipKind::kFlat}, {"automatic", ClipKind::kAutomatic}});
  s.Number("clipping_norm", p.clipping_norm, 1e-9, 1e9);
  s.Choice<NormForm>("norm_form", p.norm_form,
                     {{"automatic", NormForm::kAutomatic},
                      {"formed", NormForm::kFormed},
                      {"gram", NormForm::kGram},
                      {"integers", NormForm::kIntegers}});
}

void ReadRgp(JsonSection& s, RgpOptions& o) {
  s.Number("rank", o.rank, 1, kMaxWidth);
  s.Number("power_iterations", o.power_iterations, 1, 100);
  s.Number("warmup_steps", o.warmup_steps, 0, 1e9);
  for (const auto& [key, value] : {std::pair{"item_tables", &o.item_tables}, std::pair{"positions", &o.positions},
                                   std::pair{"matrices", &o.matrices}}) {
    s.Choice<RgpTrain>(key, *value,
                       {{"frozen", RgpTrain::kFrozen}, {"projected", RgpTrain::kProjected}, {"full", RgpTrain::kFull}});
  }
  s.Choice<RgpTrain>("vectors", o.vectors, {{"frozen", RgpTrain::kFrozen}, {"full", RgpTrain::kFull}});
}

namespace {

void ReadTraining(JsonSection& s, Recipe& r) {
  TrainingOptions& o = r.training;
  s.ChoiceOf<Method>("method", o.method, kMethodNames);
  s.Choice<Sampling>("sampling", o.sampling, {{"poisson", Sampling::kPoisson}, {"shuffled", Sampling::kShuffled}});
  s.Choice<LossWeighting>(
      "loss", o.loss, {{"record_mean", LossWeighting::kRecordMean}, {"position_mean", LossWeighting::kPositionMean}});
  s.Number("epochs", r.epochs, 0, 1e6);
  s.Number("steps", o.num_steps, 0, 1e12);
  s.Number("expected_batch", o.expected_batch, 1, 4e9);
  s.Number("num_records_public", o.num_records_public, 1, 4e9);
  s.Number("seed", o.seed, 0, 1.8e19);
  s.Number("ema_decay", o.ema_decay, 0, 0.999999);
  s.Object("optimizer", [&](JsonSection& inner) { ReadOptimizer(inner, o.optimizer); });
  s.Number("num_negatives", o.num_negatives, 0, kMaxItems);
  s.Number("rows_at_once", o.rows_at_once, 0, 1 << 20);
  s.Flag("recompute_blocks", o.recompute_blocks);
  s.Object("sparse", [&](JsonSection& inner) {
    inner.Choice<RowSelection::Source>(
        "rows_from", r.rows.source,
        {{"private", RowSelection::Source::kPrivate}, {"public", RowSelection::Source::kPublic}});
    inner.Number("rows", r.rows.count, 1, kMaxItems);
    inner.Number("map_clipping_norm", o.sparse.map_clipping_norm, 1e-6, 1e6);
    inner.Number("map_threshold", o.sparse.map_threshold, 1e-9, 1e9);
    inner.Number("map_noise_ratio", o.sparse.map_noise_ratio, 1e-3, 1e3);
  });
  s.Object("rgp", [&](JsonSection& inner) { ReadRgp(inner, o.rgp); });
  s.Object("re_attention", [&](JsonSection& inner) {
    using Source = ReAttentionOptions::Source;
    inner.Choice<Source>("deviations", o.re_attention.source,
                         {{"optimizer", Source::kOptimizer}, {"printed", Source::kPrinted}});
    inner.Number("scale", o.re_attention.scale, 0, 1e6);
  });
  s.Object("dropout", [&](JsonSection& inner) { ReadDropout(inner, o.dropout); });
  ReadTrainedPart(s, o.trained_part);
}

void ReadPrivacy(JsonSection& s, Recipe& r) {
  PrivateTraining& p = r.training.privacy;
  s.Number("epsilon", r.goal.epsilon, privacy::kSmallestTarget, privacy::kLargestTarget);
  s.Number("noise_multiplier", r.goal.noise_multiplier, 1e-6, 1e6);
  s.Number("delta", r.goal.delta, 1e-300, 0.5);
  s.Flag("allow_delta_of_one_record", r.goal.allow_delta_of_one_record);
  ReadClipping(s, p);
  s.Number("histogram_noise", r.histogram_noise, 0, 1e5);
  s.Number("steps_per_charge", p.steps_per_charge, 1, 1e9);
  s.Text("uncharged_tuning", r.uncharged_tuning);
  using privacy::PrivacyUnit;
  s.Choice<PrivacyUnit>("unit", r.unit,
                        {{"user", PrivacyUnit::kUser},
                         {"session", PrivacyUnit::kSession},
                         {"day", PrivacyUnit::kDay},
                         {"interaction", PrivacyUnit::kInteraction}});
  r.unit_chosen = s.Any("unit") != nullptr;
  s.Number("session_gap", r.session_gap, 1, static_cast<double>(data::kMaxSessionGap));
  s.Number("times_per_second", r.times_per_second, 1, 1e9);
}

void ReadData(JsonSection& s, Recipe& r) {
  s.Number("min_user_events", r.min_user_events, 1, 1e9);
  s.Number("min_item_events", r.min_item_events, 1, 1e9);
  s.Choice<Recipe::Catalogue>("catalogue", r.catalogue, {{"public", Recipe::Catalogue::kPublic}});
  s.Choice<HoldOut>(
      "hold_out", r.hold_out,
      {{"nothing", HoldOut::kNothing}, {"test", HoldOut::kTest}, {"validation_and_test", HoldOut::kValidationAndTest}});
  s.Flag("allow_seen", r.allow_seen);
}

void ReadText(JsonSection& s, TextRecipe& t) {
  std::string record = "line";
  s.Text("record", record);
  const Result<data::TextUnit> unit = data::ParseTextUnit(s.where() + ".record", record);
  if (!unit.ok()) return s.Fail(InvalidData(unit.status().message()));
  t.unit = *unit;
  s.Choice<std::string>("tokenizer", t.tokenizer, {{"bytes", "bytes"}});
  s.Number("max_length", t.max_length, 1, kMaxLength);
  s.Number("hold_out_share", t.hold_out_share, 0, 0.9);
}

}  // namespace

Recipe TextDefaults() {
  Recipe r;
  r.text = TextRecipe();
  r.epochs = 3;
  r.training.expected_batch = 64;
  r.training.optimizer = {.kind = OptimizerKind::kAdamW, .learning_rate = 2e-4f, .decay = Decay::kLinear};
  r.training.privacy.steps_per_charge = 10;
  return r;
}

bool IsOfClassifier(const nlohmann::json& json) {
  return json.is_object() && (json.contains("dp_fp") ||
                              (json.contains("data") && json["data"].is_object() && json["data"].contains("classes")));
}

Status CheckTuning(const std::string& declared) {
  return privacy::CheckTuning(
      "the tuning that is declared (--uncharged-tuning, or privacy.uncharged_tuning in a recipe)", declared);
}

Result<Recipe> ReadRecipe(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(path));
  if (IsOfClassifier(json))
    return InvalidData(path, ": it is the recipe of a classifier, for wisp classify train and wisp-lab audit step");
  return ParseRecipe(path + ":", json);
}

constexpr size_t kMaxDepth = 32;  // depth of nested objects and lists; a recipe has 4

Result<nlohmann::json> ReadJson(const std::string& path) {
  std::ifstream file(path);
  if (!file) return IoError(path, ": cannot be opened: ", std::strerror(errno));
  std::stringstream text;
  text << file.rdbuf();
  try {
    size_t deepest = 0;
    std::vector<std::set<std::string>> keys(kMaxDepth + 2);
    std::string twice;
    const auto note = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
      deepest = std::max(deepest, static_cast<size_t>(depth));
      if (deepest > kMaxDepth) return false;
      auto& seen = keys[static_cast<size_t>(depth)];
      if (event == nlohmann::json::parse_event_t::object_start) keys[static_cast<size_t>(depth) + 1].clear();
      if (event == nlohmann::json::parse_event_t::key && !seen.insert(parsed.get<std::string>()).second)
        twice = parsed.get<std::string>();
      return true;
    };
    nlohmann::json json = nlohmann::json::parse(text.str(), note);
    if (deepest > kMaxDepth)
      return InvalidData(path, ": objects lie deeper than ", kMaxDepth, " in each other, which is allowed");
    if (!twice.empty())
      return Readable(InvalidData(path, ": the key '", twice, "' is there twice in one object; allowed is once"));
    return json;
  } catch (const nlohmann::json::exception& error) {
    // The library puts its own name in brackets before the sentence.
    const std::string sentence = error.what();
    const size_t end = sentence.starts_with("[") ? sentence.find("] ") : std::string::npos;
    return Readable(
        InvalidData(path, ": not JSON: ", (end == std::string::npos ? sentence : sentence.substr(end + 2))));
  }
}

Result<Recipe> ParseRecipe(const std::string& where, const nlohmann::json& json) {
  Recipe recipe;
  JsonSection s(where, json);
  s.Text("name", recipe.name);
  s.Object("architecture", [&](JsonSection& inner) {
    ReadArchitecture(inner, {}, recipe.architecture);
    if (!json.contains("architecture")) return;
    for (const auto& [key, value] : json["architecture"].items()) recipe.names_architecture.push_back(key);
  });
  s.Object("initialisation", [&](JsonSection& inner) { ReadInitialisation(inner, recipe.initialisation); });
  s.Object("training", [&](JsonSection& inner) { ReadTraining(inner, recipe); });
  s.Object("adapter", [&](JsonSection& inner) {
    std::optional<AdapterSpec> adapter;
    ReadAdapter(inner, adapter);
    if (json.contains("adapter")) recipe.adapter = adapter;
  });
  s.Object("privacy", [&](JsonSection& inner) { ReadPrivacy(inner, recipe); });
  s.Object("data", [&](JsonSection& inner) { ReadData(inner, recipe); });
  s.Object("text", [&](JsonSection& inner) {
    TextRecipe text;
    ReadText(inner, text);
    if (json.contains("text")) recipe.text = text;
  });
  WISP_RETURN_IF_ERROR(s.Finish());
  using privacy::PrivacyUnit;
  if (recipe.text && recipe.unit_chosen && recipe.unit != PrivacyUnit::kUser &&
      recipe.unit != PrivacyUnit::kInteraction)
    return InvalidData(where, " privacy.unit is ", privacy::ToText(recipe.unit),
                       ", allowed are interaction and user: the records are texts");
  return recipe;
}

Status CheckPublicCatalogue(const Recipe& recipe) {
  for (const auto& [name, count] :
       {std::pair{"min_item_events", recipe.min_item_events}, std::pair{"min_user_events", recipe.min_user_events}}) {
    if (count <= 1) continue;
    return PrivacyRefused("data.", name, " is ", count,
                          ", allowed is 1 where the list of items is taken from the data: which items are in it would "
                          "follow from how much a user did, which no declaration covers");
  }
  return OkStatus();
}

}  // namespace wisp::tools
