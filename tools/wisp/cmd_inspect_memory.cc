// wisp inspect --memory
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/inference/batch_recommender.h"
#include "runtime/model/classifier_file.h"
#include "runtime/train/dp_fp_report.h"
#include "tools/wisp/classify_recipe.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/recipe.h"

namespace wisp::tools {
namespace {

using Json = nlohmann::ordered_json;

Json MemoryJson(const InferenceMemory& m, uint64_t file_bytes) {
  return {{"file_mapped", file_bytes}, {"activations", m.activations}, {"packed_weights", m.packed_weights}, {"scores", m.scores}, {"total", m.total()}};
}

Json MemoryJson(const TrainingMemory& m, bool grows) {
  Json j = {{"weights", m.weights}, {"packed_weights", m.packed_weights}, {"optimizer_state", m.optimizer_state}, {"gradient_sums", m.gradient_sums},
            {"negatives", m.negatives}, {"activations", m.activations}, {"record_gradients", m.record_gradients}, {"variances", m.variances},
            {"lists", m.lists}, {"total", m.total()}};
  if (grows) j.update({{"growth_at_most", m.growth_at_most}, {"rows_at_most", m.rows_at_most}, {"records_at_most", m.records_at_most}});
  return j;
}

void PrintFigures(const Json& j) {
  for (const auto& [use, figures] : j.items()) {
    std::printf("%s\n", use.c_str());
    for (const auto& [part, bytes] : figures.items()) std::printf("  %-16s %12s\n", part.c_str(), bytes.is_string() ? bytes.get<std::string>().c_str() : bytes.dump().c_str());
  }
}

bool Grows(Method method) { return method == Method::kAdaFest || method == Method::kAdaFestPlus; }

// What each method needs to be told, and what says nothing about it.
Status CheckGiven(const InspectArguments& a, const TrainingOptions& o) {
  const bool names_rows = o.method == Method::kFest || o.method == Method::kAdaFestPlus;
  if (a.rank && o.method != Method::kRgp) return InvalidArgument("--rank is given, but the method is not rgp");
  if (a.rows && !names_rows) return InvalidArgument("--rows is given, but the method is neither fest nor adafest+, which alone train rows that are named");
  if (!Grows(o.method)) {
    if (!a.expected_batch && !a.noise_multiplier) return OkStatus();
    const std::string given = a.expected_batch ? "--batch" : "--noise-multiplier";
    return InvalidArgument(given + " is given, but the method is neither adafest nor adafest+, whose memory alone depends on it");
  }
  if (!(o.privacy.noise_multiplier > 0)) {
    return InvalidArgument("adafest and adafest+ need --noise-multiplier: how many rows survive that no record touches follows from it");
  }
  return a.records > 0 ? OkStatus() : InvalidArgument("adafest and adafest+ need --records: how many of them a step may draw follows from it");
}

Result<Json> PlanTraining(const InspectArguments& a, Architecture architecture) {
  TrainingOptions options;
  uint32_t num_rows = a.rows.value_or(0);
  if (!a.recipe.empty()) {
    WISP_ASSIGN_OR_RETURN(const Recipe recipe, ReadRecipe(a.recipe));
    options = recipe.training;
    options.privacy.noise_multiplier = recipe.goal.noise_multiplier.value_or(0);
    if (!a.rows) num_rows = recipe.rows.count;
    if (recipe.architecture.re_attention == ReAttention::kOn) architecture.re_attention = ReAttention::kOn;
  }
  options.num_threads = a.threads == 0 ? DefaultThreads() : a.threads;
  WISP_RETURN_IF_ERROR(OverrideMethod(a.method, options));
  if (a.rank) options.rgp.rank = *a.rank;
  if (a.expected_batch) options.expected_batch = *a.expected_batch;
  if (a.noise_multiplier) options.privacy.noise_multiplier = *a.noise_multiplier;
  WISP_RETURN_IF_ERROR(CheckGiven(a, options));
  std::vector<int32_t> rows;  // which they are does not matter, how many does
  if (options.method == Method::kFest || options.method == Method::kAdaFestPlus) {
    if (num_rows == 0 || num_rows > architecture.num_items) {
      return InvalidArgument("fest and adafest+ need --rows, how many rows of the item table are trained: " + std::to_string(num_rows) + " are given, allowed are 1 to " +
                             std::to_string(architecture.num_items));
    }
    rows.resize(num_rows);
    std::iota(rows.begin(), rows.end(), 0);
    options.sparse.rows = rows;
  }
  WISP_ASSIGN_OR_RETURN(const TrainingMemory memory, PlanTrainingMemory(architecture, a.records, options));
  Json j = MemoryJson(memory, Grows(options.method));
  if (!a.method.empty()) j["method"] = a.method;
  if (!a.recipe.empty()) j["recipe"] = a.recipe;
  j["threads"] = options.num_threads;
  return j;
}

// Training alone: nobody has planned ahead what a classifier takes to predict.
Result<Json> PlanClassifier(const InspectArguments& a) {
  if (a.recipe.empty() || !a.method.empty() || a.rank || a.rows || a.noise_multiplier) {
    return InvalidArgument(a.model + ": is a classifier; what it takes to train follows from --recipe, --records, --threads and --batch, and from nothing else");
  }
  WISP_ASSIGN_OR_RETURN(const ClassifierFile file, ClassifierFile::Open(a.model));
  WISP_ASSIGN_OR_RETURN(ClassifyRecipe recipe, ReadClassifyRecipe(a.recipe));
  recipe.options.num_threads = a.threads == 0 ? DefaultThreads() : a.threads;
  if (a.expected_batch) recipe.options.expected_batch = *a.expected_batch;
  WISP_ASSIGN_OR_RETURN(const TrainingMemory m, PlanClassificationMemory(file.description().architecture, a.records, recipe.options));
  Json j = MemoryJson(m, false);
  j.update({{"records_at_most", m.records_at_most}, {"mode", ToText(recipe.options.mode)}, {"recipe", a.recipe}, {"threads", recipe.options.num_threads}});
  return j;
}

Status PrintClassifier(const InspectArguments& a, OutputFormat format) {
  Json j;
  WISP_ASSIGN_OR_RETURN(j["training"], PlanClassifier(a));
  if (format == OutputFormat::kJson) {
    std::printf("%s\n", j.dump(2).c_str());
    return OkStatus();
  }
  PrintFigures(j);
  std::printf("bytes; exact while no step draws more than records_at_most records, which happens with a chance below %g\n", kSeldom);
  return OkStatus();
}

}  // namespace

Status InspectMemory(const InspectArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const bool is_classifier, HoldsClassifier(a.model));
  if (is_classifier) return PrintClassifier(a, format);
  const bool trains = !a.method.empty() || !a.recipe.empty();
  if (!trains && (a.rank || a.rows || a.expected_batch || a.noise_multiplier || a.records > 0)) {
    return InvalidArgument("--rank, --rows, --batch, --noise-multiplier and --records are of training: they need --method or --recipe");
  }
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(a.model));
  WISP_ASSIGN_OR_RETURN(const InferenceMemory inference, Session::PlanMemory(model));
  const BatchOptions batch{.num_threads = a.threads == 0 ? DefaultThreads() : a.threads};
  WISP_ASSIGN_OR_RETURN(const InferenceMemory beside, BatchRecommender::PlanMemory(model.architecture(), batch));
  Json j = {{"inference", MemoryJson(inference, model.size_bytes())}};
  j["batch_of_" + std::to_string(batch.rows)] = {
      {"activations", beside.activations}, {"scores", beside.scores}, {"total", beside.total()}, {"threads", batch.num_threads}};
  if (trains) {
    WISP_ASSIGN_OR_RETURN(j["training"], PlanTraining(a, model.architecture()));
  }
  if (format == OutputFormat::kJson) {
    std::printf("%s\n", j.dump(2).c_str());
    return OkStatus();
  }
  PrintFigures(j);
  std::printf("bytes; the total does not count the file, which is mapped, not copied; a batch's stands beside that of inference\n");
  if (!j.contains("training") || !j["training"].contains("growth_at_most")) return OkStatus();
  std::printf("growth_at_most stands above the total, and bounds it while no step draws more than records_at_most records or changes more than\n"
              "rows_at_most rows: each happens to a step with a chance below %g\n", kSeldom);
  return OkStatus();
}

}  // namespace wisp::tools
