// Implements `wisp inspect --memory`.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/inference/batch_recommender.h"
#include "runtime/text/classifier_session.h"
#include "runtime/model/item_texts.h"
#include "runtime/model/model_file.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/methods/dp_fp/dp_fp_report.h"
#include "runtime/train/run/fine_tune.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/device.h"
#include "tools/wisp/given_fields.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/text_tokens.h"

namespace wisp::tools {
namespace {

// Returns the memory of an app in C, which copies the names.
Json MemoryJson(const InferenceMemory& m, const ModelFile& file) {
  const size_t names = PlanItemTexts(file);
  return {{"file_mapped", file.size_bytes()},
          {"activations", m.activations},
          {"packed_weights", m.packed_weights},
          {"scores", m.scores},
          {"names", names},
          {"total", m.total() + names},
          {"for_a_cold_start", m.cold_start}};
}

Json OnDeviceJson(const InferenceMemory& m, const OpenedDevice& device) {
  return {{"weights", m.weights}, {"on_device", m.on_device}, {"device", device.description}};
}

Json MemoryJson(const TrainingMemory& m, bool grows) {
  Json j = {{"weights", m.weights},
            {"packed_weights", m.packed_weights},
            {"optimizer_state", m.optimizer_state},
            {"gradient_sums", m.gradient_sums},
            {"negatives", m.negatives},
            {"activations", m.activations},
            {"record_gradients", m.record_gradients},
            {"variances", m.variances},
            {"states", m.states},
            {"lists", m.lists},
            {"total", m.total()}};
  if (grows)
    j.update({{"growth_at_most", m.growth_at_most},
              {"rows_at_most", m.rows_at_most},
              {"records_at_most", m.records_at_most}});
  return j;
}

void PrintFigures(const Json& j) {
  for (const auto& [use, figures] : j.items()) {
    PrintText("%s\n", use.c_str());
    for (const auto& [part, bytes] : figures.items())
      PrintText("  %-16s %12s\n", part.c_str(),
                bytes.is_string() ? bytes.get<std::string>().c_str() : JsonText(bytes).c_str());
  }
}

// Refuses values that no method allows, in the words of the options.
Status CheckValues(const InspectArguments& a) {
  const std::pair<const char*, std::optional<uint32_t>> counts[] = {
      {"--batch", a.expected_batch}, {"--records", a.records}, {"--num-records-public", a.num_records_public}};
  for (const auto& [option, count] : counts) {
    if (count && *count == 0) return InvalidArgument(option, " is 0, allowed are 1 and above");
  }
  if (!a.noise_multiplier ||
      (*a.noise_multiplier >= 0x1p-20 && *a.noise_multiplier <= privacy::ExactGrid::kMaxNoiseMultiplier))
    return OkStatus();
  char given[40];
  std::snprintf(given, sizeof(given), "%g", *a.noise_multiplier);
  return InvalidArgument("--noise-multiplier is ", given, ", allowed are 9.6e-7 to 524288");
}

// Returns the declared number of records. Without a declaration it is as many as anybody may know of; 0 if that is not
// known either.
uint32_t NumRecordsPublic(const InspectArguments& a, uint32_t num_records_public) {
  return a.records.value_or(num_records_public);
}

// Refuses options that do not concern the method.
Status CheckGiven(const InspectArguments& a, const TrainingOptions& o) {
  const bool names_rows = NamesRows(o.method);
  if (a.rank && o.method != Method::kRgp) return InvalidArgument("--rank is given, but the method is not rgp");
  if (a.rows && !names_rows)
    return InvalidArgument("--rows is given, but the method is ", GetName(o.method), ": allowed is --method ",
                           ListMethods(NamesRows, " or "), ", which train a fixed set of rows");
  // On a device, no more records pass at once than a step expects.
  const bool reads_batch = !o.device.memory.is_host();
  const bool says_batch = a.expected_batch.has_value() && !reads_batch;
  if (IsAdaptive(o.method) || (!says_batch && !a.noise_multiplier && !a.num_records_public)) return OkStatus();
  const std::string given = says_batch ? "--batch" : a.noise_multiplier ? "--noise-multiplier" : "--num-records-public";
  return InvalidArgument(given, " is given, but the method is ", GetName(o.method), ": allowed is --method ",
                         ListMethods(IsAdaptive, " or "), ", whose memory depends on it");
}

// Checks the options of the methods that select rows.
Status CheckAdaptive(const InspectArguments& a, const TrainingOptions& o) {
  if (!IsAdaptive(o.method)) return OkStatus();
  if (!(o.privacy.noise_multiplier > 0)) {
    return InvalidArgument(ListMethods(IsAdaptive),
                           " need --noise-multiplier, or a recipe with an epsilon and num_records_public: the number "
                           "of rows that survive untouched follows from it");
  }
  if (NumRecordsPublic(a, o.num_records_public) > 0) return OkStatus();
  return InvalidArgument(ListMethods(IsAdaptive),
                         " need --records: how many of them a step may sample follows from it");
}

// Finds the noise for the recipe's epsilon as a run that continues the model does. The bias is kept, so that a
// histogram is paid for only if it selects rows. Without a goal or records, it fills in nothing.
Status FillInRecipeNoise(const RunSpec& recipe, const Architecture& architecture, TrainingOptions& o) {
  if (!IsAdaptive(o.method) || o.privacy.noise_multiplier > 0 || !recipe.goal.epsilon || o.num_records_public == 0)
    return OkStatus();
  WISP_RETURN_IF_ERROR(CheckPrivacyGoal(recipe.goal, o.num_records_public));
  if (o.num_steps == 0) {
    WISP_ASSIGN_OR_RETURN(o.num_steps, EpochsToSteps(recipe.epochs, o.num_records_public, o.expected_batch));
  }
  const bool selects_rows = NamesRows(o.method) && recipe.rows.source == RowSelection::Source::kPrivate;
  PrivacyGoal goal = recipe.goal;
  if (!selects_rows) goal.histogram_noise = 0;
  return Budget::Calibrate(architecture, goal, o);
}

// Returns the adapter that training makes from --lora, or that of --adapter, which is trained further.
Result<std::optional<AdapterSpec>> ChooseAdapterSpec(const InspectArguments& a, const ModelFile& model,
                                                     std::optional<AdapterSpec> of_recipe) {
  const std::optional<AdapterSpec>& own = model.architecture().adapter;
  if (own && a.lora)
    return InvalidArgument("--lora makes a new adapter and --adapter trains one further: leave one of the two out");
  if (own && of_recipe) {
    of_recipe->has_head = own->has_head;
    if (of_recipe != own)
      return InvalidArgument(a.adapter, ": is another adapter than the one of the recipe: leave one of the two out");
  }
  if (own) return own;
  if (a.lora) return std::optional(AdapterSpec{.rank = *a.lora, .alpha = static_cast<float>(*a.lora)});
  return of_recipe;
}

// Applies the options for texts, as `wisp train` reads them.
Status OverrideText(const InspectArguments& a, const ModelFile& model, const RunSpec& recipe, TrainingOptions& o) {
  if (recipe.text) o.cut_to = recipe.text->max_length;
  if (a.trains.empty() && !a.max_length) return OkStatus();
  if (!recipe.text && model.tokenizer().empty()) {
    return InvalidArgument(a.trains.empty() ? "--max-length" : "--trains", " is of texts; ", a.model,
                           " brings no tokenizer, so it learns none");
  }
  const uint32_t most = model.architecture().max_length;
  if (a.max_length && (*a.max_length == 0 || *a.max_length > most))
    return InvalidArgument("--max-length is ", *a.max_length, ", allowed are 1 to ", most,
                           ", the positions of the model");
  if (a.max_length) o.cut_to = *a.max_length;
  if (a.trains.empty()) return OkStatus();
  if (a.trains != "all" && a.trains != "blocks")
    return InvalidArgument("--trains is '", a.trains, "', allowed of a decoder are all and blocks");
  o.trained_part = a.trains == "blocks" ? TrainedPart::kBlocks : TrainedPart::kAll;
  return OkStatus();
}

Result<Json> PlanTraining(const InspectArguments& a, const ModelFile& model) {
  Architecture architecture = model.architecture();
  TrainingOptions options;
  RunSpec recipe;
  uint32_t num_rows = a.rows.value_or(0);
  if (!a.recipe.empty()) {
    WISP_ASSIGN_OR_RETURN(recipe, ReadRecipe(a.recipe));
    options = recipe.training;
    options.privacy.noise_multiplier = recipe.goal.noise_multiplier.value_or(0);
    if (!a.rows) num_rows = recipe.rows.count;
    if (recipe.architecture.re_attention == ReAttention::kOn) architecture.re_attention = ReAttention::kOn;
  }
  WISP_RETURN_IF_ERROR(OverrideText(a, model, recipe, options));
  WISP_ASSIGN_OR_RETURN(architecture.adapter, ChooseAdapterSpec(a, model, recipe.adapter));
  if (a.recompute_blocks) options.recompute_blocks = true;
  options.num_threads = a.threads == 0 ? DefaultThreads() : a.threads;
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, OpenDevice(a.device, DeviceUse::kTraining));
  options.device = device.device;
  WISP_RETURN_IF_ERROR(OverrideMethod(a.method, options));
  if (a.rank) options.rgp.rank = *a.rank;
  if (a.expected_batch) options.expected_batch = *a.expected_batch;
  if (a.noise_multiplier) options.privacy.noise_multiplier = *a.noise_multiplier;
  if (a.num_records_public) options.num_records_public = *a.num_records_public;
  WISP_RETURN_IF_ERROR(CheckGiven(a, options));
  WISP_RETURN_IF_ERROR(FillInRecipeNoise(recipe, architecture, options));
  WISP_RETURN_IF_ERROR(CheckAdaptive(a, options));
  std::vector<int32_t> rows;  // only their number matters
  if (NamesRows(options.method)) {
    if (num_rows == 0 || num_rows > architecture.num_items) {
      return InvalidArgument(ListMethods(NamesRows),
                             " need --rows, how many rows of the item table are trained: ", num_rows,
                             " are given, allowed are 1 to ", architecture.num_items);
    }
    rows.resize(num_rows);
    std::iota(rows.begin(), rows.end(), 0);
    options.sparse.rows = rows;
  }
  const uint32_t records = NumRecordsPublic(a, options.num_records_public);
  WISP_RETURN_IF_ERROR(Validate(architecture));
  options.base = BaseBeside(model, architecture, options);
  WISP_ASSIGN_OR_RETURN(const TrainingMemory memory, PlanTrainingMemory(architecture, records, options));
  Json j = MemoryJson(memory, IsAdaptive(options.method));
  if (!a.method.empty()) j["method"] = a.method;
  if (!a.recipe.empty()) j["recipe"] = a.recipe;
  if (!device.is_processor()) j["device"] = device.description, j["batch"] = options.expected_batch;
  j.update({{"threads", options.num_threads}, {"records", records}});
  if (IsAdaptive(options.method)) {
    j["num_records_public"] = options.num_records_public != 0 ? options.num_records_public : records;
    j["noise_multiplier"] = options.privacy.noise_multiplier;
  }
  return j;
}

// Plans a session on a device, and beside it a batch, which XNNPACK does not support.
Status PlanInferenceOnDevice(const OpenedDevice& device, Backend backend, const ModelFile& model, Json& j) {
  WISP_ASSIGN_OR_RETURN(const InferenceMemory inference,
                        Session::PlanMemory(model, {.backend = backend, .device = device.device}));
  j["inference"] = MemoryJson(inference, model);
  j["inference"].update(OnDeviceJson(inference, device));
  const BatchOptions batch;
  WISP_ASSIGN_OR_RETURN(const InferenceMemory beside,
                        BatchRecommender::PlanMemory(model.architecture(), batch, device.device));
  j["batch_of_" + std::to_string(batch.rows)] = {{"activations", beside.activations},
                                                 {"scores", beside.scores},
                                                 {"total", beside.total()},
                                                 {"on_device", beside.on_device}};
  return OkStatus();
}

Status PlanInference(const InspectArguments& a, const ModelFile& model, Json& j) {
  const std::string name = a.backend.empty() ? "simd" : a.backend;
  WISP_ASSIGN_OR_RETURN(const Backend backend, BackendNamed(name));
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, OpenDevice(a.device));
  if (!device.is_processor()) return PlanInferenceOnDevice(device, backend, model, j);
  WISP_ASSIGN_OR_RETURN(const InferenceMemory inference, Session::PlanMemory(model, backend));
  j["inference"] = MemoryJson(inference, model);
  j["inference"]["backend"] = name;
  if (backend == Backend::kXnnpack) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const InferenceMemory of_two, Session::PlanMemory(model, backend, /*num_threads=*/2));
  j["inference"]["another_thread"] = of_two.total() - inference.total();
  const BatchOptions batch{.num_threads = a.threads == 0 ? DefaultThreads() : a.threads};
  WISP_ASSIGN_OR_RETURN(const InferenceMemory beside,
                        BatchRecommender::PlanMemory(model.architecture(), batch, backend));
  j["batch_of_" + std::to_string(batch.rows)] = {{"activations", beside.activations},
                                                 {"scores", beside.scores},
                                                 {"total", beside.total()},
                                                 {"threads", batch.num_threads},
                                                 {"backend", name}};
  return OkStatus();
}

// Returns the architecture that `wisp train --labelled` makes of an encoder or a classifier.
Architecture TrainedBeside(const ModelFile& base, const RunSpec& recipe, const std::optional<AdapterSpec>& adapter) {
  Architecture a = base.architecture();
  if (!base.is_classifier()) a = WithClasses(a, static_cast<uint32_t>(recipe.classes.size()));
  if (!adapter || a.adapter) return a;
  a.adapter = adapter;
  a.adapter->has_head = !base.is_classifier();
  return a;
}

// Plans a session on the processor, and the memory of one more thread.
Result<Json> PlanClassifierInference(const ModelFile& file) {
  WISP_ASSIGN_OR_RETURN(const auto one, ClassifierSession::PlanBytes(file.architecture(), 1, file.tensors()));
  WISP_ASSIGN_OR_RETURN(const auto two, ClassifierSession::PlanBytes(file.architecture(), 2, file.tensors()));
  return Json{{"file_mapped", file.size_bytes()},
              {"activations", one.total - one.packed_weights},
              {"packed_weights", one.packed_weights},
              {"total", one.total},
              {"another_thread", two.total - one.total}};
}

// Applies --trains and --max-length as `wisp train --labelled` reads them.
Status OverrideClassifier(const InspectArguments& a, const ModelFile& file, TrainingOptions& o) {
  WISP_RETURN_IF_ERROR(OverrideTrains(a.trains, o));
  if (!a.max_length) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const TextTokens tokens, TextTokens::Of(file));
  WISP_RETURN_IF_ERROR(tokens.CheckRoom("--max-length", *a.max_length, file.architecture().max_length));
  o.cut_to = *a.max_length;
  return OkStatus();
}

Result<Json> PlanClassifier(const InspectArguments& a, const ModelFile& file) {
  const std::string is = a.model + ": is a classifier or an encoder";
  if (!a.method.empty() || a.rank || a.rows || a.noise_multiplier || !a.backend.empty()) {
    return InvalidArgument(
        is,
        ", of which training is planned from --recipe, --records, --num-records-public, "
        "--threads, --batch, --lora, --adapter, --trains, --max-length and --recompute-blocks; leave "
        "out --method, --rank, --rows, --noise-multiplier and --backend");
  }
  WISP_ASSIGN_OR_RETURN(RunSpec recipe, ReadClassifyRecipe(a.recipe));
  recipe.training.num_threads = a.threads == 0 ? DefaultThreads() : a.threads;
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, OpenDevice(a.device, DeviceUse::kTraining));
  recipe.training.device = device.device;
  if (a.expected_batch) recipe.training.expected_batch = *a.expected_batch;
  if (a.num_records_public) recipe.training.num_records_public = *a.num_records_public;
  const uint32_t records = NumRecordsPublic(a, recipe.training.num_records_public);
  if (records == 0)
    return InvalidArgument(is, ", which needs --records: how many of them a step may sample follows from it");
  const uint32_t known = recipe.training.num_records_public != 0 ? recipe.training.num_records_public : records;
  if (recipe.training.expected_batch > known) {
    return InvalidArgument("`expected_batch` is ", recipe.training.expected_batch, ", more than the ", known,
                           " records; allowed are 1 to ", known);
  }
  WISP_RETURN_IF_ERROR(OverrideClassifier(a, file, recipe.training));
  WISP_ASSIGN_OR_RETURN(const auto adapter, ChooseAdapterSpec(a, file, recipe.adapter));
  const Architecture architecture = TrainedBeside(file, recipe, adapter);
  WISP_RETURN_IF_ERROR(Validate(architecture));
  if (a.recompute_blocks) recipe.training.recompute_blocks = true;
  recipe.training.base = BaseBeside(file, architecture, recipe.training);
  WISP_ASSIGN_OR_RETURN(const TrainingMemory m, PlanTrainingMemory(architecture, records, recipe.training));
  Json j = MemoryJson(m, false);
  if (!device.is_processor()) j["device"] = device.description, j["batch"] = recipe.training.expected_batch;
  if (m.records_at_most > 0) j["records_at_most"] = m.records_at_most;
  j.update({{"mode", recipe.training.method == Method::kDpFp ? ToText(recipe.training.dp_fp.mode)
                                                             : GetName(recipe.training.method)},
            {"recipe", a.recipe},
            {"threads", recipe.training.num_threads},
            {"records", records},
            {"num_records_public", known}});
  return j;
}

Status CheckWithoutRecipe(const InspectArguments& a) {
  if (!a.lora && !a.recompute_blocks && a.trains.empty() && !a.max_length && !a.records && !a.num_records_public &&
      !a.expected_batch && a.method.empty() && !a.rank && !a.rows && !a.noise_multiplier && a.backend.empty() &&
      a.device.name == "cpu")
    return OkStatus();
  return InvalidArgument(a.model,
                         ": is a classifier or an encoder, and these options are of its training, or of recommenders: "
                         "give --recipe, the one of `wisp train --labelled`, and --records where it has no "
                         "num_records_public");
}

Status PrintClassifier(const InspectArguments& a, const ModelFile& file, OutputFormat format) {
  Json j;
  WISP_ASSIGN_OR_RETURN(j["inference"], PlanClassifierInference(file));
  if (a.recipe.empty()) {
    WISP_RETURN_IF_ERROR(CheckWithoutRecipe(a));
  } else {
    WISP_ASSIGN_OR_RETURN(j["training"], PlanClassifier(a, file));
  }
  if (format == OutputFormat::kJson) {
    PrintJson(j);
    return OkStatus();
  }
  PrintFigures(j);
  if (a.recipe.empty()) {
    PrintText("bytes; the total does not count the file, which is mapped, not copied\n");
    return OkStatus();
  }
  if (!j["training"].contains("records_at_most")) {
    PrintText("bytes; exact, however many records a step samples\n");
    return OkStatus();
  }
  PrintText(
      "bytes; exact while no step samples more than records_at_most records, which happens with a chance below %g\n",
      kSeldom);
  return OkStatus();
}

}  // namespace

Status InspectMemory(const InspectArguments& a, OutputFormat format) {
  WISP_RETURN_IF_ERROR(CheckValues(a));
  WISP_ASSIGN_OR_RETURN(const ModelFile model,
                        ModelFile::OpenWithAdapter(a.model, a.adapter, Verify::kStructure, Accept::kAny));
  if (model.is_classifier() || model.architecture().head.kind == HeadKind::kEmbedding)
    return PrintClassifier(a, model, format);
  const bool trains = !a.method.empty() || !a.recipe.empty();
  if (!trains && (a.lora || a.recompute_blocks || !a.trains.empty() || a.max_length || a.rank || a.rows ||
                  a.expected_batch || a.noise_multiplier || a.records || a.num_records_public)) {
    return InvalidArgument(
        "--rank, --rows, --batch, --noise-multiplier, --records, --num-records-public, --lora, --trains, --max-length "
        "and --recompute-blocks are of training: they need --method or --recipe");
  }
  Json j;
  WISP_RETURN_IF_ERROR(PlanInference(a, model, j));
  if (trains) {
    WISP_ASSIGN_OR_RETURN(j["training"], PlanTraining(a, model));
  }
  if (format == OutputFormat::kJson) {
    PrintJson(j);
    return OkStatus();
  }
  PrintFigures(j);
  PrintText(
      "bytes; the total does not count the file, which is mapped, not copied; a batch's stands beside that of "
      "inference\n"
      "names are the items' keys and names, which the C interface copies; this program reads them in the file\n");
  if (!j.contains("training") || !j["training"].contains("growth_at_most")) return OkStatus();
  PrintText(
      "growth_at_most stands above the total, and bounds it while no step samples more than records_at_most records or "
      "changes more than\n"
      "rows_at_most rows: each happens to a step with a chance below %g\n",
      kSeldom);
  return OkStatus();
}

}  // namespace wisp::tools
