// Implements `wisp new` and `wisp train`.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/date.h"
#include "runtime/core/file.h"
#include "runtime/core/platform.h"
#include "runtime/core/text.h"
#include "runtime/model/catalogue.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger_statement.h"
#include "runtime/privacy/statement.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/deployment/deployment_data.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/replaced.h"
#include "tools/wisp/training_run.h"

namespace wisp::tools {
namespace {

// One training command from start to end.
class TrainCommand {
 public:
  TrainCommand(const TrainArguments& arguments, OutputFormat format, RunSpec recipe)
      : a_(arguments), format_(format), run_("train", arguments, std::move(recipe)) {}

  Status Run() {
    run_.written = [this](const JobResult& result) { return WriteStatement(result); };
    WISP_ASSIGN_OR_RETURN(const JobResult result, run_.Run());
    Print(result);
    return OkStatus();
  }

 private:
  bool is_private() const { return run_.is_private(); }
  // The exposure that this run's epsilon leaves out; empty if it covers everything.
  std::string Caveat() const { return StartInWords(run_.base(), run_.Dataset(), a_.public_datasets); }

  Status WriteStatement(const JobResult& r) {
    if (!is_private() || a_.privacy_json.empty()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(recipe_.goal.delta));
    WISP_ASSIGN_OR_RETURN(privacy::PrivacyStatement s,
                          privacy::MakeRunStatement(run_.ledger(), FileName(a_.ledger), delta, r.run, r.length()));
    s.created_by = "wisp " + Version();
    WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(a_.privacy_json));
    const std::string text = privacy::ToJson(s);
    WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(text))));
    return file.Commit();
  }

  void Print(const JobResult& r) {
    nlohmann::ordered_json j = {{"model", a_.out},
                                {"records", r.num_records},
                                {"steps", r.num_steps},
                                {"seconds", r.seconds},
                                {"planned_bytes", r.planned_bytes}};
    if (!run_.device().is_processor()) j["device"] = run_.device().description;
    if (r.resumed_from > 0) j["resumed_from"] = r.resumed_from;
    if (!r.ended_early.empty()) j["steps_planned"] = r.planned_steps, j["ended_early"] = r.ended_early;
    if (!r.save_failure.empty()) j["save_failure"] = r.save_failure;
    if (is_private()) {
      j["noise_multiplier"] = r.noise_multiplier;
      j["epsilon"] = r.epsilon ? nlohmann::ordered_json(*r.epsilon) : nlohmann::ordered_json();
      j["delta"] = recipe_.goal.delta;
      j["records_dropped"] = r.num_dropped;
      AddGradients(r.seen, j);
      j["everything_together"] = SpentAsJson(run_.ledger(), recipe_.goal.delta);
      j["caveat"] = Caveat();
    }
    for (const auto& [name, quality] : {std::pair{"validation", r.validation}, std::pair{"test", r.test}}) {
      if (quality)
        j[name] = {{"ndcg@10", quality->ndcg_at_10}, {"hit@10", quality->hit_at_10}, {"users", quality->num_users}};
    }
    if (run_.is_text()) {
      j["record"] = data::ToText(recipe_.text->unit);
      j["records_dropped"] = r.num_dropped + run_.texts().sequences.num_dropped;
    }
    if (const auto& held_out = run_.text_quality()) j["test"] = ToJson(*held_out);
    j["not_private"] = is_private() ? NotPrivate(j) : ListFigureNames(j);
    if (format_ == OutputFormat::kJson) {
      PrintJson(j);
      return;
    }
    PrintText("%s: %llu steps over %llu records in %.1f s\n", OneLine(a_.out).c_str(),
              static_cast<unsigned long long>(r.num_steps), static_cast<unsigned long long>(r.num_records), r.seconds);
    if (!r.ended_early.empty()) PrintText("%s\n", r.ended_early.c_str());
    if (is_private()) {
      PrintText("privacy: %s\n",
                r.epsilon ? ("epsilon " + privacy::EpsilonText(*r.epsilon) + " at delta " + j["delta"].dump() +
                             ", noise multiplier " + privacy::DoubleText(r.noise_multiplier) +
                             (Caveat().empty() ? "" : "; " + Caveat()))
                                .c_str()
                          : "noise: reproducible, no guarantee");
      const std::string spent = SpentInWords(run_.ledger(), recipe_.goal.delta);
      if (!spent.empty()) PrintText("spent on this data, everything together: %s\n", spent.c_str());
    }
    if (r.test) {
      PrintText("test: NDCG@10 %.4f, HIT@10 %.4f over %llu users\n", r.test->ndcg_at_10, r.test->hit_at_10,
                static_cast<unsigned long long>(r.test->num_users));
    }
    if (run_.is_text())
      PrintText("one record: %s; what is protected is that, not who wrote several\n", run_.record().InWords().c_str());
    if (const auto& held_out = run_.text_quality()) PrintText("held out: %s\n", InWords(*held_out).c_str());
    PrintText("%s\n", is_private() ? NotPrivateInWords(j).c_str()
                                   : "not private: no guarantee; local only: the model, and every figure above");
    const std::string ledger = LedgerPath({.data = a_.data});
    if (!is_private() && !a_.data.path.empty() && platform::IsThere(ledger))
      PrintText("not covered: the ledger %s states nothing about this model\n", OneLine(ledger).c_str());
    if (!recipe_.architecture.adapter) return;
    const char* use = run_.is_text() ? "generate --prompt TEXT" : "recommend --history ITEMS";
    PrintText("%s\n", AdapterInWords(use, a_.model, a_.out).c_str());
  }

  const TrainArguments& a_;
  OutputFormat format_;
  TrainingRun run_;
  const RunSpec& recipe_ = run_.recipe();
};

}  // namespace

Status Train(const TrainArguments& arguments, OutputFormat format) {
  if (!arguments.labelled.empty()) return TrainLabelled(arguments, format);
  WISP_ASSIGN_OR_RETURN(RunSpec recipe, ReadGivenRecipe(arguments));
  WISP_RETURN_IF_ERROR(CheckOptions(arguments, recipe));
  // Outputs that cannot be written are found before anything is spent.
  const TrainArguments& a = arguments;
  // A model may be replaced by the one that is fine-tuned from it.
  const NamedFile recipe_file{"--recipe", a.recipe}, data{"--data", a.data.path}, names{"--item-names", a.item_names},
      features{"--item-features", a.item_features}, texts{"--texts", a.texts}, tokenizer{"--tokenizer", a.tokenizer},
      ledger{"--ledger", a.ledger}, anchor{"--anchor", a.anchor.file};
  const NamedFile out{"--out", a.out}, model{"--model", a.model}, adapter{"--adapter", a.adapter},
      statement{"--privacy-json", a.privacy_json}, checkpoint{"--checkpoint", a.checkpoint};
  for (const NamedFile& read : {data, texts}) WISP_RETURN_IF_ERROR(CheckApart(ledger, read));
  WISP_RETURN_IF_ERROR(
      CheckOutputFile(FileKind::kModel, out,
                      {recipe_file, data, texts, tokenizer, names, features, ledger, anchor, statement, checkpoint}));
  WISP_RETURN_IF_ERROR(CheckOutputFile(
      FileKind::kJson, statement,
      {recipe_file, data, texts, tokenizer, names, features, ledger, anchor, model, adapter, checkpoint}));
  WISP_RETURN_IF_ERROR(
      CheckOutput(checkpoint, {recipe_file, data, texts, tokenizer, names, features, ledger, anchor, model, adapter}));
  return TrainCommand(arguments, format, std::move(recipe)).Run();
}

// Records that there is no data behind the weights. Without an entry, nothing would be known about the model's origin.
ProvenanceEntry RandomStart(const NewArguments& a) {
  std::string items;
  if (!a.data.path.empty())
    items = "; the list of items is that of '" + FileName(a.data.path) + "', which was declared public";
  if (!a.item_features.empty())
    items = "; the items and their features are those of '" + FileName(a.item_features) + "', which is public";
  return {.description = "random weights, from no data" + items,
          .mechanisms = {"random weights, the same whatever the data"},
          .epsilon = 0,
          .noise = NoiseOrigin::kSecure,
          .date = Today()};
}

// The items of the data become part of the file: nothing protects a user who is the only one with an item.
Status CheckPublicItems(const NewArguments& a, const RunSpec& recipe) {
  if (a.catalogue != "public" && recipe.catalogue != RunSpec::Catalogue::kPublic) {
    return PrivacyRefused("the model would list the items of ", a.data.path,
                          "; an item that only one user has tells what that user did: declare the list of "
                          "items public (--catalogue public, or \"catalogue\": \"public\" under data), or make a model "
                          "without data, with --num-items");
  }
  return CheckPublicCatalogue(recipe);
}

Status New(const NewArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(RunSpec recipe, ReadRecipe(a.recipe));
  if (recipe.text)
    return Unsupported(a.recipe, ": it is a recipe of texts, whose model gets a tokenizer: wisp train makes one");
  WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kModel, {"--out", a.out},
                                       {{"--recipe", a.recipe},
                                        {"--data", a.data.path},
                                        {"--item-names", a.item_names},
                                        {"--item-features", a.item_features}}));
  ModelContents contents;
  ItemFeatures features;
  if (!a.item_features.empty() && (!a.data.path.empty() || a.num_items > 0))
    return InvalidArgument("--item-features names the items, and so does ",
                           a.data.path.empty() ? "--num-items" : "--data", ": choose one");
  if (!a.data.path.empty()) WISP_RETURN_IF_ERROR(CheckPublicItems(a, recipe));
  if (!a.item_features.empty()) {
    WISP_ASSIGN_OR_RETURN(features, ReadItemFeatures(a.item_features));
    contents.item_keys = features.keys;
    recipe.architecture.num_items = static_cast<uint32_t>(features.keys.size());
    recipe.architecture.item_features = features.count;
  } else if (!a.data.path.empty()) {
    WISP_ASSIGN_OR_RETURN(data::ReadResult data, ReadData(a.data, {}, nullptr));
    contents.item_keys = std::move(data.sequences.item_keys);
    recipe.architecture.num_items = static_cast<uint32_t>(contents.item_keys.size());
  } else {
    recipe.architecture.num_items = a.num_items;
  }
  WISP_RETURN_IF_ERROR(Validate(recipe.architecture));
  WISP_ASSIGN_OR_RETURN(contents.item_names, ReadItemNames(a.item_names, contents.item_keys));
  std::vector<float> weights(FlatSize(ListParameters(recipe.architecture)));
  auto random = privacy::RandomStream::Reproducible(recipe.training.seed, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(recipe.architecture, recipe.initialisation, random, weights);
  if (!features.keys.empty()) {
    const std::vector<ParameterSpec> parameters = ListParameters(recipe.architecture);
    std::copy(features.values.begin(), features.values.end(),
              weights.begin() + static_cast<ptrdiff_t>(
                                    parameters[RequireParameter(parameters, ParameterRole::kItemFeatures)].offset));
    RowsFromFeatures(recipe.architecture, 0, weights);
  }
  contents.architecture = recipe.architecture;
  contents.weights = weights;
  contents.allow_seen = recipe.allow_seen.value_or(false);
  contents.provenance.push_back(RandomStart(a));
  contents.description = recipe.name;
  contents.created_by = "wisp " + Version();
  WISP_RETURN_IF_ERROR(WriteModel(a.out, contents));
  if (format == OutputFormat::kJson) {
    PrintJson(nlohmann::ordered_json(
        {{"model", a.out}, {"items", recipe.architecture.num_items}, {"floats", weights.size()}}));
  } else {
    PrintText("%s: untrained, %u items, %zu weights\n", OneLine(a.out).c_str(), recipe.architecture.num_items,
              weights.size());
  }
  return OkStatus();
}

}  // namespace wisp::tools
