// wisp classify train, evaluate, predict
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/core/file.h"
#include "runtime/data/lines.h"
#include "runtime/inference/classifier_session.h"
#include "runtime/model/model_file.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/statement.h"
#include "runtime/train/dp_fp_report.h"
#include "runtime/train/run/classification.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/device.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/classify_recipe.h"
#include "tools/wisp/recipe/recipe.h"

namespace wisp::tools {
namespace {

using Json = nlohmann::ordered_json;
using data::LetterCase;

LetterCase LettersOf(Tokenizer tokenizer) {
  return tokenizer == Tokenizer::kWhitespaceLower ? LetterCase::kLower : LetterCase::kKeep;
}
Tokenizer TokenizerOf(LetterCase letters) {
  return letters == LetterCase::kLower ? Tokenizer::kWhitespaceLower : Tokenizer::kWhitespace;
}

std::vector<Record> RecordsOf(const data::LabelledSequences& sequences) {
  std::vector<Record> records;
  for (size_t i = 0; i < sequences.size(); ++i) records.push_back({sequences.Record(i), {&sequences.labels[i], 1}});
  return records;
}

// Labels that name no class while texts do, or that are long or all different, are texts.
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

Status Override(const ClassifyTrainArguments& a, ClassifyRecipe& r) {
  if (a.epsilon && a.noise_multiplier)
    return InvalidArgument(
        "--epsilon and --noise-multiplier are both given, and one follows from the other: choose one");
  if (!a.mode.empty()) {
    const auto mode = DpFpModeFromText(a.mode);
    if (!mode) return InvalidArgument("--mode is '", a.mode, "', allowed are aggregate, clipped and paper");
    // A recipe for the private modes, run as the paper has it: its goal is of no use there. One of mode paper with a
    // goal is refused.
    if (*mode == DpFpMode::kPaper && r.options.dp_fp.mode != *mode) r.goal = {};
    r.options.dp_fp.mode = *mode;
  }
  if (a.epsilon) r.goal.epsilon = a.epsilon, r.goal.noise_multiplier.reset();
  if (a.noise_multiplier && r.options.dp_fp.mode == DpFpMode::kPaper) {
    r.options.dp_fp.noise_multiplier = *a.noise_multiplier;
  } else if (a.noise_multiplier) {
    r.goal.noise_multiplier = a.noise_multiplier, r.goal.epsilon.reset();
  }
  // A recipe's word for its own delta is none for another.
  if (a.delta) r.goal.delta = *a.delta, r.goal.allow_delta_of_one_record = false;
  if (!a.uncharged_tuning.empty()) r.uncharged_tuning = a.uncharged_tuning;
  if (a.epochs) r.epochs = *a.epochs, r.options.num_steps = 0;
  if (a.seed) r.seed = *a.seed;
  if (!a.text_column.empty()) r.text_column = a.text_column;
  if (!a.label_column.empty()) r.label_column = a.label_column;
  if (a.expected_batch) r.options.expected_batch = *a.expected_batch;
  if (a.num_records_public) r.options.num_records_public = *a.num_records_public;
  if (a.learning_rate) r.options.optimizer.learning_rate = static_cast<float>(*a.learning_rate);
  r.options.num_threads = a.threads;
  r.options.privacy.reproducible_seed = a.reproducible_noise_seed;
  return OkStatus();
}

// One training command from start to end.
class ClassifyTrainCommand {
 public:
  ClassifyTrainCommand(const ClassifyTrainArguments& arguments, OutputFormat format) : a_(arguments), format_(format) {}

  Status Run() {
    WISP_ASSIGN_OR_RETURN(recipe_, ReadClassifyRecipe(a_.recipe));
    WISP_RETURN_IF_ERROR(Override(a_, recipe_));
    if (!is_private()) WISP_RETURN_IF_ERROR(CheckPaper());
    WISP_RETURN_IF_ERROR(CheckClasses());
    WISP_ASSIGN_OR_RETURN(device_, DeviceOrProcessor(a_.device, DeviceUse::kTraining));
    recipe_.options.device = device_.device;
    // Before anything is spent on it. A base may be replaced by what it is fine-tuned to.
    WISP_RETURN_IF_ERROR(CheckInterval(a_.checkpoint, a_.checkpoint_every));
    for (const NamedFile& output : {NamedFile{"--out", a_.out}, NamedFile{"--checkpoint", a_.checkpoint}}) {
      WISP_RETURN_IF_ERROR(CheckOutput(output, {{"--recipe", a_.recipe},
                                                {"--data", a_.data},
                                                {"--vocabulary", a_.vocabulary},
                                                {"--ledger", a_.ledger},
                                                {"--anchor", a_.anchor.file}}));
    }
    WISP_RETURN_IF_ERROR(CheckOutput({"--checkpoint", a_.checkpoint}, {{"--out", a_.out}, {"--base", a_.base}}));
    dataset_ = a_.dataset.empty() ? FileName(a_.data) : a_.dataset;
    WISP_RETURN_IF_ERROR(OpenBase());
    WISP_RETURN_IF_ERROR(CheckLabels(a_.public_datasets, {base()}));
    WISP_RETURN_IF_ERROR(Begin());
    WISP_RETURN_IF_ERROR(ReadData());
    WISP_RETURN_IF_ERROR(MakeStart());
    TrainingJob job{.records = records_,
                    .architecture = architecture_,
                    .start_weights = start_weights_,
                    .training = recipe_.options,
                    .epochs = recipe_.epochs,
                    .goal = recipe_.goal,
                    .head_share = recipe_.head_share};
    WISP_ASSIGN_OR_RETURN(job.new_limit, NewLimit(a_.budget, recipe_.goal.delta));
    job.checkpoint_path = a_.checkpoint;
    job.checkpoint_every = a_.checkpoint_every.value_or(0);
    job.planned_runs = a_.planned_runs.value_or(1);
    Progress progress("classify train");
    const volatile std::sig_atomic_t& interrupted = CatchInterrupts();
    SavesShown saves("every " + std::to_string(a_.checkpoint_every.value_or(
                                    is_private() ? job.training.privacy.steps_per_charge : 50)));
    job.progress = [&](const JobProgress& p) {
      progress.Update(p.step, p.num_steps,
                      (p.mean_loss != 0 ? "loss " + Fixed(p.mean_loss, 3) : "") +
                          saves.Suffix(p.saved, p.save_failure));
      return interrupted == 0;
    };
    const Result<JobResult> result = fine_tune_->Run(
        std::move(job), {.path = a_.out,
                         .contents = Contents(),
                         .description = (base() != nullptr ? "fine-tuned by " : "trained by ") + Name()});
    if (is_private()) SayIfRaised(ledger(), limit_before_);
    if (!result.ok()) return result.status();
    Print(*result);
    return OkStatus();
  }

 private:
  bool is_private() const { return IsPrivate(recipe_.options); }
  std::string Described(const JobResult& r) const { return DescribeDpFp(architecture_, r.options, r.num_steps); }
  privacy::Ledger& ledger() { return *fine_tune_->ledger(); }  // of a private run
  std::string Name() const { return recipe_.name.empty() ? FileName(a_.recipe) : recipe_.name; }
  const std::string& Dataset() const { return dataset_; }

  // Nothing that speaks of a guarantee goes with a mode that has none.
  Status CheckPaper() const {
    const PrivacyGoal& goal = recipe_.goal;
    const char* asked = !a_.ledger.empty() ? "--ledger"
                        : a_.budget        ? "--budget"
                        : a_.epsilon       ? "--epsilon"
                        : a_.delta         ? "--delta"
                        : a_.planned_runs  ? "--planned-runs"
                                           : nullptr;
    if (asked != nullptr)
      return PrivacyRefused(asked, " does not go with mode paper: there is nothing to charge or to calibrate to. ",
                            WhyPaperHasNoGuarantee());
    if (!goal.epsilon && !goal.noise_multiplier) return OkStatus();
    return PrivacyRefused(a_.recipe, ": mode paper with a goal under privacy: there is nothing to calibrate to. ",
                          WhyPaperHasNoGuarantee());
  }

  // What the file would refuse, before anything is spent.
  Status CheckClasses() const {
    for (size_t i = 0; i < recipe_.classes.size(); ++i) {
      const std::string fault = data::KeyFault(recipe_.classes[i]);
      if (!fault.empty()) return InvalidData(a_.recipe, ": class ", i, " ", fault);
      if (std::find(recipe_.classes.begin(), recipe_.classes.begin() + static_cast<ptrdiff_t>(i), recipe_.classes[i]) !=
          recipe_.classes.begin() + static_cast<ptrdiff_t>(i)) {
        return InvalidData(a_.recipe, ": two classes are called ", recipe_.classes[i]);
      }
    }
    return OkStatus();
  }

  Status ReadData() {
    WISP_ASSIGN_OR_RETURN(const auto format, data::ParseLabelledFormat(a_.format));
    WISP_ASSIGN_OR_RETURN(const data::LabelledTexts texts,
                          data::ReadLabelled(a_.data, {.format = format,
                                                       .text_column = recipe_.text_column,
                                                       .label_column = recipe_.label_column,
                                                       .drop_bad = is_private()}));
    Status order = CheckOrder(a_.data, texts, recipe_.classes);
    // A private run is not refused for what its records hold; who started it is told, here on the device.
    if (!order.ok() && !is_private()) return order;
    if (!order.ok()) std::fprintf(stderr, "wisp: %s (local only)\n", order.message().c_str());
    WISP_ASSIGN_OR_RETURN(const std::vector<std::string> tokens, Tokens(texts));
    WISP_ASSIGN_OR_RETURN(vocabulary_, data::Vocabulary::Create(VocabularyName(), tokens));
    recipe_.encoder.num_items = static_cast<uint32_t>(tokens.size());
    WISP_ASSIGN_OR_RETURN(sequences_, data::Encode(texts, vocabulary_,
                                                   {.classes = recipe_.classes,
                                                    .letters = recipe_.letters,
                                                    .max_length = recipe_.encoder.max_length,
                                                    .drop_bad = is_private()}));
    records_ = RecordsOf(sequences_);
    if (sequences_.num_dropped > 0) {
      std::fprintf(stderr, "wisp: %llu texts left out, the first: %s (local only)\n",
                   static_cast<unsigned long long>(sequences_.num_dropped), sequences_.first_dropped.c_str());
    }
    return OkStatus();
  }

  Status OpenBase() {
    if (a_.base.empty()) return OkStatus();
    if (!a_.vocabulary.empty()) return InvalidArgument("--vocabulary does not go with --base, which has its own");
    WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Open(a_.base, Verify::kFull, Accept::kAny));
    base_.emplace(std::move(file));
    if (base_->is_classifier()) {
      if (base_->classifier().class_names != recipe_.classes)
        return InvalidData(a_.base, ": its classes are not those of the recipe");
      recipe_.letters = LettersOf(base_->classifier().tokenizer);
    }
    if (!base()->has_item_keys())
      return InvalidData(a_.base, ": it carries no tokens (item keys): texts cannot be matched to it");
    recipe_.encoder = base()->architecture();
    return OkStatus();
  }

  const ModelFile* base() const { return base_ ? &*base_ : nullptr; }
  std::string VocabularyName() const {
    return !a_.base.empty() ? a_.base : !a_.vocabulary.empty() ? a_.vocabulary : a_.data;
  }

  // In every mode: a vocabulary is part of the model file, so it must be nobody's secret.
  Result<std::vector<std::string>> Tokens(const data::LabelledTexts& texts) const {
    if (base() != nullptr) return ItemKeys(*base());
    if (!a_.vocabulary.empty()) return data::ReadTokens(a_.vocabulary);
    if (recipe_.catalogue_public) return data::TokensOf(texts, recipe_.letters, is_private());
    return PrivacyRefused(
        "the vocabulary would say which words the texts have: name a public one with --vocabulary, start from a model "
        "with --base, "
        "or declare the set of words public (\"catalogue\": \"public\" under data)");
  }

  Status MakeStart() {
    architecture_ = WithClasses(recipe_.encoder, static_cast<uint32_t>(recipe_.classes.size()));
    WISP_RETURN_IF_ERROR(Validate(architecture_));
    start_weights_.resize(FlatSize(ParametersOf(architecture_)));
    auto random = privacy::RandomStream::Reproducible(recipe_.seed, privacy::StreamPurpose::kInitialisation);
    InitialiseWeights(architecture_, recipe_.initialisation, random, start_weights_);
    // An encoder's weights are a prefix of the classifier's.
    if (base() != nullptr) {
      std::vector<float> widened;
      const std::span<const float> weights = base()->AllWeights(widened);
      std::copy(weights.begin(), weights.end(), start_weights_.begin());
    }
    return OkStatus();
  }

  Status Begin() {
    FineTuneStart start{.base = base(),
                        .base_path = a_.base,
                        .dataset = Dataset(),
                        .other_data = a_.other_data,
                        .run = Name() + " " + Timestamp(),
                        .tuning = recipe_.uncharged_tuning};
    if (is_private()) {
      SayIfOneRecord(recipe_.options.num_records_public, recipe_.unit);
      WISP_ASSIGN_OR_RETURN(start.ledger, LedgerOf(a_.ledger, a_.anchor, recipe_.unit, recipe_.unit_chosen));
    }
    WISP_ASSIGN_OR_RETURN(fine_tune_, FineTune::Begin(std::move(start)));
    if (!is_private()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(limit_before_, ledger().Limit());
    return OkStatus();
  }

  // All but what training finds out.
  ModelContents Contents() const {
    ModelContents contents;
    contents.architecture = architecture_;
    contents.classifier = {.class_names = recipe_.classes, .tokenizer = TokenizerOf(recipe_.letters)};
    contents.item_keys = vocabulary_.tokens();
    contents.description = recipe_.name;
    contents.created_by = "wisp " + Version();
    return contents;
  }

  void Print(const JobResult& r) {
    Json j = {{"model", a_.out},
              {"mode", ToText(r.options.dp_fp.mode)},
              {"records", records_.size()},
              {"tokens", vocabulary_.tokens().size()},
              {"steps", r.num_steps},
              {"seconds", r.seconds},
              {"records_dropped", r.num_dropped + sequences_.num_dropped},
              {"noise_multiplier", r.options.dp_fp.noise_multiplier}};
    if (!device_.is_processor()) j["device"] = device_.description;
    if (r.resumed_from > 0) j["resumed_from"] = r.resumed_from;
    if (!r.ended_early.empty()) j["steps_planned"] = r.planned_steps, j["ended_early"] = r.ended_early;
    if (!r.save_failure.empty()) j["save_failure"] = r.save_failure;
    if (r.options.dp_fp.mode == DpFpMode::kClipped) j["encoder_noise_multiplier"] = r.options.privacy.noise_multiplier;
    if (is_private()) {
      j["epsilon"] = r.epsilon ? Json(*r.epsilon) : Json();
      j["delta"] = recipe_.goal.delta;
      j["not_private"] = NotPrivate(j);
    } else {
      j["not_private"] = AllOf(j);
      j["no_guarantee"] = WhyPaperHasNoGuarantee();
    }
    if (format_ == OutputFormat::kJson) {
      std::printf("%s\n", j.dump(2).c_str());
      return;
    }
    std::printf("%s: %llu steps over %zu records in %.1f s\n%s\n", a_.out.c_str(),
                static_cast<unsigned long long>(r.num_steps), records_.size(), r.seconds, Described(r).c_str());
    if (!r.ended_early.empty()) std::printf("%s\n", r.ended_early.c_str());
    std::printf("%s\n", is_private() ? NotPrivateInWords(j).c_str() : "local only: the model, and every figure above");
    if (r.epsilon)
      std::printf("privacy: epsilon %s at delta %s%s\n", privacy::EpsilonText(*r.epsilon).c_str(),
                  j["delta"].dump().c_str(), StartInWords(base(), Dataset(), a_.public_datasets).c_str());
    const std::string spent = is_private() ? SpentInWords(ledger(), recipe_.goal.delta) : "";
    if (!spent.empty()) std::printf("spent on this data, everything together: %s\n", spent.c_str());
  }

  const ClassifyTrainArguments& a_;
  OutputFormat format_;
  OpenedDevice device_;
  ClassifyRecipe recipe_;
  std::string dataset_;
  std::optional<ModelFile> base_;
  std::optional<FineTune> fine_tune_;
  std::optional<privacy::EpsilonDelta> limit_before_;
  data::Vocabulary vocabulary_;
  data::LabelledSequences sequences_;
  std::vector<Record> records_;
  Architecture architecture_;
  std::vector<float> start_weights_;
};

// An open classifier with its vocabulary, ready for texts.
struct Opened {
  ModelFile file;
  data::Vocabulary vocabulary;
  LetterCase letters;
  HeadInput input() const { return {.norm_bound = file.classifier().norm_bound}; }
};

Result<Opened> OpenClassifier(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Open(path, Verify::kFull, Accept::kClassifier));
  const Tokenizer tokenizer = file.classifier().tokenizer;
  if (tokenizer == Tokenizer::kNone) return Unsupported(path, ": it has no tokenizer; wisp classify reads texts");
  WISP_ASSIGN_OR_RETURN(data::Vocabulary vocabulary, data::Vocabulary::Create(path, ItemKeys(file)));
  return Opened{std::move(file), std::move(vocabulary), LettersOf(tokenizer)};
}

Result<std::vector<std::string>> ReadTexts(const ClassifyPredictArguments& a) {
  if (a.texts.empty() == a.input.empty()) return InvalidArgument("either --text or --input is needed");
  if (!a.texts.empty()) return a.texts;
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(a.input));
  std::vector<std::string> texts;
  data::Lines lines({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  while (lines.Next()) texts.emplace_back(lines.line());
  return texts;
}

}  // namespace

Status ClassifyTrain(const ClassifyTrainArguments& arguments, OutputFormat format) {
  return ClassifyTrainCommand(arguments, format).Run();
}

Status ClassifyEvaluate(const ClassifyEvaluateArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const auto file_format, data::ParseLabelledFormat(a.format));
  WISP_ASSIGN_OR_RETURN(const Opened opened, OpenClassifier(a.model));
  const Architecture& architecture = opened.file.architecture();
  std::vector<std::string> classes = opened.file.classifier().class_names;
  for (uint32_t i = static_cast<uint32_t>(classes.size()); i < architecture.head.num_classes; ++i)
    classes.push_back(std::to_string(i));
  WISP_ASSIGN_OR_RETURN(const data::LabelledTexts texts, data::ReadLabelled(a.data, {.format = file_format,
                                                                                     .text_column = a.text_column,
                                                                                     .label_column = a.label_column}));
  WISP_ASSIGN_OR_RETURN(
      const data::LabelledSequences sequences,
      data::Encode(texts, opened.vocabulary,
                   {.classes = classes, .letters = opened.letters, .max_length = architecture.max_length}));
  const std::vector<Record> records = RecordsOf(sequences);
  std::vector<size_t> counts(classes.size(), 0);
  for (const int32_t label : sequences.labels) ++counts[static_cast<size_t>(label)];
  const double largest =
      static_cast<double>(*std::max_element(counts.begin(), counts.end())) / static_cast<double>(records.size());
  Workers workers(a.threads == 0 ? DefaultThreads() : a.threads);
  const Classifier graph(architecture, kernels::BestOps(), {.use = GraphUse::kInference});
  std::vector<float> widened;
  const double accuracy = Accuracy(graph, opened.file.AllWeights(widened).data(), records, opened.input(), workers);
  if (format == OutputFormat::kJson) {
    Json j = {{"accuracy", accuracy},
              {"records", records.size()},
              {"largest_class", largest},
              {"unknown_tokens", sequences.num_unknown},
              {"texts_cut", sequences.num_cut}};
    j["not_private"] = AllOf(j);
    std::printf("%s\n", j.dump().c_str());
  } else {
    std::printf("accuracy %.4f over %zu texts (the largest class has %.4f of them)\n%s\n", accuracy, records.size(),
                largest, kLocalOnly);
  }
  return OkStatus();
}

Status ClassifyPredict(const ClassifyPredictArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const Opened opened, OpenClassifier(a.model));
  WISP_ASSIGN_OR_RETURN(const std::vector<std::string> texts, ReadTexts(a));
  const Architecture& architecture = opened.file.architecture();
  const std::vector<std::string>& class_names = opened.file.classifier().class_names;
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, DeviceOrProcessor(a.device, DeviceUse::kInference));
  WISP_ASSIGN_OR_RETURN(const auto session,
                        ClassifierSession::Create(architecture, opened.file.tensors(),
                                                  {.device = device.device,
                                                   .num_threads = a.threads == 0 ? DefaultThreads() : a.threads,
                                                   .norm_bound = opened.input().norm_bound,
                                                   .name = a.model}));
  std::vector<float> z(architecture.head.num_classes);
  Json list = Json::array();
  std::vector<int32_t> tokens;
  for (const std::string& text : texts) {
    tokens.clear();
    data::AppendTokens(text, opened.vocabulary, opened.letters, architecture.max_length, tokens);
    WISP_RETURN_IF_ERROR(session->Logits(tokens, z));
    const auto best = std::max_element(z.begin(), z.end());
    double sum = 0;
    for (const float score : z) sum += std::exp(static_cast<double>(score) - *best);
    const auto k = static_cast<size_t>(best - z.begin());
    const std::string name = class_names.empty() ? std::to_string(k) : class_names[k];
    if (format == OutputFormat::kText) std::printf("%-16s %.4f  %s\n", name.c_str(), 1 / sum, text.c_str());
    list.push_back({{"text", text}, {"class", name}, {"probability", 1 / sum}});
  }
  if (format == OutputFormat::kJson)
    std::printf("%s\n", list.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  return OkStatus();
}

}  // namespace wisp::tools
