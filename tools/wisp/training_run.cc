#include "tools/wisp/training_run.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/text/texts.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/statement.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/deployment/duration.h"
#include "tools/wisp/device.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/recipe_section.h"

namespace wisp::tools {
namespace {

// Applies options that only texts have. CheckOptions has checked them.
void OverrideText(const TrainArguments& a, RunSpec& r) {
  if (const auto unit = data::ParseTextUnit("--record", r.text->record); unit.ok()) r.text->unit = *unit;
  if (!r.unit_chosen) r.unit = privacy::PrivacyUnit::kInteraction;
  const uint32_t records = r.training.num_records_public;
  // This delta is within the bounds of CheckPrivacyGoal.
  if (a.recipe.empty() && !a.given.Has("privacy.delta") && records > 0)
    r.goal.delta = records <= 10 ? 1e-5 : std::min(1.0 / (2.0 * records), 1e-3);
}

Status Override(const TrainArguments& a, RunSpec& r) {
  WISP_RETURN_IF_ERROR(a.given.Apply(r, r.text ? RunKind::kTexts : RunKind::kEvents));
  if (!a.trains_until.empty()) r.hold_out = HoldOut::kNothing;
  if (a.allow_large_delta == "yes") r.goal.allow_delta_of_one_record = true;
  if (a.lora) r.adapter = AdapterSpec{.rank = *a.lora, .alpha = static_cast<float>(*a.lora)};
  if (r.text) OverrideText(a, r);
  r.training.num_threads = a.threads;
  r.training.privacy.reproducible_seed = a.reproducible_noise_seed;
  return OkStatus();
}

// A missing key has its default: all blocks equal, or the default of a switch.
std::string Said(const nlohmann::ordered_json::const_iterator& found, const nlohmann::ordered_json& all) {
  return found == all.end() ? "as by default" : found->dump();
}

// A recipe describes the model that it makes. With --model there is one already, and its own architecture is trained.
// So this says which values of the recipe are ignored.
void WarnIfOtherArchitecture(const RunSpec& recipe, const Architecture& base) {
  const nlohmann::ordered_json asked = WriteArchitecture(recipe.architecture), own = WriteArchitecture(base);
  std::string others;
  for (const std::string& key : recipe.names_architecture) {
    const auto has = own.find(key), wanted = asked.find(key);
    const bool none_has = has == own.end() && wanted == asked.end();
    if (key == "re_attention" || none_has) continue;
    if (has != own.end() && wanted != asked.end() && *has == *wanted) continue;
    others += (others.empty() ? "" : ", ") + key + " " + Said(has, own) + " for " + Said(wanted, asked);
  }
  if (!others.empty())
    std::fprintf(stderr,
                 "wisp: what is trained is --model, which has other settings than the recipe's architecture: %s\n",
                 others.c_str());
}

}  // namespace

Result<RunSpec> ReadGivenRecipe(const TrainArguments& a) {
  if (!a.recipe.empty()) {
    WISP_ASSIGN_OR_RETURN(RunSpec recipe, ReadRecipe(a.recipe));
    if (!recipe.text && !a.texts.empty()) recipe.text = TextSpec();
    return recipe;
  }
  if (a.texts.empty()) return InvalidArgument("--recipe is required");
  if (a.model.empty())
    return InvalidArgument(
        "without --recipe, which says what the model is to be, texts fine-tune one: name it, --model");
  if (!a.given.Has("training.method"))
    return InvalidArgument("without --recipe the method must be named: --method ",
                           Allowed(*FindField("training.method", RunKind::kTexts)));
  return DefaultsFor(RunKind::kTexts);
}

namespace {

// Refuses options that only texts have for events, and the reverse.
Status CheckTextOptions(const TrainArguments& a, const RunSpec& recipe, const RunSpec& given) {
  if (recipe.text) {
    if (!a.texts.empty() && !a.data.path.empty())
      return InvalidArgument("--texts and --data are both given, and either is the file of texts: choose one");
    if (a.texts.empty() && a.data.path.empty()) return InvalidArgument("--texts is required");
    if (!a.item_names.empty()) return InvalidArgument("--item-names is of items; texts have tokens");
    if (!a.trains_until.empty()) return InvalidArgument("--trains-until is of events; texts have no times");
    if (!a.item_features.empty()) return InvalidArgument("--item-features is of items; texts have tokens");
    return a.given.Has("text.record") ? data::ParseTextUnit("--record", given.text->record).status() : OkStatus();
  }
  for (const auto& [option, given] :
       {std::pair{"--record", a.given.Has("text.record")}, std::pair{"--tokenizer", !a.tokenizer.empty()},
        std::pair{"--trains", a.given.Has("training.trains")},
        std::pair{"--max-length", a.given.Has("text.max_length")}}) {
    if (given) return InvalidArgument(option, " is of texts: give them with --texts, or name a recipe of texts");
  }
  return a.data.path.empty() ? InvalidArgument("--data is required") : OkStatus();
}

}  // namespace

const char* FindPrivateOption(const TrainArguments& a) {
  const std::pair<const char*, bool> of_private[] = {{"--epsilon", a.given.Has("privacy.epsilon")},
                                                     {"--noise-multiplier", a.given.Has("privacy.noise_multiplier")},
                                                     {"--ledger", !a.ledger.empty()},
                                                     {"--budget", a.budget.has_value()},
                                                     {"--rows", a.given.Has("training.sparse.rows")},
                                                     {"--re-attention", a.re_attention},
                                                     {"--histogram-noise", a.given.Has("privacy.histogram_noise")},
                                                     {"--planned-runs", a.planned_runs.has_value()},
                                                     {"--privacy-json", !a.privacy_json.empty()},
                                                     {"--uncharged-tuning", a.given.Has("privacy.uncharged_tuning")},
                                                     {"--reproducible-noise", a.reproducible_noise_seed.has_value()},
                                                     {"--delta", a.given.Has("privacy.delta")}};
  for (const auto& [option, given] : of_private) {
    if (given) return option;
  }
  return nullptr;
}

Status CheckOptions(const TrainArguments& a, const RunSpec& recipe) {
  RunSpec given = recipe;
  if (!given.text) given.text.emplace();  // of events, options of texts are refused below
  if (!a.vocabulary.empty()) return InvalidArgument("--vocabulary is for labelled texts: give them with --labelled");
  WISP_RETURN_IF_ERROR(a.given.Apply(given, RunKind::kTexts));
  const Method method = given.training.method;
  WISP_RETURN_IF_ERROR(CheckTextOptions(a, recipe, given));
  WISP_RETURN_IF_ERROR(CheckInterval(a.checkpoint, a.checkpoint_every));
  if (!a.adapter.empty() && a.model.empty())
    return InvalidArgument("--adapter is given without --model, the model that it was trained beside");
  WISP_RETURN_IF_ERROR(CheckOneGoal(a.given));
  if (a.given.Has("privacy.histogram_noise") && given.goal.histogram_noise == 0)
    return InvalidArgument("--histogram-noise is 0, allowed is above 0 to 100000");
  if (const char* option = FindPrivateOption(a); option != nullptr && method == Method::kOrdinary)
    return InvalidArgument(
        option, " is given, but the method is ordinary, which protects nothing: leave it out, or choose a --method of ",
        ListMethods([](Method m) { return m != Method::kOrdinary; }, " or "));
  if (!a.given.Has("training.sparse.rows") || NamesRows(method)) return OkStatus();
  return InvalidArgument("--rows is given, but the method is ", GetName(method),
                         ", which selects none: choose --method ", ListMethods(NamesRows, " or "), ", or leave it out");
}

Result<FineTune> BeginRun(const TrainArguments& a, const RunSpec& recipe, const ModelFile* base,
                          const std::string& dataset, const std::string& name, const privacy::RecordSpec& record) {
  FineTuneStart start{.base = base,
                      .base_path = a.model,
                      .adapter_path = a.adapter,
                      .dataset = dataset,
                      .other_data = a.other_data,
                      .run = name + " " + Timestamp()};
  if (IsPrivate(recipe.training)) {
    WarnIfOneRecord(recipe.training.num_records_public, recipe.unit);
    WISP_ASSIGN_OR_RETURN(start.ledger, OpenRunLedger(a.ledger, a.anchor, record, recipe.unit_chosen));
  }
  return FineTune::Begin(std::move(start));
}

Result<JobResult> RunShown(const std::string& title, const TrainArguments& a, FineTune& run, TrainingJob job,
                           FineTuneOutput output) {
  std::optional<privacy::EpsilonDelta> limit_before;
  if (run.ledger() != nullptr) {
    WISP_ASSIGN_OR_RETURN(limit_before, run.ledger()->Limit());
    WISP_ASSIGN_OR_RETURN(job.spec.goal.new_limit, NewLimit(a.budget, job.spec.goal.delta));
    job.spec.goal.planned_runs = a.planned_runs.value_or(1);
  }
  job.checkpoint_path = a.checkpoint;
  job.checkpoint_every = a.checkpoint_every.value_or(0);
  WarnIfAllWarmup(job);
  Progress progress(title);
  const volatile std::sig_atomic_t& interrupted = CatchInterrupts();
  const uint64_t charged = run.ledger() != nullptr ? job.spec.training.privacy.steps_per_charge : 50;
  SavesShown saves("every " + std::to_string(a.checkpoint_every.value_or(charged)));
  std::optional<double> epsilon;
  job.progress = [&](const JobProgress& p) {
    if (p.epsilon) epsilon = p.epsilon;
    std::string suffix = LossInWords(p);
    if (epsilon) suffix += ", epsilon " + privacy::EpsilonText(*epsilon, 3);
    suffix += saves.Suffix(p.saved, p.save_failure);
    progress.Update(p.step, p.num_steps, suffix);
    return interrupted == 0;
  };
  job.cancelled = [&] { return interrupted != 0; };
  const PrivacyGoal goal = job.spec.goal;
  Result<JobResult> result = run.Run(std::move(job), std::move(output));
  if (run.ledger() != nullptr) WarnIfRaised(*run.ledger(), limit_before);
  if (!result.ok()) return result;
  WarnIfAboveTarget(*result, goal);
  if (run.ledger() != nullptr) ReportIfUnlimited(*run.ledger(), goal.delta);
  return result;
}

Result<JobResult> TrainingRun::Run() {
  WISP_RETURN_IF_ERROR(Read());
  TrainingJob job{.spec = recipe_};
  if (is_text()) {
    job.records = texts_.records;
  } else {
    job.sequences = &data_.sequences;
  }
  WISP_ASSIGN_OR_RETURN(
      JobResult result,
      RunShown(title_, a_, *fine_tune_, std::move(job),
               {.path = a_.out, .contents = Contents(), .description = Description(), .written = written}));
  WISP_RETURN_IF_ERROR(Measure(result));
  return result;
}

Result<JobResult> TrainingRun::RunOnce(TrainingJob job, privacy::Ledger* of_run,
                                       std::function<Status(const JobResult&, const ModelLists&)> scored) {
  job.sequences = &data_.sequences;
  return fine_tune_->Run(std::move(job), {.contents = Contents(), .scored = std::move(scored)}, of_run);
}

Status TrainingRun::Write(const RunSpec& spec, const JobResult& result) const {
  return fine_tune_->Write({.spec = spec}, {.path = a_.out, .contents = Contents(), .description = Description()},
                           result);
}

Status TrainingRun::Read() {
  WISP_RETURN_IF_ERROR(Override(a_, recipe_));
  WISP_ASSIGN_OR_RETURN(device_, DeviceOrProcessor(a_.device, DeviceUse::kTraining));
  recipe_.training.device = device_.device;
  dataset_ = a_.dataset.empty() ? FileName(DataPath()) : a_.dataset;
  if (!a_.model.empty()) {
    WISP_ASSIGN_OR_RETURN(ModelFile model, ModelFile::OpenWithAdapter(a_.model, a_.adapter, Verify::kFull));
    base_.emplace(std::move(model));
  }
  WISP_RETURN_IF_ERROR(CheckLabels(a_.public_datasets, {base()}));
  if (is_private()) WISP_RETURN_IF_ERROR(CheckPublic());
  WISP_RETURN_IF_ERROR(is_text() ? ReadTexts() : ReadEvents());
  WISP_RETURN_IF_ERROR(CheckSize());
  if (is_private() && NumRecords() == 0) {
    std::fprintf(
        stderr,
        "wisp: warning: %s has %s to train on. The run continues and spends what was asked for: a refusal would tell "
        "of the data. Ctrl-C ends it (local only)\n",
        DataPath().c_str(), is_text() ? "no text" : "no user");
  }
  if (!base_ || is_text()) WISP_RETURN_IF_ERROR(ChooseModel());
  return ChooseRows();
}

Status TrainingRun::ReadEvents() {
  data::Moment until{.times_per_second = recipe_.times_per_second};
  if (!a_.trains_until.empty()) {
    WISP_ASSIGN_OR_RETURN(until.second, ParseMoment("--trains-until", a_.trains_until));
  }
  // A model to start from brings its items.
  if (base_) WISP_RETURN_IF_ERROR(ChooseModel());
  WISP_RETURN_IF_ERROR(Begin());
  if (begun) WISP_RETURN_IF_ERROR(begun(*fine_tune_));
  WISP_ASSIGN_OR_RETURN(const data::Units units, MakeUnits(record_->events()));
  WISP_ASSIGN_OR_RETURN(data_, ReadData(a_.data,
                                        {.min_user_events = recipe_.min_user_events,
                                         .min_item_events = recipe_.min_item_events,
                                         .units = units,
                                         .private_run = is_private(),
                                         .needs_times = until.second > 0},
                                        base_ ? &*base_ : nullptr));
  if (until.second > 0) data_.sequences = data::EventsUntil(data_.sequences, until);
  WarnIfRepeatsAreMisses(a_.data, data_.report,
                         recipe_.allow_seen.value_or(base_.has_value() && base_->lists().allow_seen));
  return OkStatus();
}

// The tokenizer comes first, so that a run with an unusable one spends nothing.
Status TrainingRun::ReadTexts() {
  WISP_RETURN_IF_ERROR(CheckDecoder());
  if (base_) {
    tokenizer_ = {base_->tokenizer().begin(), base_->tokenizer().end()};
  } else {
    WISP_ASSIGN_OR_RETURN(tokenizer_, TokenizerNamed(a_.tokenizer.empty() ? recipe_.text->tokenizer : a_.tokenizer));
  }
  WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer,
                        base_ ? FindTokenizer(*base_) : text::Tokenizer::Open("the tokenizer", tokenizer_));
  recipe_.architecture.num_items = static_cast<uint32_t>(tokenizer.size());  // for fresh weights
  const uint32_t most = (base_ ? base_->architecture() : recipe_.architecture).max_length;
  if (recipe_.text->max_length > most)
    return InvalidArgument("--max-length (in a recipe text.max_length) is ", recipe_.text->max_length,
                           ", allowed are 1 to ", most, ", the positions of the model");
  WISP_RETURN_IF_ERROR(Begin());
  if (recipe_.text->max_length == 0) recipe_.text->max_length = most;
  WarnIfChunks(*record_);
  WISP_ASSIGN_OR_RETURN(texts_, ReadTextRecords(DataPath(), tokenizer,
                                                {.unit = recipe_.text->unit,
                                                 .max_length = recipe_.text->max_length,
                                                 .hold_out_share = recipe_.text->hold_out_share,
                                                 .private_run = is_private()}));
  return OkStatus();
}

Status TrainingRun::CheckDecoder() const {
  const Architecture& a = base_ ? base_->architecture() : recipe_.architecture;
  if (a.attend != Attend::kCausal)
    return Unsupported(base_ ? a_.model : a_.recipe,
                       ": its positions see those behind them; texts are learned by a decoder, whose positions do not");
  if (!base_ && a_.tokenizer.empty() && recipe_.text->tokenizer.empty())
    return InvalidArgument(
        "fresh weights have no tokenizer: name a public one with --tokenizer, a tokenizer.json or the word bytes");
  if (base_ && !a_.tokenizer.empty())
    return InvalidArgument("--tokenizer does not go with --model, which brings its own");
  return OkStatus();
}

Status TrainingRun::ChooseModel() {
  if (base_) {
    const ReAttention asked = a_.re_attention ? ReAttention::kOn : recipe_.architecture.re_attention;
    WarnIfOtherArchitecture(recipe_, base_->architecture());
    recipe_.architecture = base_->architecture();
    if (asked == ReAttention::kOn) recipe_.architecture.re_attention = asked;
    WISP_RETURN_IF_ERROR(ChooseAdapter());
  } else {
    if (recipe_.adapter) {
      return InvalidArgument(a_.lora ? "--lora" : a_.recipe,
                             ": has an adapter, which trains beside the weights of a model: start from one (--model)");
    }
    if (a_.re_attention) recipe_.architecture.re_attention = ReAttention::kOn;
    if (!is_text()) recipe_.architecture.num_items = static_cast<uint32_t>(data_.sequences.item_keys.size());
  }
  if (is_text()) return OkStatus();
  item_keys_ = base_ ? ItemKeys(*base_) : data_.sequences.item_keys;
  WISP_ASSIGN_OR_RETURN(item_names_, ReadItemNames(a_.item_names, item_keys_));
  for (size_t i = 0; base_ && a_.item_names.empty() && base_->has_item_names() && i < item_keys_.size(); ++i)
    item_names_.emplace_back(base_->item_name(i));
  return TakeFeatures();
}

Status TrainingRun::TakeFeatures() {
  if (a_.item_features.empty()) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const ItemFeatures features, ReadItemFeatures(a_.item_features));
  WISP_ASSIGN_OR_RETURN(item_features_, SelectFeatures(a_.item_features, features, item_keys_));
  recipe_.training.item_features.values = item_features_;
  recipe_.training.item_features.count = features.count;
  return OkStatus();
}

// Measures the held-out texts with the weights at the end of training.
Status TrainingRun::Measure(const JobResult& result) {
  if (texts_.held_out.empty()) return OkStatus();
  std::span<const StoredTensor> base;
  if (base_) base = BaseBeside(*base_, recipe_.architecture, recipe_.training);
  const std::vector<StoredTensor> tensors =
      LocateTensors(ListParameters(recipe_.architecture), base, result.weights.data());
  const kernels::Device host(kernels::BestOps());
  const auto graph =
      MakeModelView(recipe_.architecture, host, MakeInferenceOptions(host, recipe_.architecture, tensors));
  Workers workers(a_.threads == 0 ? DefaultThreads() : a_.threads);
  WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer,
                        base_ ? FindTokenizer(*base_) : text::Tokenizer::Open("the tokenizer", tokenizer_));
  WISP_ASSIGN_OR_RETURN(text_quality_,
                        MeasureQuality(*graph, ParameterSource(tensors), tokenizer, texts_.held_out, workers));
  return OkStatus();
}

// Takes the recipe's adapter beside a model without one, or that of --adapter, which is trained further.
Status TrainingRun::ChooseAdapter() {
  const std::optional<AdapterSpec>& own = base_->architecture().adapter;
  if (!recipe_.adapter || own == recipe_.adapter) return OkStatus();
  if (own)
    return InvalidArgument(a_.adapter, ": is another adapter than the one of the recipe: leave one of the two out");
  recipe_.architecture.adapter = recipe_.adapter;
  return OkStatus();
}

// Refuses settings by which one user could influence others' records or the shape of the model, outside of the clipping
// norm.
Status TrainingRun::CheckPublic() const {
  if (recipe_.min_item_events > 1) {
    return PrivacyRefused("private training with data.min_item_events ", recipe_.min_item_events,
                          ": one user could decide whether others' events stay; allowed is 1");
  }
  if (base_ || is_text()) return OkStatus();
  if (recipe_.catalogue != RunSpec::Catalogue::kPublic) {
    return PrivacyRefused(
        "private training takes the catalogue from the data: declare it public (\"catalogue\": \"public\" under data), "
        "or start from a model with --model");
  }
  return CheckPublicCatalogue(recipe_);
}

size_t TrainingRun::NumRecords() const { return is_text() ? texts_.records.size() : data_.sequences.num_users(); }

Status TrainingRun::CheckSize() const {
  const size_t users = NumRecords();
  const size_t items = is_text() ? recipe_.architecture.num_items : data_.sequences.item_keys.size();
  if ((expected_users == 0 || users == expected_users) && (expected_items == 0 || items == expected_items))
    return OkStatus();
  const char* const words[] = {is_text() ? " texts to train on and " : " users and ",
                               is_text() ? " tokens, " : " items, "};
  return InvalidData(DataPath(), " has ", users, words[0], items, words[1], Dataset(), " has ", expected_users, " and ",
                     expected_items);
}

std::string TrainingRun::Name() const {
  if (!recipe_.name.empty()) return recipe_.name;
  return a_.recipe.empty() ? "texts" : FileName(a_.recipe);
}

// Describes the run for the provenance: for texts, what a record was.
std::string TrainingRun::Description() const {
  const std::string run = (base_ ? "fine-tuned by " : "trained by ") + Name();
  if (!a_.trains_until.empty()) return run + ", events until " + a_.trains_until;
  return is_text() ? run + ", one record: " + record_->InWords() : run;
}

Status TrainingRun::Begin() {
  WISP_ASSIGN_OR_RETURN(record_, MakeRecordSpec(recipe_, a_.data));
  WISP_ASSIGN_OR_RETURN(fine_tune_, BeginRun(a_, recipe_, base(), Dataset(), Name(), *record_));
  return OkStatus();
}

// Returns the contents of the model file without the results of training and the text about them.
ModelContents TrainingRun::Contents() const {
  return {.architecture = recipe_.architecture,
          .item_keys = item_keys_,
          .item_names = item_names_,
          .tokenizer = tokenizer_,
          .description = recipe_.name,
          .created_by = "wisp " + Version()};
}

// Settles what the charged histogram is for, or chooses rows by public scores of the items: the output bias of a model
// whose popularity was public, or was released and charged before.
Status TrainingRun::ChooseRows() {
  const bool by_score = recipe_.rows.source == RowSelection::Source::kPublic;
  // The bias of an existing model is kept.
  const bool sets_bias = !base_ && recipe_.architecture.head.output_bias == OutputBias::kFixed;
  if (!sets_bias && !NeedsFrequencies(recipe_) && (!SelectsRows() || by_score)) recipe_.goal.histogram_noise = 0;
  if (!SelectsRows() || !by_score) return OkStatus();
  if (!base_ || (base_->output_bias_origin() != OutputBiasOrigin::kPublicCounts &&
                 base_->output_bias_origin() != OutputBiasOrigin::kPrivateCounts)) {
    return PrivacyRefused(
        "rows_from is public, which takes the items' popularity from the output bias of --model: that must come from "
        "public or from "
        "privately released counts; set rows_from to private to pay for a selection");
  }
  const auto parameters = ListParameters(base_->architecture());
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].role == ParameterRole::kOutputBias)
      recipe_.rows.public_scores = {base_->Tensor(i), parameters[i].size()};
  }
  return OkStatus();
}

}  // namespace wisp::tools
