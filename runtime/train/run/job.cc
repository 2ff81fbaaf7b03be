#include "runtime/train/run/job.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>

#include "runtime/core/platform.h"
#include "runtime/core/text.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/check_options.h"
#include "runtime/train/check_records.h"
#include "runtime/train/checkpoint_parts.h"
#include "runtime/train/method_table.h"
#include "runtime/train/run/job_popularity.h"
#include "runtime/train/run/job_releases.h"
#include "runtime/train/run/known_sessions.h"
#include "runtime/train/run/saved_run.h"
#include "runtime/train/run/shrink_changes.h"

namespace wisp {
namespace {

using privacy::Mechanism;
using privacy::RandomStream;
using privacy::StreamPurpose;

// Accounting for the display takes about 10 ms each time; this many updates are enough for a moving progress bar.
constexpr uint64_t kEpsilonDisplays = 20;

class JobRun {
 public:
  explicit JobRun(const TrainingJob& job) : job_(job) {}

  Result<JobResult> Run() {
    const auto start = std::chrono::steady_clock::now();
    WISP_RETURN_IF_ERROR(Prepare());
    if (job_.started && !job_.shrink_changes && !RestoresRows() && NumReleases() == 0) job_.started();
    WISP_RETURN_IF_ERROR(TrainOrReport());
    trainer_->EndSteps();
    TakeWeights();
    WISP_RETURN_IF_ERROR(AddChargeNote(trainer_->CheckDevice()));
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!set_.test.empty()) result_.test = Evaluate(set_.test);
    if (!set_.validation.empty()) result_.validation = Evaluate(set_.validation);
    if (job_.write) WISP_RETURN_IF_ERROR(AddChargeNote(job_.write(result_)));
    if (!result_.paused) saved_.Remove();
    return std::move(result_);
  }

 private:
  bool is_private() const { return IsPrivate(options_); }

  Charged GetCharged() const { return FindCharged(*options_.privacy.ledger, trainer_->run(), trainer_->num_charged()); }

  // Adds to an error that its charges stay spent, if anything was charged.
  Status AddChargeNote(const Status& status) const {
    return is_private() && !status.ok() ? AddSavedState(status, saved_, GetCharged()) : status;
  }

  Status Prepare() {
    WISP_RETURN_IF_ERROR(Validate(spec_.architecture));
    WISP_RETURN_IF_ERROR(CheckStartWeights());
    if (job_.sequences != nullptr) {
      if (is_private() && options_.privacy.ledger != nullptr)
        WISP_RETURN_IF_ERROR(CheckSessionsAreKnown(*options_.privacy.ledger, *job_.sequences));
      set_ = MakeRecords(*job_.sequences, spec_.architecture.max_length, spec_.hold_out);
    } else {
      set_.records.assign(job_.records.begin(), job_.records.end());
    }
    result_.num_records = set_.records.size();
    if (is_private()) {
      const uint32_t longest = LongestRecord(spec_.architecture, options_.cut_to);
      // A refusal would reveal that a record exists or is malformed.
      result_.num_dropped =
          std::erase_if(set_.records, [&](const Record& r) { return !IsTrainable(spec_.architecture, r, longest); });
      const auto is_bad = [&](const RankingCase& c) { return !IsRankable(spec_.architecture, c); };
      std::erase_if(set_.validation, is_bad);
      std::erase_if(set_.test, is_bad);
    } else if (set_.records.empty() && job_.sequences != nullptr) {
      return InvalidData("no user has two events or more to train on");
    }
    if (options_.method == Method::kDpFp) options_.sampling = Sampling::kPoisson;
    if (options_.num_steps == 0) {
      WISP_ASSIGN_OR_RETURN(options_.num_steps, EpochsToSteps(spec_.epochs, NumRecords(), options_.expected_batch));
    }
    if (options_.num_steps == 0) return InvalidArgument("neither epochs nor steps are given");
    if (job_.evaluate_every > 0 &&
        (is_private() ? spec_.hold_out != HoldOut::kValidationAndTest : set_.validation.empty())) {
      return InvalidArgument(
          "evaluation during training needs a validation item: set the hold-out to validation_and_test");
    }
    WISP_RETURN_IF_ERROR(saved_.Claim(job_.checkpoint_path));
    std::optional<Checkpoint> checkpoint;
    if (!job_.checkpoint_path.empty() && platform::IsThere(job_.checkpoint_path)) {
      WISP_ASSIGN_OR_RETURN(checkpoint, ReadCheckpoint(job_.checkpoint_path));
      if (checkpoint) saved_.Found(checkpoint->step);
    }
    WISP_RETURN_IF_ERROR(popularity_.Prepare());
    std::vector<float> weights = StartWeights();
    if (IsPaper(options_)) WISP_RETURN_IF_ERROR(CheckPaperGoal());
    if (is_private()) WISP_RETURN_IF_ERROR(PreparePrivacy(weights));
    WISP_RETURN_IF_ERROR(Trainer::Check(spec_.architecture, weights, set_.records, options_));
    if (job_.pause_after > 0 && job_.checkpoint_path.empty())
      return InvalidArgument("a run that is to pause after ", Counted(job_.pause_after, "step"), " needs a checkpoint");
    result_.planned_steps = options_.num_steps;
    const uint64_t done = checkpoint ? std::min(checkpoint->step, options_.num_steps) : 0;
    const uint64_t left = options_.num_steps - done;
    end_ = done + (job_.pause_after > 0 ? std::min(job_.pause_after, left) : left);
    if (is_private()) {
      WISP_ASSIGN_OR_RETURN(const Budget::End end, budget_.Check(done, end_, checkpoint.has_value()));
      if (!end.refusal.ok()) result_.ended_early = EndedEarly(end.step, end_, end.refusal);
      end_ = end.step;
    }
    WISP_RETURN_IF_ERROR(Reserve());
    WISP_RETURN_IF_ERROR(CheckNotCancelled());
    if (checkpoint) return Resume(*checkpoint, weights);
    // A device without memory, or one that cannot run its kernels, is found before anything is charged, the popularity
    // histogram included.
    if (!options_.device.memory.is_host()) {
      WISP_RETURN_IF_ERROR(MakeTrainer(weights));
      trainer_.reset();
    }
    if (is_private()) WISP_RETURN_IF_ERROR(budget_.Begin());
    WISP_ASSIGN_OR_RETURN(const Popularity popularity, SetPopularity(job_, set_.records, weights));
    popularity_.Use(popularity);
    WISP_RETURN_IF_ERROR(MakeTrainer(weights));
    if (popularity.histogram.empty()) return CheckNotCancelled();
    Save();  // the histogram may already be charged
    return OkStatus();
  }

  // Call this before the first charge.
  Status CheckNotCancelled() const {
    if (!job_.cancelled || !job_.cancelled()) return OkStatus();
    return CancelledBeforeSteps();
  }

  Status CancelledBeforeSteps() const {
    return Cancelled("training was cancelled before its first step; nothing was charged, and ",
                     DescribeSavedState(saved_, {}));
  }

  // Reserves disk space before anything is charged.
  Status Reserve() {
    if (!job_.checkpoint_path.empty()) {
      const std::vector<ParameterSpec> parameters = ListParameters(spec_.architecture);
      const size_t trained = TrainedBy(parameters, options_).size();
      const size_t kept = spec_.architecture.adapter ? trained : FlatSize(parameters) - FirstHeld(parameters, options_);
      const uint64_t floats = kept * (options_.ema_decay > 0 ? 2 : 1) * sizeof(float);
      const uint64_t indices =
          (popularity_.num_rows() + (options_.sampling == Sampling::kShuffled ? set_.records.size() : 0)) *
          sizeof(uint32_t);
      const uint64_t releases =
          uint64_t{spec_.architecture.head.num_classes} * spec_.architecture.width * sizeof(double);
      constexpr uint64_t kBeside = 256 << 10, kEveryWithoutCharges = 50;
      WISP_RETURN_IF_ERROR(saved_.Reserve(
          {.every = job_.checkpoint_every > 0 || is_private() ? job_.checkpoint_every : kEveryWithoutCharges,
           .bytes = floats + Optimizer::PlanBytes(options_.optimizer, trained) + indices + releases + kBeside}));
    }
    if (!is_private()) return OkStatus();
    const uint64_t charges = end_ / std::max(1u, options_.privacy.steps_per_charge) + 1;
    const uint64_t parts = ReleasesHead(options_) && HasGradients(options_) ? 2 : 1;
    return saved_.ReserveLedger(options_.privacy.ledger->path(), parts * charges + 1 + NumReleases());
  }

  // Resumes a run. The checkpoint has what was released before its first step, which is already paid for.
  Status Resume(const Checkpoint& checkpoint, std::span<const float> weights) {
    if (is_private() && spec_.goal.histogram_noise > 0) {
      WISP_RETURN_IF_ERROR(checkpoint_parts::CheckCharged(*options_.privacy.ledger, checkpoint, "item popularity", 1));
    }
    if (is_private()) WISP_RETURN_IF_ERROR(CheckHistogram(job_, *options_.privacy.ledger, checkpoint, overheads_));
    popularity_.UseRows(checkpoint.item_rows);
    if (!checkpoint.successions.empty()) result_.successions = UnpackSuccessions(checkpoint.successions);
    WISP_RETURN_IF_ERROR(MakeTrainer(weights));
    WISP_RETURN_IF_ERROR(trainer_->Restore(checkpoint));
    if (!result_.ended_early.empty()) trainer_->EndAt(std::max(end_, checkpoint.step));
    result_.resumed_from = checkpoint.step;
    WISP_RETURN_IF_ERROR(CheckNotCancelled());
    return is_private() ? budget_.Begin() : OkStatus();
  }

  Status MakeTrainer(std::span<const float> weights) {
    WISP_ASSIGN_OR_RETURN(trainer_, Trainer::Create(spec_.architecture, weights, set_.records, options_));
    result_.planned_bytes = trainer_->planned_bytes();
    result_.record_state_bytes = trainer_->record_state_bytes();
    if (result_.ended_early.empty()) trainer_->PauseAt(end_);
    if (!ReleasesHead(options_)) trainer_->StopBy(job_.cancelled);
    return OkStatus();
  }

  void Save(SavedRun::Again again = SavedRun::Again::kNo) {
    if (!saved_.is_on()) return;
    Result<Checkpoint> checkpoint = trainer_->Save();
    if (!checkpoint.ok()) return;
    if (result_.successions) checkpoint->successions = PackSuccessions(*result_.successions);
    saved_.Save(*checkpoint, again);
  }

  uint64_t NumReleases() const { return uint64_t{job_.successions.releases} + job_.bias_weight.releases; }

  // Makes the releases that are due at this step, and saves them, because they are paid for.
  Status ReleaseBesideSteps() {
    if (NumReleases() == 0) return OkStatus();
    WISP_ASSIGN_OR_RETURN(Released released, ReleaseWhatIsDue(job_, set_.records, options_, *trainer_));
    if (released.successions) result_.successions = std::move(released.successions);
    if (released.any) Save(SavedRun::Again::kYes);
    return OkStatus();
  }

  std::vector<float> StartWeights() const {
    if (!options_.base.empty()) return {job_.start_weights.begin(), job_.start_weights.end()};
    std::vector<float> weights(FlatSize(ListParameters(spec_.architecture)));
    if (job_.start_weights.size() < weights.size()) {
      RandomStream random = RandomStream::Reproducible(spec_.training.seed, StreamPurpose::kInitialisation);
      InitialiseWeights(spec_.architecture, spec_.initialisation, random, weights);
    }
    std::copy(job_.start_weights.begin(), job_.start_weights.end(), weights.begin());
    return weights;
  }

  Status CheckStartWeights() const {
    const Architecture& a = spec_.architecture;
    // The parameters without those that are last in the list: an adapter's matrices, or the variances.
    Architecture first = WithoutAdapter(a);
    first.re_attention = ReAttention::kOff;
    const size_t given = job_.start_weights.size(), all = FlatSize(ListParameters(a)),
                 base = FlatSize(ListParameters(first));
    if (job_.shrink_changes) WISP_RETURN_IF_ERROR(CheckNoiseIsKnown(options_, job_.start_weights));
    WISP_RETURN_IF_ERROR(CheckReleases(job_, options_));
    if (const auto& of_base = options_.base; !of_base.empty()) {
      WISP_RETURN_IF_ERROR(ValidateBase(a, options_));
      const size_t held = all - FirstHeld(ListParameters(a), options_);
      if (given == held) return OkStatus();
      return InvalidArgument("there are ", given, " start weights, allowed are ", held, ", those behind the base's");
    }
    if (given == all || given == base || (given == 0 && !a.adapter)) return OkStatus();
    if (given == 0) return InvalidArgument("an adapter trains beside the weights of a model: start from one");
    return InvalidArgument("there are ", given, " start weights, allowed are ", base, ", or all ", all);
  }

  // The number of records that steps and sampling probability follow from. They are public constants of a private run,
  // so it is the declared number. An epoch of shuffled records passes once over the actual ones.
  double NumRecords() const {
    const bool poisson = is_private() || options_.sampling == Sampling::kPoisson;
    const bool declared = poisson && options_.num_records_public != 0;
    return declared ? options_.num_records_public : static_cast<double>(set_.records.size());
  }

  Status CheckPaperGoal() const {
    if (!spec_.goal.epsilon && !spec_.goal.noise_multiplier) return OkStatus();
    return PrivacyRefused("mode paper has no epsilon that its noise could be calibrated to. ", ExplainPaperMode());
  }

  Status PreparePrivacy(std::span<const float> weights) {
    if (options_.num_records_public == 0) {
      return PrivacyRefused(
          "private training needs the number of records declared as public (num_records_public): steps and sampling "
          "probability follow from it and must not be counted from private data");
    }
    WISP_RETURN_IF_ERROR(CheckPrivacyGoal(spec_.goal, NumRecords()));
    if (options_.privacy.ledger == nullptr) {
      return PrivacyRefused("private training needs a ledger: without one the budget spent would be forgotten");
    }
    if (spec_.goal.new_limit) WISP_RETURN_IF_ERROR(options_.privacy.ledger->CheckLimit(*spec_.goal.new_limit));
    constexpr uint32_t kMostRuns = 1'000'000;
    if (spec_.goal.planned_runs == 0 || spec_.goal.planned_runs > kMostRuns)
      return InvalidArgument("planned runs are ", spec_.goal.planned_runs, ", allowed are 1 to ", kMostRuns);
    // Finds refusals that would otherwise come only after the seconds that calibration takes. The noise is a
    // placeholder.
    TrainingOptions probe = options_;
    probe.privacy.noise_multiplier = probe.dp_fp.noise_multiplier = 1;
    WISP_RETURN_IF_ERROR(Trainer::Check(spec_.architecture, weights, set_.records, probe));
    WISP_ASSIGN_OR_RETURN(overheads_, budget_.Overheads());
    const Status found = Budget::Calibrate(spec_.architecture, spec_.goal, options_, {}, job_.cancelled);
    if (found.code() == StatusCode::kCancelled) return CancelledBeforeSteps();
    WISP_RETURN_IF_ERROR(found);
    result_.noise_multiplier =
        ReleasesHead(options_) ? options_.dp_fp.noise_multiplier : options_.privacy.noise_multiplier;
    return OkStatus();
  }

  // The epsilon that the ledger has charged to this run; empty if the noise can be repeated. Between steps a coarse
  // bound is shown, because the same run is accounted for again and again.
  Result<std::optional<double>> EpsilonSoFar(privacy::Fineness fineness) {
    if (!is_private() || options_.privacy.reproducible_seed) return std::optional<double>();
    WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(spec_.goal.delta));
    WISP_ASSIGN_OR_RETURN(const privacy::RunEpsilon stated, privacy::StateRun(*options_.privacy.ledger, trainer_->run(),
                                                                              result_.length(), delta, fineness));
    result_.accountant = stated.accountant;
    return std::optional<double>(stated.epsilon);
  }

  // Takes one step. If the disk has no room for the charge, frees the space reserved for that and tries again.
  Result<StepReport> Step() {
    const uint64_t written = is_private() ? options_.privacy.ledger->num_written() : 0;
    auto report = trainer_->Step();
    const auto was_paid = [&] { return options_.privacy.ledger->num_written() != written; };
    if (!report.ok() && report.status().code() == StatusCode::kIo && is_private() && !was_paid() &&
        trainer_->CheckDevice().ok() && saved_.GiveUpLedgerRoom()) {
      report = trainer_->Step();
    }
    return report;
  }

  // Memory may run out in the middle of a step, so nothing is saved then: what was saved before is consistent.
  Status TrainOrReport() {
    try {
      return Train();
    } catch (const std::bad_alloc&) {
      const Status status =
          IoError("there is not enough memory to continue after step ", trainer_->step(), " of ", end_);
      return is_private() ? AddSavedState(status, saved_, GetCharged()) : status;
    }
  }

  Status Train() {
    JobProgress progress;
    while (trainer_->step() < end_) {
      WISP_RETURN_IF_ERROR(AddChargeNote(ReleaseBesideSteps()));
      const auto report = Step();
      if (report.status().code() == StatusCode::kCancelled) return StepGivenUp();
      if (!report.ok()) {
        if (!is_private()) return report.status();
        Save();
        // Another user of the ledger spent what this run had room for: the run ends with what it has paid for.
        if (report.status().code() != StatusCode::kPrivacyRefused || trainer_->step() == 0 ||
            !budget_.LimitRefuses(trainer_->step(), end_))
          return AddSavedState(report.status(), saved_, GetCharged());
        end_ = trainer_->step();
        result_.ended_early = EndedEarly(end_, options_.num_steps, report.status());
        break;
      }
      WISP_RETURN_IF_ERROR(AfterStep(*report, progress));
    }
    Save();
    result_.save_failure = saved_.failure();
    SayWhatRan();
    result_.paused = result_.ended_early.empty() && result_.num_steps < options_.num_steps;
    result_.epsilon = progress.epsilon;
    if (shown_ != result_.num_steps || !result_.ended_early.empty()) {
      WISP_ASSIGN_OR_RETURN(result_.epsilon, EpsilonSoFar(privacy::Fineness::kFull));
    }
    result_.num_dropped += trainer_->num_left_out();
    result_.run = trainer_->run();
    result_.class_of_all_means = trainer_->class_of_all_means();
    result_.norm_bound = trainer_->inference_input().norm_bound;
    if (is_private()) {
      result_.mechanisms = overheads_;
      WISP_ASSIGN_OR_RETURN(const auto releases, ReleaseMechanisms(*options_.privacy.ledger, trainer_->run()));
      result_.mechanisms.insert(result_.mechanisms.end(), releases.begin(), releases.end());
      WISP_ASSIGN_OR_RETURN(const auto steps, trainer_->privacy_plan().Mechanisms(result_.num_steps));
      result_.mechanisms.insert(result_.mechanisms.end(), steps.begin(), steps.end());
    }
    return OkStatus();
  }

  // Steps of DP-FP take less time than accounting for them.
  uint64_t NumDisplays() const { return options_.method == Method::kDpFp ? 1 : kEpsilonDisplays; }

  void Count(const StepReport& report) {
    SeenBySteps& seen = result_.seen;
    seen.num_gradients += report.num_records;
    seen.num_clipped += report.num_clipped;
    if (report.num_records > 0)
      seen.mean_norm += (report.mean_norm - seen.mean_norm) * static_cast<double>(report.num_records) /
                        static_cast<double>(seen.num_gradients);
    const auto steps = static_cast<double>(trainer_->step() - result_.resumed_from);
    seen.mean_loss += (report.mean_loss - seen.mean_loss) / steps;
  }

  // Saves and shows progress; kCancelled if the caller asks for it.
  Status AfterStep(const StepReport& report, JobProgress& progress) {
    result_.num_dropped += report.num_dropped;
    Count(report);
    progress.step = trainer_->step();
    progress.num_steps = end_;
    progress.mean_loss = report.mean_loss;
    progress.batch = report.num_records + report.num_head_records;
    if (is_private()) {
      progress.mean_norm = report.mean_norm;
      progress.clipped = static_cast<double>(report.num_clipped) / std::max<double>(1, report.num_records);
    }
    if (progress.step % std::max<uint64_t>(1, end_ / NumDisplays()) == 0 || progress.step == end_)
      WISP_RETURN_IF_ERROR(Show(progress));
    progress.validation.reset();
    if (job_.evaluate_every > 0 && progress.step % job_.evaluate_every == 0) {
      TakeWeights();
      progress.validation = Evaluate(set_.validation);
    }
    if (saved_.Due(progress.step, trainer_->at_end_of_charge()) && progress.step < end_) Save();
    progress.saved = saved_.step();
    progress.save_failure = saved_.failure();
    const bool stops = trainer_->stop_wanted() && progress.step < end_;  // a run that is done is not thrown away
    if (!stops && (!job_.progress || job_.progress(progress))) return OkStatus();
    Save();
    return Cancelled("training was cancelled after step ", progress.step, " of ", end_, "; ",
                     DescribeSavedState(saved_, is_private() ? GetCharged() : Charged()));
  }

  // Saves the state before the step, if its draw has left that as it was: a sampler without a seed and without a state
  // of its own.
  Status StepGivenUp() {
    if (is_private() && options_.sampling == Sampling::kPoisson && !options_.privacy.reproducible_seed) Save();
    return Cancelled("training was cancelled in step ", trainer_->step() + 1, " of ", end_,
                     ", which took long and is lost; ",
                     DescribeSavedState(saved_, is_private() ? GetCharged() : Charged()));
  }

  // Updates the shown epsilon. It changes only with a charge, and computing it takes as long as some records do. At the
  // end it is computed anew, because others may have charged the ledger.
  Status Show(JobProgress& progress) {
    const bool at_end = progress.step == end_;
    if (!shown_ || trainer_->num_charged() != shown_charged_ || at_end) {
      WISP_ASSIGN_OR_RETURN(progress.epsilon,
                            EpsilonSoFar(at_end ? privacy::Fineness::kFull : privacy::Fineness::kGlance));
    }
    shown_ = progress.step;
    shown_charged_ = trainer_->num_charged();
    return OkStatus();
  }

  void SayWhatRan() {
    result_.num_steps = trainer_->step();
    result_.options = options_;
    result_.options.base = {};  // belongs to the caller
  }

  // Takes the weights with which the run would end now.
  void TakeWeights() {
    SayWhatRan();
    const std::span<const float> weights = trainer_->final_weights();
    result_.weights.assign(weights.begin(), weights.end());
    result_.first_weight = FirstHeld(trainer_->graph().parameters(), options_);
    if (!job_.shrink_changes && !RestoresRows()) return;
    const double variance = ComputeNoiseVariance(options_.optimizer, trainer_->step(), options_.num_steps);
    if (RestoresRows())
      RestoreRows(spec_.architecture, job_.start_weights, job_.start_lists.untrained, variance, result_.weights);
    if (job_.shrink_changes) ShrinkChanges(spec_.architecture, job_.start_weights, variance, result_.weights);
  }

  // True if some rows are untrained at the start, and it is known how far noise moves them.
  bool RestoresRows() const {
    return !job_.start_lists.untrained.empty() && options_.method == Method::kPhantom &&
           CheckNoiseIsKnown(options_, job_.start_weights).ok();
  }

  // Evaluates the weights that TakeWeights took.
  RankingQuality Evaluate(std::span<const RankingCase> cases) {
    // The weights and the threads are on the host, so the evaluation runs there.
    const kernels::Device& device = options_.device;
    const kernels::Device host = device.memory.is_host() ? device : kernels::Device(kernels::BestOps());
    const std::vector<StoredTensor> tensors =
        LocateTensors(trainer_->graph().parameters(), options_.base, result_.weights.data());
    const auto graph = MakeModelView(spec_.architecture, host, MakeInferenceOptions(host, spec_.architecture, tensors));
    return EvaluateRanking(*graph, ParameterSource(tensors), cases, trainer_->workers(),
                           job_.lists ? job_.lists(result_) : ModelLists{});
  }

  const TrainingJob& job_;
  const RunSpec& spec_ = job_.spec;
  TrainingOptions options_ = MakeOptions(spec_);
  RecordSet set_;
  JobPopularity popularity_{job_, options_};
  std::vector<Mechanism> overheads_;
  Budget budget_{spec_.architecture, spec_.goal, options_};
  std::unique_ptr<Trainer> trainer_;
  SavedRun saved_;
  uint64_t end_ = 0;               // the last step of this call that can be paid for
  std::optional<uint64_t> shown_;  // the step at which epsilon was last computed
  uint64_t shown_charged_ = 0;     // the steps charged by then
  JobResult result_;
};

}  // namespace

bool NeedsFrequencies(const RunSpec& spec) {
  return spec.architecture.re_attention == ReAttention::kOn &&
         spec.training.re_attention.source == ReAttentionOptions::Source::kPrinted;
}

Result<JobResult> RunTrainingJob(const TrainingJob& job) { return JobRun(job).Run(); }

}  // namespace wisp
