// Implements `wisp tune`.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger_statement.h"
#include "runtime/train/run/search.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/replaced.h"
#include "tools/wisp/temporary_folder.h"
#include "tools/wisp/training_run.h"

namespace wisp::tools {
namespace {

// More would not be a search but a mistyped list.
constexpr size_t kMostCandidates = 1000;

// A field and the values to try.
struct Searched {
  const Field* field;
  std::vector<std::string> texts;
};
// One of the values of each field.
using Candidate = std::vector<std::string>;

// Fields that change how a run learns, and neither whom it protects nor what it reads.
bool MayBeSearched(const Field& field) {
  const std::string_view path = field.path;
  constexpr std::string_view kPublicConstants[] = {"training.method", "training.sampling", "training.seed",
                                                   "training.num_records_public"};
  if (path == "privacy.clipping_norm" || path == "privacy.clipping") return true;
  return (path.starts_with("training.") || path.starts_with("initialisation.")) &&
         std::find(std::begin(kPublicConstants), std::end(kPublicConstants), path) == std::end(kPublicConstants);
}

Result<Searched> ParseValues(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  const Field* field = FindField(key, RunKind::kEvents);
  if (field == nullptr) field = FindField("training." + key, RunKind::kEvents);
  if (equals == std::string::npos || field == nullptr)
    return InvalidArgument("--values is '", text,
                           "', allowed is a key of a recipe, = and values with commas between: "
                           "optimizer.learning_rate=0.003,0.01");
  if (!MayBeSearched(*field))
    return InvalidArgument("--values names ", field->path,
                           ", allowed are training.* but method, sampling, seed and num_records_public, "
                           "initialisation.*, privacy.clipping and privacy.clipping_norm");
  Searched searched{field, SplitCommas(text.substr(equals + 1))};
  std::erase(searched.texts, "");
  if (searched.texts.empty()) return InvalidArgument("--values names no value of ", field->path);
  return searched;
}

// All combinations; the last field changes first.
std::vector<Candidate> Combine(const std::vector<Searched>& fields) {
  std::vector<Candidate> all = {{}};
  for (const Searched& searched : fields) {
    std::vector<Candidate> longer;
    for (const Candidate& shorter : all) {
      for (const std::string& text : searched.texts) {
        longer.push_back(shorter);
        longer.back().push_back(text);
      }
    }
    all = std::move(longer);
  }
  return all;
}

class TuneCommand {
 public:
  TuneCommand(const TuneArguments& arguments, OutputFormat format, RunSpec recipe, TemporaryFolder folder)
      : a_(arguments),
        format_(format),
        train_(arguments.train),
        recipe_(std::move(recipe)),
        folder_(std::move(folder)) {
    // Every run is scored by events that it does not train on.
    if (recipe_.hold_out == HoldOut::kNothing) recipe_.hold_out = HoldOut::kTest;
  }

  Status Run() {
    WISP_RETURN_IF_ERROR(ReadValues());
    return a_.is_public ? SearchPublicly() : SearchPrivately();
  }

 private:
  Status ReadValues() {
    size_t combinations = 1;
    for (const std::string& text : a_.values) {
      WISP_ASSIGN_OR_RETURN(Searched searched, ParseValues(text));
      for (const Searched& other : fields_) {
        if (other.field == searched.field)
          return InvalidArgument("--values names ", searched.field->path, " twice: give all of its values at once");
      }
      combinations *= searched.texts.size();
      if (combinations > kMostCandidates)
        return InvalidArgument("--values has more than ", kMostCandidates, " combinations: try fewer at a time");
      fields_.push_back(std::move(searched));
    }
    candidates_ = Combine(fields_);
    for (const Candidate& candidate : candidates_) WISP_RETURN_IF_ERROR(MakeSpec(recipe_, candidate).status());
    return OkStatus();
  }

  Result<RunSpec> MakeSpec(RunSpec spec, const Candidate& candidate) const {
    GivenFields given;
    for (size_t i = 0; i < fields_.size(); ++i) given.Give(*fields_[i].field, candidate[i]);
    WISP_RETURN_IF_ERROR(given.Apply(spec, RunKind::kEvents));
    return spec;
  }

  // A ledger of one run, which is removed with the folder.
  Result<privacy::Ledger> OpenLedgerOfRun(const TrainingRun& run) {
    const std::string path = folder_.File("run-" + std::to_string(num_runs_++));
    return privacy::Ledger::Open(path, {.dataset = run.Dataset(), .record = run.record()});
  }

  // Shows steps on standard error, and cancels on an interrupt.
  static void Watch(TrainingJob& job, Progress& progress) {
    const volatile std::sig_atomic_t& interrupted = CatchInterrupts();
    job.progress = [&](const JobProgress& p) {
      progress.Update(p.step, p.num_steps, LossInWords(p));
      return interrupted == 0;
    };
    job.cancelled = [&] { return interrupted != 0; };
  }

  // ---- On public data --------------------------------------------------------------------------------------------

  Status SearchPublicly() {
    // The runs' noise is that of the recipe, and what they charge is forgotten: nobody is to be protected.
    train_.ledger = folder_.File("ledger");
    train_.other_data = true;
    TrainingRun run("tune", train_, recipe_);
    WISP_RETURN_IF_ERROR(run.Read());
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    std::optional<size_t> best;
    double best_quality = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      WISP_ASSIGN_OR_RETURN(TrainingJob job, MakeJob(run, candidates_[i]));
      Progress progress("run " + std::to_string(i + 1) + " of " + std::to_string(candidates_.size()));
      Watch(job, progress);
      std::optional<privacy::Ledger> of_run;
      if (run.is_private()) {
        WISP_ASSIGN_OR_RETURN(of_run, OpenLedgerOfRun(run));
      }
      WISP_ASSIGN_OR_RETURN(const JobResult result, run.RunOnce(std::move(job), of_run ? &*of_run : nullptr, nullptr));
      const RankingQuality quality = result.validation ? *result.validation : result.test.value_or(RankingQuality{});
      rows.push_back({{"values", Values(candidates_[i])},
                      {"ndcg@10", quality.ndcg_at_10},
                      {"hit@10", quality.hit_at_10},
                      {"users", quality.num_users}});
      if (best && quality.ndcg_at_10 <= best_quality) continue;
      best = i;
      best_quality = quality.ndcg_at_10;
    }
    WISP_RETURN_IF_ERROR(WriteRecipe(candidates_[*best]));
    PrintPublic(rows, *best);
    return OkStatus();
  }

  void PrintPublic(const nlohmann::ordered_json& rows, size_t best) const {
    if (format_ == OutputFormat::kJson) {
      nlohmann::ordered_json j = {{"best", Values(candidates_[best])}, {"candidates", rows}};
      if (!a_.out_recipe.empty()) j["recipe"] = a_.out_recipe;
      j["not_private"] = ListFigureNames(j);
      return PrintJson(j);
    }
    PrintText("NDCG@10  HIT@10   values\n");
    for (size_t i = 0; i < rows.size(); ++i) {
      PrintText("%.4f   %.4f   %s%s\n", rows[i]["ndcg@10"].get<double>(), rows[i]["hit@10"].get<double>(),
                InWords(candidates_[i]).c_str(), i == best ? "   (best)" : "");
    }
    if (!a_.out_recipe.empty()) PrintText("%s: the recipe with the best values\n", OneLine(a_.out_recipe).c_str());
    PrintText("not private: no guarantee; the data were declared public\n");
  }

  // ---- On private data -------------------------------------------------------------------------------------------

  struct Best {
    int64_t score;
    size_t candidate;
    RunSpec spec;
    JobResult result;
  };

  Status SearchPrivately() {
    TrainingRun run("tune", train_, recipe_);
    run.begun = [&](FineTune& fine_tune) { return Pay(run, fine_tune); };
    WISP_RETURN_IF_ERROR(run.Read());
    WISP_ASSIGN_OR_RETURN(std::optional<Best> best, RunAll(run));
    if (!best)
      return PrivacyRefused(
          "by chance the search made no run at all: nothing is written, and its charge stays. More --expected-runs "
          "make "
          "that rarer");
    JobResult& result = best->result;
    WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(run.recipe().goal.delta));
    WISP_ASSIGN_OR_RETURN(const privacy::RunEpsilon stated,
                          privacy::StateRun(run.ledger(), plan_->charge.run, privacy::RunLength::kFixed, delta));
    result.mechanisms = {plan_->charge.mechanism};
    result.epsilon = stated.epsilon;
    result.accountant = stated.accountant;
    WISP_RETURN_IF_ERROR(run.Write(best->spec, result));
    WISP_RETURN_IF_ERROR(run.ledger().MarkReleased(charge_));
    WISP_RETURN_IF_ERROR(WriteRecipe(candidates_[best->candidate]));
    PrintPrivate(run, *best);
    return OkStatus();
  }

  // Charges the whole search before anything is read.
  Status Pay(TrainingRun& run, FineTune& fine_tune) {
    const RunSpec& recipe = run.recipe();
    if (recipe.unit == privacy::PrivacyUnit::kSession)
      return Unsupported("a search of sessions is not offered: allowed units are user and day");
    if (NamesRows(recipe.training.method) || NeedsFrequencies(recipe))
      return Unsupported("a search with a popularity histogram is not offered: choose another method");
    std::vector<TrainingOptions> options;
    for (const Candidate& candidate : candidates_) {
      WISP_ASSIGN_OR_RETURN(const RunSpec spec, MakeSpec(recipe, candidate));
      TrainingOptions o = MakeOptions(spec);
      if (o.num_steps == 0) {
        WISP_ASSIGN_OR_RETURN(o.num_steps, EpochsToSteps(spec.epochs, o.num_records_public, o.expected_batch));
      }
      o.base = BaseBeside(*run.base(), spec.architecture, o);
      o.privacy.ledger = fine_tune.ledger();
      options.push_back(std::move(o));
    }
    const auto usual = std::max<uint32_t>(6, 2 * static_cast<uint32_t>(candidates_.size()));
    WISP_ASSIGN_OR_RETURN(plan_, PlanSearch({.architecture = recipe.architecture,
                                             .goal = recipe.goal,
                                             .candidates = options,
                                             .expected_runs = a_.expected_runs.value_or(usual),
                                             .run = fine_tune.RunName(recipe.uncharged_tuning)}));
    privacy::Ledger& ledger = *fine_tune.ledger();
    WISP_ASSIGN_OR_RETURN(const auto before, ledger.Limit());
    WISP_ASSIGN_OR_RETURN(const auto limit, NewLimit(train_.budget, recipe.goal.delta));
    WISP_ASSIGN_OR_RETURN(charge_, ChargeSearch(*plan_, limit, ledger));
    WarnIfRaised(ledger, before);
    return OkStatus();
  }

  // Makes all runs, and keeps the best of them in memory.
  Result<std::optional<Best>> RunAll(TrainingRun& run) {
    WISP_ASSIGN_OR_RETURN(privacy::RandomStream random, privacy::RandomStream::Secure());
    const uint64_t count =
        SamplePoisson(random, static_cast<uint32_t>(plan_->charge.mechanism.Parameter("expected_runs")));
    std::optional<Best> best;
    for (uint64_t r = 0; r < count; ++r) {
      const size_t candidate = random.UniformBelow(candidates_.size());
      const Status done =
          RunOne(run, candidate, random, "run " + std::to_string(r + 1) + " of " + std::to_string(count), best);
      if (done.code() == StatusCode::kCancelled)
        return Cancelled("the search was cancelled: nothing is written, and its charge stays");
      if (!done.ok()) return Status(done.code(), done.message() + "; the charge of the search stays");
    }
    return best;
  }

  Status RunOne(TrainingRun& run, size_t candidate, privacy::RandomStream& random, const std::string& title,
                std::optional<Best>& best) {
    WISP_ASSIGN_OR_RETURN(TrainingJob job, MakeJob(run, candidates_[candidate]));
    job.spec.goal.epsilon.reset();
    job.spec.goal.noise_multiplier = plan_->noise[candidate];
    const RunSpec spec = job.spec;
    Progress progress(title + " (local only)");
    Watch(job, progress);
    WISP_ASSIGN_OR_RETURN(privacy::Ledger of_run, OpenLedgerOfRun(run));
    int64_t score = 0;
    Workers workers(spec.training.num_threads == 0 ? DefaultThreads() : spec.training.num_threads);
    const auto take_score = [&](const JobResult& result, const ModelLists& lists) {
      const std::vector<StoredTensor> tensors =
          LocateTensors(ListParameters(spec.architecture), BaseBeside(*run.base(), spec.architecture, spec.training),
                        result.weights.data());
      random.Freshen();
      score = ScorePrivately(spec.architecture, ParameterSource(tensors), run.sequences(), spec.hold_out, lists, *plan_,
                             workers, random);
      return OkStatus();
    };
    WISP_ASSIGN_OR_RETURN(JobResult result, run.RunOnce(std::move(job), &of_run, take_score));
    WISP_RETURN_IF_ERROR(CheckRunIsPaid(*plan_, of_run));
    if (!best || score > best->score) best = Best{score, candidate, spec, std::move(result)};
    return OkStatus();
  }

  void PrintPrivate(TrainingRun& run, const Best& best) const {
    nlohmann::ordered_json j = {
        {"model", train_.out},
        {"values", Values(candidates_[best.candidate])},
        {"candidates", candidates_.size()},
        {"expected_runs", static_cast<uint64_t>(plan_->charge.mechanism.Parameter("expected_runs"))},
        {"steps", best.result.num_steps},
        {"noise_multiplier", best.result.noise_multiplier},
        {"epsilon", *best.result.epsilon},
        {"delta", run.recipe().goal.delta},
        {"everything_together", SpentAsJson(run.ledger(), run.recipe().goal.delta)},
        {"caveat", StartInWords(run.base(), run.Dataset(), train_.public_datasets)}};
    if (!a_.out_recipe.empty()) j["recipe"] = a_.out_recipe;
    j["not_private"] = NotPrivate(j);
    if (format_ == OutputFormat::kJson) return PrintJson(j);
    PrintText("%s: the best run has %s\n", OneLine(train_.out).c_str(), InWords(candidates_[best.candidate]).c_str());
    PrintText("privacy: the whole search has epsilon %s at delta %s%s\n",
              privacy::EpsilonText(*best.result.epsilon).c_str(), j["delta"].dump().c_str(),
              j["caveat"].get<std::string>().empty() ? "" : ("; " + j["caveat"].get<std::string>()).c_str());
    if (const std::string spent = SpentInWords(run.ledger(), run.recipe().goal.delta); !spent.empty())
      PrintText("spent on this data, everything together: %s\n", spent.c_str());
    PrintText("%s\n", NotPrivateInWords(j).c_str());
  }

  // ---- Both ------------------------------------------------------------------------------------------------------

  Result<TrainingJob> MakeJob(const TrainingRun& run, const Candidate& candidate) const {
    WISP_ASSIGN_OR_RETURN(RunSpec spec, MakeSpec(run.recipe(), candidate));
    return TrainingJob{.spec = std::move(spec)};
  }

  // The values as the recipe has them.
  nlohmann::ordered_json Values(const Candidate& candidate) const {
    nlohmann::ordered_json values;
    RunSpec spec = *MakeSpec(recipe_, candidate);
    for (const Searched& searched : fields_)
      values[searched.field->path] = nlohmann::ordered_json::parse(ValueText(*searched.field, spec));
    return values;
  }

  std::string InWords(const Candidate& candidate) const {
    std::string words;
    const nlohmann::ordered_json values = Values(candidate);
    for (const auto& [path, value] : values.items()) words += (words.empty() ? "" : ", ") + path + " " + value.dump();
    return words;
  }

  Status WriteRecipe(const Candidate& candidate) const {
    if (a_.out_recipe.empty()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(nlohmann::json json, ReadJson(train_.recipe));
    nlohmann::ordered_json values = Values(candidate);
    // Options beside the recipe are the winner's too; epsilon is that of the search.
    RunSpec spec = *MakeSpec(recipe_, candidate);
    for (const auto& [field, text] : train_.given.values()) {
      const bool is_searched = values.contains(field->path);
      if (!is_searched && std::string_view(field->path) != "privacy.epsilon")
        values[field->path] = nlohmann::ordered_json::parse(ValueText(*field, spec));
    }
    for (const auto& [path, value] : values.items()) {
      nlohmann::json* at = &json;
      for (size_t begin = 0; begin <= path.size();) {
        const size_t end = std::min(path.find('.', begin), path.size());
        at = &(*at)[path.substr(begin, end - begin)];
        begin = end + 1;
      }
      *at = value;
      // Epochs replace steps (GivenFields::Apply).
      if (path == "training.epochs") json["training"].erase("steps");
      if (path == "training.steps") json["training"].erase("epochs");
    }
    WISP_RETURN_IF_ERROR(ParseRecipe(a_.out_recipe, json).status());
    const std::string text = JsonText(json, 2) + "\n";
    WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(a_.out_recipe));
    WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(text))));
    return file.Commit();
  }

  const TuneArguments& a_;
  OutputFormat format_;
  TrainArguments train_;
  RunSpec recipe_;
  TemporaryFolder folder_;
  std::vector<Searched> fields_;
  std::vector<Candidate> candidates_;
  uint64_t num_runs_ = 0;
  std::optional<SearchPlan> plan_;
  privacy::ChargeId charge_ = 0;
};

// Refuses options of the other kind of search.
Status CheckKind(const TuneArguments& a, const RunSpec& recipe) {
  const TrainArguments& t = a.train;
  if (recipe.text) return Unsupported(t.recipe, ": it is a recipe of texts, and a search is of events");
  if (a.is_public) {
    const std::pair<const char*, bool> of_private[] = {{"--ledger", !t.ledger.empty()},
                                                       {"--budget", t.budget.has_value()},
                                                       {"--out", !t.out.empty()},
                                                       {"--expected-runs", a.expected_runs.has_value()}};
    for (const auto& [option, given] : of_private) {
      if (given) return InvalidArgument(option, " is of a private search, and --public declares that none is needed");
    }
    return OkStatus();
  }
  if (t.model.empty())
    return InvalidArgument("--model is required for a private search: it starts from a model whose items are public");
  if (t.out.empty()) return InvalidArgument("--out is required: the model of the best run");
  return OkStatus();
}

}  // namespace

Status Tune(const TuneArguments& a, OutputFormat format) {
  const TrainArguments& t = a.train;
  WISP_ASSIGN_OR_RETURN(RunSpec recipe, ReadGivenRecipe(t));
  WISP_RETURN_IF_ERROR(CheckKind(a, recipe));
  WISP_RETURN_IF_ERROR(CheckOptions(t, recipe));
  RunSpec given = recipe;
  WISP_RETURN_IF_ERROR(t.given.Apply(given, RunKind::kEvents));
  if (!a.is_public && given.training.method == Method::kOrdinary)
    return InvalidArgument("the method is ordinary, which protects nothing: choose a --method of ",
                           ListMethods([](Method m) { return m != Method::kOrdinary; }, " or "),
                           ", or declare the data --public");
  const NamedFile recipe_file{"--recipe", t.recipe}, data{"--data", t.data.path}, model{"--model", t.model},
      ledger{"--ledger", t.ledger}, anchor{"--anchor", t.anchor.file}, out{"--out", t.out},
      out_recipe{"--out-recipe", a.out_recipe};
  WISP_RETURN_IF_ERROR(CheckApart(ledger, data));
  WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kModel, out, {recipe_file, data, ledger, anchor, out_recipe}));
  WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kJson, out_recipe, {recipe_file, data, model, ledger, anchor}));
  WISP_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
  return TuneCommand(a, format, std::move(recipe), std::move(folder)).Run();
}

}  // namespace wisp::tools
