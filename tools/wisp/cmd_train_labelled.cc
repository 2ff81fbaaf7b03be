// Implements `wisp train --labelled`: trains a classifier of texts.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/core/file.h"
#include "runtime/model/model_file.h"
#include "runtime/core/text.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/statement.h"
#include "runtime/methods/dp_fp/dp_fp_report.h"
#include "runtime/train/run/classification.h"
#include "runtime/train/run/classifier_start.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/device.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/replaced.h"
#include "tools/wisp/text_tokens.h"
#include "tools/wisp/training_run.h"

namespace wisp::tools {
namespace {

// Columns seem to be swapped if the labels name no class while the texts do, or if the labels are long or all
// different.
Status CheckOrder(const std::string& path, const data::LabelledTexts& texts, const std::vector<std::string>& classes) {
  const auto is_class = [&](const std::string& word) {
    return std::find(classes.begin(), classes.end(), word) != classes.end();
  };
  const auto may_be = [&](const std::string& label) {
    return is_class(label) || label.find_first_not_of("0123456789") == std::string::npos;
  };
  if (texts.labels.empty() || std::any_of(texts.labels.begin(), texts.labels.end(), may_be)) return OkStatus();
  size_t longest = 0, length = 0;
  for (const std::string& name : classes) longest = std::max(longest, name.size());
  for (const std::string& label : texts.labels) length += label.size();
  const std::set<std::string> different(texts.labels.begin(), texts.labels.end());
  const bool are_long = length > texts.labels.size() * (2 * longest + 10);
  const bool all_differ = texts.labels.size() > 2 * classes.size() && different.size() == texts.labels.size();
  if (!are_long && !all_differ && !std::any_of(texts.texts.begin(), texts.texts.end(), is_class)) return OkStatus();
  return InvalidData(path,
                     ": label and text look swapped, none of the labels is one of the recipe's classes: in lines the "
                     "label comes first, then a tab, "
                     "then the text; in files with a header --label-column and --text-column say which is which");
}

Status Override(const TrainArguments& a, RunSpec& r) {
  TrainingOptions& o = r.training;
  WISP_RETURN_IF_ERROR(CheckOneGoal(a.given));
  // If the recipe is one for the private modes and runs in mode paper, its goal is of no use and is dropped. A recipe
  // of mode paper that has a goal is refused.
  if (a.given.Text("dp_fp.mode") == "paper" && o.dp_fp.mode != DpFpMode::kPaper) r.goal = {};
  const PrivacyGoal of_recipe = r.goal;
  WISP_RETURN_IF_ERROR(a.given.Apply(r, RunKind::kClasses));
  if (o.method != Method::kDpFp && a.given.Has("dp_fp.mode"))
    return InvalidArgument("--mode is of dp-fp; the method is ", wisp::GetName(o.method));
  WISP_RETURN_IF_ERROR(OverrideTrains(a.given.Text("training.trains"), o));
  // A recipe says by its own method which parameters train; DP-FP says it by its mode.
  if (o.method == Method::kDpFp && a.given.Has("training.method")) o.trained_part = TrainedPart::kAll;
  o.sampling = o.method == Method::kOrdinary ? Sampling::kShuffled : Sampling::kPoisson;
  if (a.allow_large_delta == "yes") r.goal.allow_delta_of_one_record = true;
  // Mode paper calibrates nothing: the noise is that of a representation.
  if (a.given.Has("privacy.noise_multiplier") && o.dp_fp.mode == DpFpMode::kPaper) {
    o.dp_fp.noise_multiplier = *r.goal.noise_multiplier;
    r.goal.epsilon = of_recipe.epsilon, r.goal.noise_multiplier = of_recipe.noise_multiplier;
  }
  if (a.lora) r.adapter = AdapterSpec{.rank = *a.lora, .alpha = static_cast<float>(*a.lora)};
  o.num_threads = a.threads;
  o.privacy.reproducible_seed = a.reproducible_noise_seed;
  return OkStatus();
}

// One training command from start to end.
class TrainLabelledCommand {
 public:
  TrainLabelledCommand(const TrainArguments& arguments, OutputFormat format) : a_(arguments), format_(format) {}

  Status Run() {
    WISP_RETURN_IF_ERROR(CheckKindOfData());
    WISP_RETURN_IF_ERROR(TakeMaxLength());
    WISP_ASSIGN_OR_RETURN(recipe_, ReadClassifyRecipe(a_.recipe));
    WISP_RETURN_IF_ERROR(Override(a_, recipe_));
    recipe_.training.cut_to = max_length_.value_or(0);
    if (!is_private()) WISP_RETURN_IF_ERROR(IsPaper(recipe_.training) ? CheckPaper() : CheckOrdinary());
    // Class names that the model file would refuse are found before anything is spent.
    WISP_RETURN_IF_ERROR(CheckClassNames(a_.recipe, recipe_.classes));
    WISP_ASSIGN_OR_RETURN(device_, DeviceOrProcessor(a_.device, DeviceUse::kTraining));
    recipe_.training.device = device_.device;
    // Outputs are checked before anything is spent. A base may be replaced by the model that is fine-tuned from it.
    WISP_RETURN_IF_ERROR(CheckInterval(a_.checkpoint, a_.checkpoint_every));
    WISP_RETURN_IF_ERROR(CheckApart({"--ledger", a_.ledger}, {"--labelled", a_.labelled}));
    for (const NamedFile& output : {NamedFile{"--out", a_.out}, NamedFile{"--checkpoint", a_.checkpoint}}) {
      WISP_RETURN_IF_ERROR(CheckOutput(output, {{"--recipe", a_.recipe},
                                                {"--labelled", a_.labelled},
                                                {"--vocabulary", a_.vocabulary},
                                                {"--ledger", a_.ledger},
                                                {"--anchor", a_.anchor.file}}));
    }
    WISP_RETURN_IF_ERROR(CheckReplaces(FileKind::kModel, {"--out", a_.out}));
    WISP_RETURN_IF_ERROR(CheckOutput({"--checkpoint", a_.checkpoint},
                                     {{"--out", a_.out}, {"--model", a_.model}, {"--adapter", a_.adapter}}));
    dataset_ = a_.dataset.empty() ? FileName(a_.labelled) : a_.dataset;
    WISP_RETURN_IF_ERROR(OpenBase());
    WISP_RETURN_IF_ERROR(CheckMaxLength());
    WISP_RETURN_IF_ERROR(CheckAdapter());
    WISP_RETURN_IF_ERROR(CheckLabels(a_.public_datasets, {base()}));
    const auto record = privacy::RecordSpec::OfTexts(recipe_.unit, privacy::RecordSpec::kLabelledText);
    WISP_ASSIGN_OR_RETURN(fine_tune_, BeginRun(a_, recipe_, base(), Dataset(), Name(), record));
    WISP_RETURN_IF_ERROR(ReadData());
    WISP_RETURN_IF_ERROR(AddHead());
    const Result<JobResult> result =
        RunShown("train", a_, *fine_tune_, {.spec = recipe_, .records = records_},
                 {.path = a_.out,
                  .contents = Contents(),
                  .description = (base() != nullptr ? "fine-tuned by " : "trained by ") + Name()});
    if (!result.ok()) return result.status();
    if (result->class_of_all_means) WarnOfOneClass(*result->class_of_all_means);
    Print(*result);
    return OkStatus();
  }

 private:
  bool is_private() const { return IsPrivate(recipe_.training); }
  std::string Described(const JobResult& r) const {
    if (r.options.method == Method::kDpFp) return DescribeDpFp(recipe_.architecture, r.options, r.num_steps);
    return std::string("method ") + wisp::GetName(r.options.method) +
           (is_private() ? ", noise " + privacy::ShortText(r.options.privacy.noise_multiplier) + " a step" : "");
  }
  privacy::Ledger& ledger() { return *fine_tune_->ledger(); }  // only for a private run
  std::string Name() const { return recipe_.name.empty() ? FileName(a_.recipe) : recipe_.name; }
  const std::string& Dataset() const { return dataset_; }

  // Refuses options that only events or texts without labels have.
  Status CheckKindOfData() const {
    if (!a_.data.path.empty() || !a_.texts.empty())
      return InvalidArgument("--labelled and ", a_.texts.empty() ? "--data" : "--texts",
                             " are both given, and either is what the run learns: choose one");
    if (a_.recipe.empty())
      return InvalidArgument("--recipe is required: that of a classifier names its classes (data.classes)");
    const std::pair<const char*, bool> others[] = {{"--tokenizer", !a_.tokenizer.empty()},
                                                   {"--item-names", !a_.item_names.empty()},
                                                   {"--re-attention", a_.re_attention},
                                                   {"--trains-until", !a_.trains_until.empty()},
                                                   {"--privacy-json", !a_.privacy_json.empty()},
                                                   {"--table", a_.data.table != DataArguments().table},
                                                   {"--user-column", !a_.data.user_column.empty()},
                                                   {"--item-column", !a_.data.item_column.empty()},
                                                   {"--time-column", !a_.data.time_column.empty()}};
    for (const auto& [option, given] : others) {
      if (given) return InvalidArgument(option, " is not for labelled texts, which --labelled gives");
    }
    return OkStatus();
  }

  // The field of this name is of texts without labels; its option serves both.
  Status TakeMaxLength() {
    const std::string text = a_.given.Text("text.max_length");
    if (text.empty()) return OkStatus();
    RunSpec read{.text = TextSpec()};
    GivenFields only;
    only.Give(*FindField("text.max_length", RunKind::kTexts), text);
    WISP_RETURN_IF_ERROR(only.Apply(read, RunKind::kTexts));
    max_length_ = read.text->max_length;
    a_.given.Give(*FindField("text.max_length", RunKind::kTexts), "");
    return OkStatus();
  }

  Status CheckOrdinary() const {
    const char* asked = FindPrivateOption(a_);
    if (asked == nullptr) return OkStatus();
    return PrivacyRefused(asked, " does not go with the method ordinary: it has no guarantee and charges nothing");
  }

  // A mode without a guarantee refuses every option that concerns one.
  Status CheckPaper() const {
    const PrivacyGoal& goal = recipe_.goal;
    const char* asked = !a_.ledger.empty()                ? "--ledger"
                        : a_.budget                       ? "--budget"
                        : a_.given.Has("privacy.epsilon") ? "--epsilon"
                        : a_.given.Has("privacy.delta")   ? "--delta"
                        : a_.planned_runs                 ? "--planned-runs"
                                                          : nullptr;
    if (asked != nullptr)
      return PrivacyRefused(asked, " does not go with mode paper: there is nothing to charge or to calibrate to. ",
                            ExplainPaperMode());
    if (!goal.epsilon && !goal.noise_multiplier) return OkStatus();
    return PrivacyRefused(a_.recipe, ": mode paper with a goal under privacy: there is nothing to calibrate to. ",
                          ExplainPaperMode());
  }

  Status ReadData() {
    WISP_ASSIGN_OR_RETURN(const auto format, data::ParseLabelledFormat(a_.data.format));
    WISP_ASSIGN_OR_RETURN(const data::LabelledTexts texts,
                          data::ReadLabelled(a_.labelled, {.format = format,
                                                           .text_column = recipe_.text_column,
                                                           .label_column = recipe_.label_column,
                                                           .drop_bad = is_private()}));
    Status order = CheckOrder(a_.labelled, texts, recipe_.classes);
    // A private run is not refused for the content of its records. Its starter gets a warning, here on the device.
    if (!order.ok() && !is_private()) return order;
    if (!order.ok()) Warn(order.message() + " (local only)");
    if (is_private()) WarnIfOtherNumber(texts.texts.size(), recipe_.training.num_records_public);
    WISP_RETURN_IF_ERROR(Tokenise(texts));
    records_ = ViewRecords(sequences_);
    if (records_.empty()) WarnOfNoRecord();
    if (sequences_.num_dropped > 0) SayTextsLeftOut(sequences_.num_dropped, sequences_.first_dropped);
    return OkStatus();
  }

  Status Tokenise(const data::LabelledTexts& texts) {
    data::EncodeOptions options{
        .classes = recipe_.classes, .letters = recipe_.letters, .max_length = MaxLength(), .drop_bad = is_private()};
    if (brings_tokenizer()) {
      WISP_ASSIGN_OR_RETURN(const TextTokens tokens, TextTokens::Of(*base()));
      const auto tokenise = [&](std::string_view text, std::vector<int32_t>& to) {
        return tokens.Append(text, options.max_length, to);
      };
      WISP_ASSIGN_OR_RETURN(sequences_, data::EncodeWith(texts, tokenise, options));
      return OkStatus();
    }
    WISP_ASSIGN_OR_RETURN(const std::vector<std::string> words, Tokens(texts));
    WISP_ASSIGN_OR_RETURN(vocabulary_, data::Vocabulary::Create(VocabularyName(), words));
    recipe_.architecture.num_items = static_cast<uint32_t>(words.size());
    WISP_ASSIGN_OR_RETURN(sequences_, data::Encode(texts, vocabulary_, options));
    return OkStatus();
  }

  // This is checked before anything is charged: otherwise every text could be left out, and the budget spent on
  // nothing.
  Status CheckMaxLength() const {
    if (!max_length_) return OkStatus();
    const uint32_t most = recipe_.architecture.max_length;
    if (brings_tokenizer()) {
      WISP_ASSIGN_OR_RETURN(const TextTokens tokens, TextTokens::Of(*base()));
      return tokens.CheckRoom("--max-length", *max_length_, most);
    }
    if (*max_length_ > 1 && *max_length_ <= most) return OkStatus();
    return InvalidArgument("--max-length is ", *max_length_, ", allowed are 2 to ", most);
  }

  Status CheckAdapter() const {
    const std::optional<AdapterSpec> own = OwnAdapter();
    if (own && a_.lora)
      return InvalidArgument("--lora makes a new adapter and --adapter trains one further: leave one of the two out");
    if (own && recipe_.adapter) {
      AdapterSpec asked = *recipe_.adapter;
      asked.has_head = own->has_head;
      if (asked != *own)
        return InvalidArgument(a_.adapter, ": is another adapter than the one of the recipe: leave one of the two out");
    }
    return OkStatus();
  }

  bool brings_tokenizer() const { return base() != nullptr && !base()->tokenizer().empty(); }
  // The most tokens of a text in training. Fewer tokens than the model reads take less time and memory.
  uint32_t MaxLength() const { return max_length_.value_or(recipe_.architecture.max_length); }

  // The specification of the adapter of --adapter, which is trained further.
  std::optional<AdapterSpec> OwnAdapter() const {
    return base() != nullptr ? base()->architecture().adapter : std::nullopt;
  }

  Status OpenBase() {
    if (a_.model.empty() && !a_.adapter.empty())
      return InvalidArgument("--adapter is given without --model, the model that it was trained beside");
    if (a_.model.empty()) return OkStatus();
    if (!a_.vocabulary.empty()) return InvalidArgument("--vocabulary does not go with --model, which has its own");
    WISP_ASSIGN_OR_RETURN(ModelFile file,
                          ModelFile::OpenWithAdapter(a_.model, a_.adapter, Verify::kFull, Accept::kAny));
    base_.emplace(std::move(file));
    WISP_RETURN_IF_ERROR(CheckClassifierBase(*base(), recipe_.classes, recipe_.adapter.has_value()));
    if (base_->is_classifier()) recipe_.letters = GetLetterCase(base_->classifier().tokenizer);
    if (!brings_tokenizer() && !base()->has_item_keys())
      return InvalidData(a_.model, ": it carries no tokens (item keys): texts cannot be matched to it");
    recipe_.architecture = base()->architecture();
    return OkStatus();
  }

  const ModelFile* base() const { return base_ ? &*base_ : nullptr; }
  std::string VocabularyName() const {
    return !a_.model.empty() ? a_.model : !a_.vocabulary.empty() ? a_.vocabulary : a_.labelled;
  }

  // This holds in every mode: the vocabulary is part of the model file, so it must be public.
  Result<std::vector<std::string>> Tokens(const data::LabelledTexts& texts) const {
    if (base() != nullptr) return ItemKeys(*base());
    if (!a_.vocabulary.empty()) return data::ReadTokens(a_.vocabulary);
    if (recipe_.catalogue == RunSpec::Catalogue::kPublic) return data::GetTokens(texts, recipe_.letters, is_private());
    return PrivacyRefused(
        "the vocabulary would say which words the texts have: name a public one with --vocabulary, start from a model "
        "with --model, "
        "or declare the set of words public (\"catalogue\": \"public\" under data)");
  }

  // Gives the model its head of classes and, if the recipe has one, its adapter.
  Status AddHead() {
    const auto num_classes = static_cast<uint32_t>(recipe_.classes.size());
    if (base() != nullptr) {
      WISP_ASSIGN_OR_RETURN(recipe_.architecture, ClassifierOver(*base(), num_classes, recipe_.adapter));
      return OkStatus();
    }
    if (recipe_.adapter)
      return InvalidArgument("an adapter trains beside the weights of a model: start from one (--model)");
    recipe_.architecture = WithClasses(recipe_.architecture, num_classes);
    return Validate(recipe_.architecture);
  }

  // Returns the contents of the model file without the results of training.
  ModelContents Contents() const {
    ModelContents contents = base() != nullptr
                                 ? ClassifierContents(*base(), recipe_.architecture, recipe_.classes)
                                 : ModelContents{.architecture = recipe_.architecture,
                                                 .classifier = ClassifierDescription{.class_names = recipe_.classes}};
    if (!brings_tokenizer()) {
      // An adapter without a head describes its base.
      if (!recipe_.architecture.adapter || recipe_.architecture.adapter->has_head)
        contents.classifier->tokenizer = FindTokenizer(recipe_.letters);
      contents.item_keys = vocabulary_.tokens();
    }
    contents.description = recipe_.name;
    contents.created_by = "wisp " + Version();
    return contents;
  }

  // The exposure that this run's epsilon leaves out; empty if it covers everything.
  std::string Caveat() const { return StartInWords(base(), Dataset(), a_.public_datasets); }

  void WarnOfNoRecord() const {
    std::fprintf(
        stderr,
        "wisp: warning: no line of %s became a record, a text with a label that is one of data.classes of %s. The run "
        "continues and spends what was asked for: a refusal would tell of the data. Ctrl-C ends it (local "
        "only)\n",
        a_.labelled.c_str(), a_.recipe.c_str());
  }

  // This is computed from released values, so it may be said.
  void WarnOfOneClass(uint32_t named) const {
    std::fprintf(
        stderr,
        "wisp: warning: the head names '%s' even at the mean of every other class, as these were released: the class "
        "prior decides, not what texts say. A recipe's effective_dimensions, here %s, is how many directions "
        "of the %u the vectors of texts vary in; pre-trained encoders need some tens or more\n",
        OneLine(recipe_.classes[named]).c_str(),
        privacy::ShortText(recipe_.training.dp_fp.effective_dimensions).c_str(), recipe_.architecture.width);
  }

  void Print(const JobResult& r) {
    Json j = {{"model", a_.out},
              {"method", wisp::GetName(recipe_.training.method)},
              {"mode", ToText(r.options.dp_fp.mode)},
              {"records", records_.size()},
              {"tokens", recipe_.architecture.num_items},
              {"steps", r.num_steps},
              {"seconds", r.seconds},
              {"records_dropped", r.num_dropped + sequences_.num_dropped},
              {"noise_multiplier", r.options.dp_fp.noise_multiplier}};
    if (r.options.method != Method::kDpFp) {
      j.erase("mode");
      j["noise_multiplier"] = r.options.privacy.noise_multiplier;
    }
    if (!device_.is_processor()) j["device"] = device_.description;
    if (r.resumed_from > 0) j["resumed_from"] = r.resumed_from;
    if (!r.ended_early.empty()) j["steps_planned"] = r.planned_steps, j["ended_early"] = r.ended_early;
    if (!r.save_failure.empty()) j["save_failure"] = r.save_failure;
    if (r.options.method == Method::kDpFp && r.options.dp_fp.mode == DpFpMode::kClipped)
      j["encoder_noise_multiplier"] = r.options.privacy.noise_multiplier;
    if (is_private()) {
      j["epsilon"] = r.epsilon ? Json(*r.epsilon) : Json();
      j["delta"] = recipe_.goal.delta;
      AddGradients(r.seen, j);
      j["everything_together"] = SpentAsJson(ledger(), recipe_.goal.delta);
      j["caveat"] = Caveat();
      j["not_private"] = NotPrivate(j);
    } else {
      j["not_private"] = ListFigureNames(j);
      j["no_guarantee"] = IsPaper(r.options) ? ExplainPaperMode() : "ordinary training: nothing is private";
    }
    if (format_ == OutputFormat::kJson) {
      PrintJson(j);
      return;
    }
    PrintText("%s: %llu steps over %zu records in %.1f s\n%s\n", OneLine(a_.out).c_str(),
              static_cast<unsigned long long>(r.num_steps), records_.size(), r.seconds, Described(r).c_str());
    if (!r.ended_early.empty()) PrintText("%s\n", r.ended_early.c_str());
    PrintText("%s\n", is_private() ? NotPrivateInWords(j).c_str() : "local only: the model, and every figure above");
    if (r.epsilon)
      PrintText("privacy: epsilon %s at delta %s%s\n", privacy::EpsilonText(*r.epsilon).c_str(),
                j["delta"].dump().c_str(), Caveat().empty() ? "" : ("; " + Caveat()).c_str());
    const std::string spent = is_private() ? SpentInWords(ledger(), recipe_.goal.delta) : "";
    if (!spent.empty()) PrintText("spent on this data, everything together: %s\n", spent.c_str());
    if (recipe_.architecture.adapter)
      PrintText("%s\n", AdapterInWords("classify --text TEXT", a_.model, a_.out).c_str());
  }

  TrainArguments a_;  // without the length of texts, which is in max_length_
  std::optional<uint32_t> max_length_;
  OutputFormat format_;
  OpenedDevice device_;
  RunSpec recipe_;
  std::string dataset_;
  std::optional<ModelFile> base_;
  std::optional<FineTune> fine_tune_;
  data::Vocabulary vocabulary_;
  data::LabelledSequences sequences_;
  std::vector<Record> records_;
};

}  // namespace

Status TrainLabelled(const TrainArguments& arguments, OutputFormat format) {
  return TrainLabelledCommand(arguments, format).Run();
}

}  // namespace wisp::tools
