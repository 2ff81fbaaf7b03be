#include "runtime/train/classification_job.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/privacy/accountant.h"
#include "runtime/privacy/calibration.h"
#include "runtime/privacy/json.h"
#include "runtime/train/dp_fp_report.h"
#include "runtime/train/records.h"
#include "runtime/train/run_budget.h"
#include "runtime/train/saved_run.h"

namespace wisp {
namespace {

using privacy::Mechanism;

Status CheckGoal(const PrivacyGoal& goal, DpFpMode mode, double num_records) {
  if (mode == DpFpMode::kPaper) {
    if (!goal.epsilon && !goal.noise_multiplier) return OkStatus();
    return PrivacyRefused("mode paper has no epsilon that its noise could be calibrated to. ",
                          WhyPaperHasNoGuarantee());
  }
  return CheckPrivacyGoal(goal, num_records);
}

struct NoiseTarget {
  double epsilon = 0, delta = 0;
};

// The noise for which the continuous mechanisms together meet the target, and what they cost.
Result<double> CalibrateTo(const ClassificationJob& job, const NoiseTarget& target, TrainingOptions& o) {
  const bool clipped = o.dp_fp.mode == DpFpMode::kClipped;
  WISP_ASSIGN_OR_RETURN(const auto head_target,
                        privacy::EpsilonDelta::Create(target.epsilon * (clipped ? job.head_share : 1.0), target.delta));
  WISP_ASSIGN_OR_RETURN(const auto head, privacy::CalibrateNoise({.target = head_target,
                                                                  .sampling_probability = MicroBatchProbability(o),
                                                                  .steps = o.num_steps * o.dp_fp.micro_batches}));
  o.dp_fp.noise_multiplier = head.noise_multiplier;
  if (!clipped) return head.epsilon;
  WISP_ASSIGN_OR_RETURN(const auto whole, privacy::EpsilonDelta::Create(target.epsilon, target.delta));
  WISP_ASSIGN_OR_RETURN(const Mechanism releases,
                        Mechanism::PoissonSubsampledGaussian({.noise_multiplier = o.dp_fp.noise_multiplier,
                                                              .sampling_probability = MicroBatchProbability(o),
                                                              .steps = o.num_steps * o.dp_fp.micro_batches}));
  const std::vector beside = {releases};
  WISP_ASSIGN_OR_RETURN(const auto encoder, privacy::CalibrateNoise({.target = whole,
                                                                     .sampling_probability = BatchProbability(o),
                                                                     .steps = o.num_steps,
                                                                     .composed_with = beside}));
  o.privacy.noise_multiplier = encoder.noise_multiplier;
  return encoder.epsilon;
}

Status Prepare(const ClassificationJob& job, TrainingOptions& o) {
  WISP_RETURN_IF_ERROR(Validate(job.architecture));
  if (o.num_records_public == 0) {
    if (o.dp_fp.mode != DpFpMode::kPaper) {
      return PrivacyRefused(
          "private training needs the number of records declared as public (num_records_public): steps and sampling "
          "probability follow from it and must not be counted from private data");
    }
    o.num_records_public = static_cast<uint32_t>(job.records.size());
  }
  WISP_RETURN_IF_ERROR(CheckGoal(job.goal, o.dp_fp.mode, o.num_records_public));
  if (o.dp_fp.mode != DpFpMode::kPaper && o.privacy.ledger == nullptr) {
    return PrivacyRefused("private training needs a ledger: without one the budget spent would be forgotten");
  }
  if (job.new_limit && o.privacy.ledger != nullptr) WISP_RETURN_IF_ERROR(o.privacy.ledger->CheckLimit(*job.new_limit));
  if (o.expected_batch == 0 || o.dp_fp.micro_batches == 0)
    return InvalidArgument("expected_batch and micro_batches must be 1 or above");
  if (o.expected_batch > o.num_records_public) {
    return InvalidArgument("expected_batch is ", o.expected_batch, ", more than the ", o.num_records_public,
                           " records");
  }
  if (o.num_steps == 0) {
    WISP_ASSIGN_OR_RETURN(o.num_steps, StepsOfEpochs(job.epochs, o.num_records_public, o.expected_batch));
  }
  if (o.num_steps == 0) return InvalidArgument("neither epochs nor steps are given");
  if (o.dp_fp.mode == DpFpMode::kPaper) return OkStatus();
  // What Trainer::Create would refuse only after the seconds that calibration takes, with noise that stands for
  // what is to come.
  TrainingOptions probe = o;
  probe.dp_fp.noise_multiplier = probe.privacy.noise_multiplier = 1;
  WISP_RETURN_IF_ERROR(Trainer::Check(job.architecture, job.start_weights, job.records, probe));
  return FillInNoise(job, o);
}

// What so many steps of the run are charged as, both mechanisms' noise multiplied.
Result<std::vector<privacy::ChargeRequest>> Charges(const ClassificationJob& job, const TrainingOptions& o,
                                                    uint64_t steps, double noise_factor) {
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(job.architecture, o));
  return plan.ChargesTogether(steps, noise_factor);
}

}  // namespace

// The slack of the discrete noise is paid out of the goal too: the ledger, which counts it, must be able to pay for the
// last step out of a budget that equals the goal.
Status FillInNoise(const ClassificationJob& job, TrainingOptions& o) {
  if (job.goal.noise_multiplier) {
    if (o.dp_fp.mode == DpFpMode::kClipped && o.privacy.noise_multiplier == 0) {
      return InvalidArgument("the noise multiplier ", *job.goal.noise_multiplier,
                             " is that of the releases; mode clipped needs the encoder's too "
                             "(dp_fp.encoder.noise_multiplier of the recipe), or an epsilon that both follow from");
    }
    o.dp_fp.noise_multiplier = *job.goal.noise_multiplier;
    return OkStatus();
  }
  if (!(job.head_share > 0 && job.head_share < 1)) {
    return InvalidArgument("head_share is ", job.head_share, ", allowed is a number between 0 and 1");
  }
  double slack = 0;
  for (int attempt = 0;; ++attempt) {
    const NoiseTarget target{.epsilon = *job.goal.epsilon - 2.2 * slack,
                             .delta = job.goal.delta * (1 - 1e-6) * std::exp(-1.1 * slack)};
    WISP_ASSIGN_OR_RETURN(const double epsilon, CalibrateTo(job, target, o));
    WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(job.architecture, o));
    const double needed = plan.LossSlack(o.num_steps);
    if (2 * needed <= *job.goal.epsilon - epsilon && needed <= 1.1 * slack + 1e-7) return OkStatus();
    if (attempt == 3) {
      return PrivacyRefused("epsilon ", privacy::DoubleText(*job.goal.epsilon),
                            " cannot be met: the integer grid of the noise alone costs ",
                            privacy::EpsilonText(2 * needed));
    }
    slack = std::max(needed, slack) * 1.01 + 1e-9;
  }
}

namespace {

class ClassificationRun {
 public:
  explicit ClassificationRun(const ClassificationJob& job) : job_(job), o_(result_.options) {
    o_ = job.options;
    o_.method = Method::kDpFp;
  }

  Result<ClassificationResult> Run() {
    const auto start = std::chrono::steady_clock::now();
    WISP_RETURN_IF_ERROR(Begin());
    WISP_RETURN_IF_ERROR(Train());
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (job_.write) WISP_RETURN_IF_ERROR(job_.write(result_));
    saved_.Remove();
    return std::move(result_);
  }

 private:
  bool is_private() const { return o_.dp_fp.mode != DpFpMode::kPaper; }

  Status Begin() {
    std::optional<Checkpoint> checkpoint;
    if (!job_.checkpoint_path.empty() && access(job_.checkpoint_path.c_str(), F_OK) == 0) {
      WISP_ASSIGN_OR_RETURN(checkpoint, ReadCheckpoint(job_.checkpoint_path));
    }
    WISP_RETURN_IF_ERROR(Prepare(job_, o_));
    WISP_ASSIGN_OR_RETURN(trainer_, Trainer::Create(job_.architecture, job_.start_weights, job_.records, o_));
    end_ = result_.planned_steps = o_.num_steps;
    if (is_private()) WISP_RETURN_IF_ERROR(CheckBudget(checkpoint ? &*checkpoint : nullptr));
    WISP_RETURN_IF_ERROR(Reserve());
    if (checkpoint) {
      WISP_RETURN_IF_ERROR(trainer_->Restore(*checkpoint));
      trainer_->EndAt(std::max(end_, checkpoint->step));
      result_.resumed_from = checkpoint->step;
      saved_.Found(checkpoint->step);
    }
    // Nothing is refused after it.
    return job_.new_limit && o_.privacy.ledger != nullptr ? o_.privacy.ledger->SetLimit(*job_.new_limit) : OkStatus();
  }

  // As the recommender's job: what is left has to fit, or as much of it as does.
  Status CheckBudget(const Checkpoint* checkpoint) {
    const uint64_t done = checkpoint != nullptr ? std::min(checkpoint->step, o_.num_steps) : 0;
    const RunBudget budget{*o_.privacy.ledger, job_.new_limit, o_.num_steps - done,
                           [this](uint64_t steps, double factor) { return Charges(job_, o_, steps, factor); }};
    WISP_ASSIGN_OR_RETURN(const auto charges, budget.charges(budget.steps, 1));
    const Status refusal = o_.privacy.ledger->CheckFits(charges, job_.new_limit);
    if (refusal.ok() || refusal.code() != StatusCode::kPrivacyRefused || o_.privacy.reproducible_seed) return refusal;
    if (done == 0) return WithWhatFits(budget, refusal);
    WISP_ASSIGN_OR_RETURN(const uint64_t fit, StepsThatFit(budget));
    end_ = done + fit;
    result_.ended_early = EndedEarly(end_, o_.num_steps, refusal);
    return OkStatus();
  }

  Status Reserve() {
    constexpr uint64_t kBeside = 256 << 10, kEveryWithoutCharges = 50;
    if (!job_.checkpoint_path.empty()) {
      const uint64_t floats = FlatSize(ParametersOf(job_.architecture)),
                     releases = uint64_t{job_.architecture.head.num_classes} * job_.architecture.width;
      WISP_RETURN_IF_ERROR(saved_.Reserve(
          {.path = job_.checkpoint_path,
           .every = job_.checkpoint_every > 0 || is_private() ? job_.checkpoint_every : kEveryWithoutCharges,
           .bytes = floats * sizeof(float) + Optimizer::PlanBytes(o_.optimizer, floats) + releases * sizeof(double) +
                    kBeside}));
    }
    return is_private() ? saved_.ReserveLedger(o_.privacy.ledger->path(),
                                               2 * (end_ / std::max(1u, o_.privacy.steps_per_charge) + 1))
                        : OkStatus();
  }

  RunBudget NextCharge() const {
    const uint64_t steps = std::min<uint64_t>(std::max(1u, o_.privacy.steps_per_charge), end_ - trainer_->step());
    return {*o_.privacy.ledger, {}, steps, [this](uint64_t n, double factor) { return Charges(job_, o_, n, factor); }};
  }

  Status Train() {
    while (trainer_->step() < end_) {
      const uint64_t written = is_private() ? o_.privacy.ledger->num_written() : 0;
      auto report = trainer_->Step();
      const auto was_paid = [&] { return o_.privacy.ledger->num_written() != written; };
      if (!report.ok() && report.status().code() == StatusCode::kIo && is_private() && !was_paid() &&
          saved_.GiveUpLedgerRoom()) {
        report = trainer_->Step();
      }
      if (!report.ok()) {
        if (!is_private()) return report.status();
        Save();
        if (report.status().code() != StatusCode::kPrivacyRefused || trainer_->step() == 0 ||
            !LimitRefuses(NextCharge()))
          return WithWhatStays(report.status(), saved_, trainer_->num_charged());
        result_.ended_early = EndedEarly(end_ = trainer_->step(), o_.num_steps, report.status());
        break;
      }
      WISP_RETURN_IF_ERROR(AfterStep(*report));
    }
    Save();
    return Conclude();
  }

  Status AfterStep(const StepReport& report) {
    result_.num_dropped += report.num_dropped;
    const uint64_t step = trainer_->step();
    if (saved_.Due(step, trainer_->at_end_of_charge()) && step < end_) Save();
    if (!job_.progress || job_.progress({.step = step,
                                         .num_steps = end_,
                                         .mean_loss = report.mean_loss,
                                         .saved = saved_.step(),
                                         .save_failure = saved_.failure()})) {
      return OkStatus();
    }
    Save();
    return Cancelled("training was cancelled after step ", step, " of ", end_, "; ",
                     WhatStays(saved_, trainer_->num_charged()));
  }

  void Save() {
    if (saved_.is_on()) saved_.Save(trainer_->Save());
  }

  Status Conclude() {
    result_.save_failure = saved_.failure();
    result_.num_dropped += trainer_->num_left_out();
    result_.weights.assign(trainer_->weights().begin(), trainer_->weights().end());
    result_.norm_bound = trainer_->inference_input().norm_bound;
    result_.num_steps = trainer_->step();
    result_.run = trainer_->run();
    result_.description = DescribeDpFp(job_.architecture, o_, result_.num_steps);
    if (!is_private()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(result_.mechanisms, trainer_->privacy_plan().Mechanisms(result_.num_steps));
    if (o_.privacy.reproducible_seed) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(job_.goal.delta));
    WISP_ASSIGN_OR_RETURN(const privacy::RunEpsilon stated,
                          privacy::StateRun(*o_.privacy.ledger, result_.run, result_.length(), delta));
    result_.epsilon = stated.epsilon;
    result_.accountant = stated.accountant;
    return OkStatus();
  }

  const ClassificationJob& job_;
  ClassificationResult result_;
  TrainingOptions& o_;
  std::unique_ptr<Trainer> trainer_;
  SavedRun saved_;
  uint64_t end_ = 0;  // of the steps that can be paid for
};

}  // namespace

Result<ClassificationResult> RunClassificationJob(const ClassificationJob& job) { return ClassificationRun(job).Run(); }

}  // namespace wisp
