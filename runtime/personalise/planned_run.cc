#include "runtime/personalise/planned_run.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "runtime/core/file.h"
#include "runtime/core/file_lock.h"
#include "runtime/core/platform.h"
#include "runtime/core/text.h"
#include "runtime/model/checkpoint.h"
#include "runtime/model/catalogue.h"
#include "runtime/personalise/forecast.h"
#include "runtime/personalise/lineage.h"
#include "runtime/personalise/run_figures.h"
#include "runtime/personalise/plan_files.h"
#include "runtime/personalise/heal_plan.h"
#include "runtime/personalise/weighed_base.h"
#include "runtime/privacy/statement.h"
#include "runtime/train/bias_weight.h"
#include "runtime/train/run/fine_tune.h"
#include "runtime/train/run/known_sessions.h"
#include "runtime/train/run/records.h"
#include "runtime/train/run/saved_run.h"

namespace wisp {
namespace {

using privacy::Ledger;

constexpr char kLocalChoice[] = "which model is served and trains on";
// All evaluations of a plan have this one name: their cost is one figure, and the ledger does not reveal which runs
// evaluated.
constexpr char kEvaluationRun[] = "evaluation";

class PlannedRun {
 public:
  PlannedRun(const PlannedRunOptions& options, const DeploymentSettings& settings, const ModelFile& base,
             Ledger& ledger, privacy::RecordSpec record)
      : o_(options), files_(options.output), base_(base), ledger_(ledger), record_(std::move(record)) {
    result_.settings = settings;
  }

  Result<PlannedRunResult> Run() {
    WISP_RETURN_IF_ERROR(CheckMemory());
    WISP_RETURN_IF_ERROR(OpenFiles());
    files_.RemoveAbandoned();
    RemoveAbandoned(SavedRun::LedgerRoomOf(o_.ledger.path));
    // An earlier run may have found something out and been stopped before it acted.
    WISP_RETURN_IF_ERROR(ServeReference());
    WISP_RETURN_IF_ERROR(ActOnEvaluations());
    WISP_ASSIGN_OR_RETURN(result_.left, ComputeLeft(ledger_, settings()));
    if (!o_.early) WISP_RETURN_IF_ERROR(CheckDue(ledger_, settings(), result_.left, std::time(nullptr)));
    WISP_ASSIGN_OR_RETURN(until_.second, TrainsUntil(ledger_, settings(), std::time(nullptr)));
    until_.times_per_second = record_.events().times_per_second;
    WISP_RETURN_IF_ERROR(Train());
    if (const Status status = ChooseAndReport(); !status.ok()) return WithTraining(status);
    return std::move(result_);
  }

 private:
  Status ChooseAndReport() {
    WISP_ASSIGN_OR_RETURN(models_, OpenPlanModels(files_, base_));
    WISP_ASSIGN_OR_RETURN(result_.left, ComputeLeft(ledger_, settings()));
    WISP_RETURN_IF_ERROR(ServeReference());
    WISP_RETURN_IF_ERROR(Choose());
    WISP_ASSIGN_OR_RETURN(result_.left, ComputeLeft(ledger_, settings()));
    return ReportServed();
  }

  // Adds to an error after the training that the training was paid for.
  Status WithTraining(const Status& status) const {
    if (result_.steps == 0) return status;
    return {status.code(), ScopeChargeMessage(status.message()) + "; before it, " + CountedWere(result_.steps, "step") +
                               " trained: what that cost stays charged, and " + files_.candidate + " is kept"};
  }

  const DeploymentSettings& settings() const { return result_.settings; }
  // The model that candidates must be better than, served until one is: the base, or the base with the weight of its
  // bias that was found better.
  const ModelFile& reference() const { return weighed_ ? *weighed_ : base_; }
  // The model that training started from.
  const ModelFile& origin() const { return models_.start ? *models_.start : base_; }

  // Nothing is deleted or replaced before all readable files are known to belong to this plan.
  Status OpenFiles() {
    has_output_ = platform::IsThere(files_.served);
    if (has_output_ && !IsServedDamaged(files_)) WISP_RETURN_IF_ERROR(CheckServed());
    WISP_RETURN_IF_ERROR(CheckWeighedBase(files_.weighed, base_));
    WISP_ASSIGN_OR_RETURN(models_, HealPlanModels(files_, base_, Warn()));
    if (!has_output_) return files_.HasAny() ? ServeFile(o_.base_path) : OkStatus();
    WISP_ASSIGN_OR_RETURN(const bool healed, HealServed(files_, o_.base_path, Warn()));
    result_.changed = result_.changed || healed;
    return OkStatus();
  }

  // Checks that the served file belongs to this plan, before it is replaced.
  Status CheckServed() const {
    WISP_ASSIGN_OR_RETURN(const ModelFile served, ModelFile::Open(files_.served));
    if (served.content_hash() == base_.content_hash() || BeganWith(served, base_)) return OkStatus();
    return InvalidArgument(
        files_.served, ": it is neither ", o_.base_path,
        " nor was it personalised from it: carry it over with `wisp catalogue rebase`, or name another output");
  }

  Status CheckMemory() const {
    if (o_.max_bytes == 0) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const size_t bytes, CountRunMemory(base_.architecture(), settings(), o_.num_threads));
    if (bytes <= o_.max_bytes) return OkStatus();
    return InvalidArgument("training in a run holds ", bytes, " bytes, max_bytes allows ", o_.max_bytes,
                           "; fewer threads hold less");
  }

  using Says = PlannedRunOptions::Says;
  void Say(Says kind, const std::string& sentence) const {
    if (o_.say && !sentence.empty()) o_.say(kind, sentence);
  }
  SayDamage Warn() const {
    return [this](const std::string& sentence) { Say(Says::kWarning, sentence); };
  }

  Status ServeFile(const std::string& path) {
    WISP_RETURN_IF_ERROR(CopyFile(path, files_.served));
    has_output_ = result_.changed = true;
    return OkStatus();
  }
  // Called only after the log was read, so that a misspelt path leaves no model in a first run.
  Status ServeBaseIfNone() { return has_output_ ? OkStatus() : ServeFile(o_.base_path); }
  Result<bool> IsServed(const ModelFile& model) const {
    if (!has_output_) return false;
    WISP_ASSIGN_OR_RETURN(const ModelFile served, ModelFile::Open(files_.served));
    return served.content_hash() == model.content_hash();
  }
  Status Serve(const ModelFile& model) {
    WISP_ASSIGN_OR_RETURN(const bool is_served, IsServed(model));
    return is_served ? OkStatus() : ServeFile(model.name());
  }

  // Finds the reference, and serves it in place of the base or of an earlier reference.
  Status ServeReference() {
    if (settings().evaluations == 0) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const auto better, FindBetterWeight(ledger_, settings(), base_.content_hash()));
    const bool is_taken_back = !better && platform::IsThere(files_.weighed);
    weighed_.reset();
    if (better) {
      WISP_ASSIGN_OR_RETURN(weighed_, OpenWeighedBase(files_.weighed, base_, *better, ledger_, settings()));
    }
    if (has_output_) {
      WISP_ASSIGN_OR_RETURN(const ModelFile served, ModelFile::Open(files_.served));
      // Evidence against a weight that is taken back is evidence against a model worse than the base.
      if (is_taken_back || served.content_hash() == base_.content_hash() || IsWeighedFrom(served, base_))
        WISP_RETURN_IF_ERROR(Serve(reference()));
    }
    return is_taken_back ? RemoveFile(files_.weighed) : OkStatus();
  }

  // Reads the log once, as late as possible: a refused run then reads nothing that it would have trained on.
  Status Read() {
    if (data_) return OkStatus();
    // The ledger's units are used, so no run can read other records than those that it charges.
    WISP_ASSIGN_OR_RETURN(const data::Units units, MakeUnits(record_.events()));
    WISP_ASSIGN_OR_RETURN(const data::ItemIndex index, data::ItemIndex::Make(o_.base_path, GetItemKeys(base_)));
    WISP_ASSIGN_OR_RETURN(data_,
                          o_.read({.known_items = &index, .units = units, .private_run = true, .keep_times = true}));
    WISP_RETURN_IF_ERROR(CheckSessionsAreKnown(ledger_, data_->sequences));
    result_.log = data_->report;
    return OkStatus();
  }

  Status Train() {
    const uint64_t wanted = result_.left.steps_of_next;
    WISP_ASSIGN_OR_RETURN(const uint64_t steps,
                          StepsThatPlanCovers(ledger_, settings(), result_.left, origin().architecture(), wanted));
    if (steps == 0) {
      Say(Says::kWarning, wanted == 0 ? "the plan has no steps left: nothing is trained"
                                      : "no step of this model fits what is left of the plan: nothing is trained");
      return ServeBaseIfNone();
    }
    WISP_RETURN_IF_ERROR(ReportIfStartingOver());
    WISP_RETURN_IF_ERROR(DiscardOtherPlan());
    if (models_.candidate && !files_.HasCheckpoint()) {
      WISP_RETURN_IF_ERROR(files_.BeginWithCandidate());
      WISP_ASSIGN_OR_RETURN(models_, OpenPlanModels(files_, base_));
    }
    WISP_ASSIGN_OR_RETURN(FineTune run, Begin());
    WISP_RETURN_IF_ERROR(Read());
    WISP_RETURN_IF_ERROR(ServeBaseIfNone());
    const data::Sequences until_then = data::EventsUntil(data_->sequences, until_);
    std::vector<float> dequantised, of_base;
    ModelContents contents = GetContents(origin(), dequantised);
    contents.created_by = o_.created_by;
    TrainingJob job = Job(contents, until_then);
    if (models_.start && settings().bias_weight_releases > 0)
      job.weighed = {GetContents(base_, of_base).weights, base_.lists(), base_.content_hash()};
    job.pause_after = steps;
    WISP_ASSIGN_OR_RETURN(result_.training, run.Run(std::move(job), {.path = files_.candidate,
                                                                     .contents = std::move(contents),
                                                                     .description = "personalised on the device"}));
    result_.steps = result_.training->num_steps - result_.training->resumed_from;
    Say(Says::kInfo,
        "trained " + Counted(result_.steps, "step") + ", " + std::to_string(result_.training->num_steps) + " in all");
    Say(Says::kWarning, result_.training->ended_early);
    Say(Says::kWarning, result_.training->save_failure);
    KeepFigures();
    return OkStatus();
  }

  Status ReportIfStartingOver() const {
    if (models_.candidate || models_.start || files_.HasCheckpoint()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const uint64_t trained, StepsTrained(ledger_));
    const bool loses_counts = settings().succession_releases > result_.left.succession_releases;
    if (trained > 0)
      Say(Says::kWarning, "training starts over from the base, because no candidate or checkpoint lies beside " +
                              files_.served + "; " + CountedWere(trained, "step") +
                              " trained before, and what that cost stays charged" +
                              (loses_counts ? "; so do counts of which item follows which, which are lost" : ""));
    return OkStatus();
  }

  // The figures are not needed by the run: if they cannot be stored, a warning says so.
  void KeepFigures() const {
    const SeenBySteps& seen = result_.training->seen;
    const double all = std::max<double>(1, static_cast<double>(seen.num_gradients));
    const Status kept = AddRunFigures(files_.local, {.steps_of_model = result_.training->num_steps,
                                                     .mean_loss = std::isfinite(seen.mean_loss) ? seen.mean_loss : 0,
                                                     .clipped_share = static_cast<double>(seen.num_clipped) / all});
    if (!kept.ok()) Say(Says::kWarning, kept.message());
  }

  // Deletes a checkpoint from before the plan was changed, because its steps are of another kind.
  Status DiscardOtherPlan() const {
    if (!result_.left.by_filter || !files_.HasCheckpoint()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(files_.checkpoint));
    WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger_.Entries());
    WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PlanSteps(base_.architecture(), settings()));
    WISP_ASSIGN_OR_RETURN(const std::vector<privacy::Mechanism> step, plan.Mechanisms(1));
    const bool same = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
      return entry.run == checkpoint.run_id && entry.mechanism.DiffersInStepsOnly(step.front());
    });
    return same ? OkStatus() : files_.ForgetCheckpoint();
  }

  static constexpr const char* Tuning(const DeploymentSettings& s) {
    return s.evaluations > 0 && s.evaluates_locally != 0 ? kLocalChoice : "";
  }

  // Makes a name that is new in the ledger, because two runs with one name would count as one lineage.
  Result<std::string> NewRun() const {
    WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger_.Entries());
    std::string name = o_.run;
    const auto is_there = [&](const privacy::LedgerEntry& e) {
      return e.run == privacy::WithTuning(name, Tuning(settings()));
    };
    for (int n = 2; std::any_of(entries.begin(), entries.end(), is_there); ++n)
      name = o_.run + " (" + std::to_string(n) + ")";
    return name;
  }

  Result<FineTune> Begin() const {
    WISP_ASSIGN_OR_RETURN(std::string run, NewRun());
    return FineTune::Begin({.base = &origin(),
                            .base_path = origin().name(),
                            .adapter_path = {},
                            .dataset = o_.dataset.empty() ? ledger_.dataset() : o_.dataset,
                            .other_data = o_.other_data,
                            .run = std::move(run),
                            .ledger = LedgerToTrain{.path = o_.ledger.path,
                                                    .anchor = o_.ledger.anchor,
                                                    .begin_anchor = false,
                                                    .record = record_,
                                                    .unit_chosen = true}});
  }

  TrainingJob Job(const ModelContents& start, const data::Sequences& sequences) const {
    TrainingJob job;
    job.sequences = &sequences;
    job.spec.hold_out = HoldOut::kNothing;
    job.spec.uncharged_tuning = Tuning(settings());
    job.spec.architecture = start.architecture;
    job.spec.training = MakeTrainingOptions(settings());
    job.spec.training.num_threads = o_.num_threads;
    job.spec.training.executor = o_.executor;
    job.spec.training.device = o_.device;
    job.spec.goal = {.epsilon = {}, .noise_multiplier = settings().training_noise, .delta = settings().delta};
    job.start_weights = start.weights;
    job.checkpoint_path = files_.checkpoint;
    job.shrink_changes = settings().shrinks_changes != 0;
    job.bias_weight = {settings().bias_weight_releases, settings().bias_weight_noise};
    job.successions = {settings().succession_releases, settings().succession_noise};
    job.progress = o_.progress, job.cancelled = o_.cancelled;
    return job;
  }

  // Evaluations are spread evenly over the steps, and each needs a candidate that was not evaluated yet. Until then a
  // new base is served as it is. A new base's first evaluation is due at once if the plan has a fixed trains_until.
  // Otherwise it could use only the events since the newest evaluation: too few to decide, and that evaluation would be
  // missing later.
  Result<bool> EvaluationIsDue(const std::vector<Evaluation>& evaluated) const {
    const DeploymentSettings& s = settings();
    if (!models_.candidate || result_.left.evaluations == 0) return false;
    WISP_ASSIGN_OR_RETURN(const auto results, ledger_.Results());
    WISP_ASSIGN_OR_RETURN(const bool knows_base, WasEvaluated(ledger_, reference().content_hash()));
    const bool knows_another = std::any_of(results.begin(), results.end(), [](const privacy::LedgerResult& result) {
      return !IsWeighedBias(result.text);
    });
    if (!knows_base && knows_another && s.trains_until > 0) return true;
    const uint64_t steps = s.num_steps() - std::min(s.num_steps(), result_.left.steps);
    const uint64_t evaluations = s.evaluations - result_.left.evaluations - s.evaluations_before;
    return steps * (s.evaluations - s.evaluations_before) / s.num_steps() > evaluations &&
           (evaluated.empty() || evaluated.back().candidate != models_.candidate->content_hash());
  }

  Status Choose() {
    if (!models_.candidate) return OkStatus();
    if (settings().evaluations == 0) return Serve(*models_.candidate);
    if (settings().evaluates_locally != 0) return ChooseLocally();
    WISP_ASSIGN_OR_RETURN(const std::vector<Evaluation> evaluated, Evaluated());
    WISP_ASSIGN_OR_RETURN(const bool due, EvaluationIsDue(evaluated));
    if (!due) return OkStatus();
    WISP_RETURN_IF_ERROR(Read());
    EvaluationOptions options = MakeEvaluationOptions();
    WISP_ASSIGN_OR_RETURN(options.line, FindLineage(ledger_, *models_.candidate, base_));
    // An evaluation without a lineage would count for all lineages.
    if (options.line == 0) return OkStatus();
    WISP_RETURN_IF_ERROR(EvaluateCandidate(base_.architecture(), GetSource(reference()), GetSource(*models_.candidate),
                                           data_->sequences, options)
                             .status());
    result_.evaluated = true;
    WISP_ASSIGN_OR_RETURN(result_.evaluation_events, CountEvaluationEvents(data_->sequences, options));
    WISP_RETURN_IF_ERROR(ActOnEvaluations());
    Say(Says::kInfo, std::string("evaluated: ") + GetName(result_.verdict.kind));
    return OkStatus();
  }

  static ParameterSource GetSource(const ModelFile& model) { return ParameterSource(model.tensors()); }
  EvaluationOptions MakeEvaluationOptions() const {
    const DeploymentSettings& s = settings();
    return {.ledger = &ledger_,
            .run = kEvaluationRun,
            .noise_multiplier = s.evaluation_noise,
            .gain_scale = s.gain_scale,
            .base = reference().content_hash(),
            .candidate = models_.candidate->content_hash(),
            .num_targets = s.num_targets,
            .after = until_,
            .lists_of_base = reference().lists(),
            .lists_of_candidate = models_.candidate->lists(),
            .num_threads = o_.num_threads,
            .executor = o_.executor};
  }

  // Evaluates the newest candidate without noise and without a charge.
  Status ChooseLocally() {
    WISP_RETURN_IF_ERROR(Read());
    WISP_ASSIGN_OR_RETURN(const Evaluation evaluated,
                          EvaluateLocally(base_.architecture(), GetSource(reference()), GetSource(*models_.candidate),
                                          data_->sequences, MakeEvaluationOptions()));
    result_.evaluated = true;
    WISP_ASSIGN_OR_RETURN(result_.evaluation_events, CountEvaluationEvents(data_->sequences, MakeEvaluationOptions()));
    result_.verdict = Decide(settings().rule(), std::span(&evaluated, 1));
    if (result_.verdict.kind == Verdict::Kind::kBetter) return Serve(*models_.candidate);
    return result_.verdict.kind == Verdict::Kind::kWorse ? Serve(reference()) : OkStatus();
  }

  // The evaluations of the lineage that training resumes; those of another say nothing about it. Empty if a lineage is
  // about to begin.
  Result<std::vector<Evaluation>> Evaluated() const {
    uint64_t line = 0;
    if (models_.candidate || models_.start) {
      WISP_ASSIGN_OR_RETURN(line, FindLineage(ledger_, models_.candidate ? *models_.candidate : *models_.start, base_));
    } else if (files_.HasCheckpoint()) {
      WISP_ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(files_.checkpoint));
      if (checkpoint.receipt.empty()) return std::vector<Evaluation>();
      WISP_ASSIGN_OR_RETURN(line, FindLineage(ledger_, checkpoint.receipt, files_.checkpoint));
    } else {
      return std::vector<Evaluation>();
    }
    return ReadEvaluations(ledger_, reference().content_hash(), line);
  }

  // The served model may be of a lineage that has ended before its last verdict was acted upon.
  Status ReplaceWorseModel() {
    if (!has_output_) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const ModelFile served, ModelFile::Open(files_.served));
    if (served.content_hash() == base_.content_hash() || IsWeighedFrom(served, base_)) return OkStatus();
    const Result<uint64_t> line = FindLineage(ledger_, served, base_);
    if (line.status().code() == StatusCode::kPrivacyRefused) return OkStatus();  // another ledger paid for it
    WISP_RETURN_IF_ERROR(line.status());
    WISP_ASSIGN_OR_RETURN(const auto evaluated, ReadEvaluations(ledger_, reference().content_hash(), *line));
    const bool is_worse = !evaluated.empty() && wisp::Serve(settings().rule(), evaluated).newest_is_worse;
    return is_worse ? Serve(reference()) : OkStatus();
  }

  Status ActOnEvaluations() {
    if (settings().evaluates_locally != 0) return OkStatus();
    WISP_RETURN_IF_ERROR(ReplaceWorseModel());
    WISP_ASSIGN_OR_RETURN(const std::vector<Evaluation> evaluated, Evaluated());
    if (evaluated.empty()) return OkStatus();
    const Served served = wisp::Serve(settings().rule(), evaluated);
    result_.verdict = served.verdict;
    if (served.newest_is_worse) return Serve(reference());
    const uint64_t candidate = models_.candidate ? models_.candidate->content_hash() : 0;
    if (!served.evaluation || evaluated[*served.evaluation].candidate != candidate) return OkStatus();
    return Serve(*models_.candidate);
  }

  Status ReportServed() {
    result_.steps_of_model = models_.candidate ? models_.candidate->provenance().back().steps : 0;
    WISP_ASSIGN_OR_RETURN(const bool base, IsServed(base_));
    WISP_ASSIGN_OR_RETURN(const bool weighed, IsServed(reference()));
    const char* is = base ? "the base" : weighed ? "the base with another weight of its bias" : "a personalised model";
    // With local evaluation, saying which model is served would reveal something about the records.
    if (settings().evaluates_locally == 0) Say(Says::kInfo, std::string(is) + " is served");
    using enum PlannedRunResult::Serves;
    result_.serves = base ? kBase : weighed ? kWeighedBase : kEarlierCandidate;
    if (base || weighed || !models_.candidate) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const bool newest, IsServed(*models_.candidate));
    if (newest) result_.serves = kNewestCandidate;
    return OkStatus();
  }

  const PlannedRunOptions& o_;
  const PlanFiles files_;
  const ModelFile& base_;
  Ledger& ledger_;
  const privacy::RecordSpec record_;
  PlanModels models_;
  std::optional<ModelFile> weighed_;  // reference(), if that is not the base
  bool has_output_ = false;           // a model is already served
  data::Moment until_;                // later events are for evaluation and do not train
  std::optional<data::ReadResult> data_;
  PlannedRunResult result_;
};

// Adds advice to an error about a file that is damaged or not there, which a run cannot repair.
Status Advised(const Status& status, const std::string& path, const char* advice) {
  if (status.code() != StatusCode::kInvalidData && platform::IsThere(path)) return status;
  return {status.code(), JoinText(status.message(), "; ", advice)};
}

// The definition of one record, by the ledger; the log must be read from the same columns and table.
Result<privacy::RecordSpec> MakeRunRecord(const Ledger& ledger, const PlannedRunOptions& o) {
  WISP_ASSIGN_OR_RETURN(privacy::RecordSpec record, ledger.RequireRecord());
  privacy::RecordSpec::Events read = record.events();
  read.source = o.source;
  const privacy::RecordSpec as_read = privacy::RecordSpec::OfEvents(read);
  if (as_read == record) return record;
  return PrivacyRefused("ledger '", ledger.path(), "' protects ", record.InWords(), "; the log is to be read as ",
                        as_read.InWords(), ": costs of different records do not add up");
}

// Refuses an output that was not trained under this plan: nothing of the plan lies there, or the file is neither the
// base nor made from it.
Status RefuseStartingOver(const std::string& output, const ModelFile& base, const Ledger& ledger) {
  const PlanFiles files(output);
  if (files.HasCandidate() || files.HasCheckpoint() || files.HasStart()) return OkStatus();
  const Result<ModelFile> served = ModelFile::Open(output);
  if (served.ok() && (served->content_hash() == base.content_hash() || BeganWith(*served, base))) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const uint64_t trained, StepsTrained(ledger));
  if (trained == 0) return OkStatus();
  return InvalidArgument(output, ": it is not there, or not of this deployment, though ", CountedWere(trained, "step"),
                         " trained under the plan of ledger '", ledger.path(),
                         "': name the model that they made, or let a new one start from the base (`start_over`)");
}

}  // namespace

Result<PlannedRunResult> RunPlanned(const PlannedRunOptions& o) {
  if (o.base_path.empty() || o.output.empty() || o.ledger.path.empty() || !o.read)
    return InvalidArgument("a run needs a base, an output, a ledger and a log");
  std::vector<NamedFile> others = {{"the base", o.base_path}, {"the ledger", o.ledger.path}};
  for (const PlannedRunOptions::FileRead& read : o.reads) {
    WISP_RETURN_IF_ERROR(CheckApart({"the ledger", o.ledger.path}, {read.name, read.path}));
    others.push_back({read.name, read.path});
  }
  WISP_RETURN_IF_ERROR(PlanFiles(o.output).CheckDistinct(others));
  WISP_RETURN_IF_ERROR(CheckWritable(o.output));
  Result<Ledger> opened = Ledger::OpenExisting(o.ledger.path, o.ledger.anchor, o.ledger.begin_anchor);
  if (!opened.ok())
    return Advised(opened.status(), o.ledger.path,
                   "where no deployment was planned yet, make the plan first (`wisp_plan_make`); otherwise put its "
                   "newest copy back, and count what was charged since as spent");
  Ledger ledger = *std::move(opened);
  WISP_ASSIGN_OR_RETURN(const DeploymentSettings settings, RequireSettings(ledger));
  if (!o.dataset.empty()) WISP_RETURN_IF_ERROR(ledger.CheckDataset(o.dataset));
  WISP_ASSIGN_OR_RETURN(const privacy::RecordSpec record, MakeRunRecord(ledger, o));
  const Result<ModelFile> base = ModelFile::Open(o.base_path, Verify::kFull);
  if (!base.ok())
    return Advised(base.status(), o.base_path,
                   "it is the base, which no run can do without: put it back as it was shipped");
  WISP_RETURN_IF_ERROR(CheckPlanBase(settings, *base, ledger));
  if (o.start_over == PlannedRunOptions::StartOver::kRefused)
    WISP_RETURN_IF_ERROR(RefuseStartingOver(o.output, *base, ledger));
  const std::string held = o.output + ": another run personalises it; allowed is one at a time";
  WISP_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take(PlanFiles(o.output).lock, held));
  return PlannedRun(o, settings, *base, ledger, record).Run();
}

}  // namespace wisp
