#include "runtime/train/classification_job.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/privacy/accountant.h"
#include "runtime/privacy/calibration.h"
#include "runtime/privacy/json.h"
#include "runtime/train/dp_fp_report.h"
#include "runtime/train/records.h"

namespace wisp {
namespace {

using privacy::Mechanism;

Status CheckGoal(const PrivacyGoal& goal, DpFpMode mode, double num_records) {
  if (mode == DpFpMode::kPaper) {
    if (!goal.epsilon && !goal.noise_multiplier) return OkStatus();
    return PrivacyRefused("mode paper has no epsilon that its noise could be calibrated to. " + WhyPaperHasNoGuarantee());
  }
  return CheckPrivacyGoal(goal, num_records);
}

struct NoiseTarget {
  double epsilon = 0, delta = 0;
};

// The noise for which the continuous mechanisms together meet the target, and what they cost.
Result<double> CalibrateTo(const ClassificationJob& job, const NoiseTarget& target, DpFpOptions& o) {
  const double q = static_cast<double>(o.expected_batch) / o.num_records_public;
  const bool clipped = o.mode == DpFpMode::kClipped;
  WISP_ASSIGN_OR_RETURN(const auto head_target, privacy::EpsilonDelta::Create(target.epsilon * (clipped ? job.head_share : 1.0), target.delta));
  WISP_ASSIGN_OR_RETURN(const auto head, privacy::CalibrateNoise({.target = head_target, .sampling_probability = q / o.micro_batches,
                                                                  .steps = o.num_steps * o.micro_batches}));
  o.noise_multiplier = head.noise_multiplier;
  if (!clipped) return head.epsilon;
  WISP_ASSIGN_OR_RETURN(const auto whole, privacy::EpsilonDelta::Create(target.epsilon, target.delta));
  WISP_ASSIGN_OR_RETURN(const Mechanism releases, Mechanism::PoissonSubsampledGaussian({.noise_multiplier = o.noise_multiplier,
                                                                                        .sampling_probability = q / o.micro_batches,
                                                                                        .steps = o.num_steps * o.micro_batches}));
  const std::vector beside = {releases};
  WISP_ASSIGN_OR_RETURN(const auto encoder, privacy::CalibrateNoise({.target = whole, .sampling_probability = q, .steps = o.num_steps,
                                                                     .composed_with = beside}));
  o.encoder.noise_multiplier = encoder.noise_multiplier;
  return encoder.epsilon;
}

Status Prepare(const ClassificationJob& job, DpFpOptions& o) {
  WISP_RETURN_IF_ERROR(Validate(job.architecture));
  if (o.num_records_public == 0) {
    if (o.mode != DpFpMode::kPaper) {
      return PrivacyRefused("private training needs the number of records declared as public (num_records_public): steps and sampling "
                            "probability follow from it and must not be counted from private data");
    }
    o.num_records_public = static_cast<uint32_t>(job.records.size());
  }
  WISP_RETURN_IF_ERROR(CheckGoal(job.goal, o.mode, o.num_records_public));
  if (o.mode != DpFpMode::kPaper && o.ledger == nullptr) {
    return PrivacyRefused("private training needs a ledger: without one the budget spent would be forgotten");
  }
  if (job.new_limit && o.ledger != nullptr) WISP_RETURN_IF_ERROR(o.ledger->CheckLimit(*job.new_limit));
  if (o.expected_batch == 0 || o.micro_batches == 0) return InvalidArgument("expected_batch and micro_batches must be 1 or above");
  if (o.expected_batch > o.num_records_public) {
    return InvalidArgument("expected_batch is " + std::to_string(o.expected_batch) + ", more than the " + std::to_string(o.num_records_public) + " records");
  }
  if (o.num_steps == 0) {
    WISP_ASSIGN_OR_RETURN(o.num_steps, StepsOfEpochs(job.epochs, o.num_records_public, o.expected_batch));
  }
  if (o.num_steps == 0) return InvalidArgument("neither epochs nor steps are given");
  if (o.mode == DpFpMode::kPaper) return OkStatus();
  // What DpFpTrainer::Create would refuse only after the seconds that calibration takes, with noise that stands for what is to come.
  DpFpOptions probe = o;
  probe.noise_multiplier = probe.encoder.noise_multiplier = 1;
  WISP_RETURN_IF_ERROR(DpFpTrainer::Check(job.architecture, job.start_weights, job.records, probe));
  return FillInNoise(job, o);
}

// All that the run is to charge, held against the ledger's limit before the first of it.
Status CheckBudget(const ClassificationJob& job, const DpFpOptions& o) {
  if (o.mode == DpFpMode::kPaper) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const std::vector<Mechanism> mechanisms, DpFpMechanisms(o, o.num_steps));
  std::vector<privacy::ChargeRequest> charges;
  for (const Mechanism& m : mechanisms) {
    charges.push_back({.mechanism = m, .run = o.run, .purpose = "training",
                       .noise = o.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure});
  }
  charges.front().loss_slack = DpFpLossSlack(job.architecture, o, o.num_steps);  // of both together
  return o.ledger->CheckFits(charges, job.new_limit);
}

}  // namespace

// The slack of the discrete noise is paid out of the goal too: the ledger, which counts it, must be able to pay for the
// last step out of a budget that equals the goal.
Status FillInNoise(const ClassificationJob& job, DpFpOptions& o) {
  if (job.goal.noise_multiplier) {
    o.noise_multiplier = *job.goal.noise_multiplier;
    return OkStatus();
  }
  if (!(job.head_share > 0 && job.head_share < 1)) {
    return InvalidArgument("head_share is " + std::to_string(job.head_share) + ", allowed is a number between 0 and 1");
  }
  double slack = 0;
  for (int attempt = 0;; ++attempt) {
    const NoiseTarget target{.epsilon = *job.goal.epsilon - 2.2 * slack, .delta = job.goal.delta * (1 - 1e-6) * std::exp(-1.1 * slack)};
    WISP_ASSIGN_OR_RETURN(const double epsilon, CalibrateTo(job, target, o));
    const double needed = DpFpLossSlack(job.architecture, o, o.num_steps);
    if (2 * needed <= *job.goal.epsilon - epsilon && needed <= 1.1 * slack + 1e-7) return OkStatus();
    if (attempt == 3) {
      return PrivacyRefused("epsilon " + privacy::DoubleText(*job.goal.epsilon) + " cannot be met: the integer grid of the noise alone costs " +
                            privacy::EpsilonText(2 * needed));
    }
    slack = std::max(needed, slack) * 1.01 + 1e-9;
  }
}

Result<ClassificationResult> RunClassificationJob(const ClassificationJob& job) {
  const auto start = std::chrono::steady_clock::now();
  ClassificationResult result;
  DpFpOptions& o = result.options = job.options;
  WISP_RETURN_IF_ERROR(Prepare(job, o));
  WISP_ASSIGN_OR_RETURN(const auto trainer, DpFpTrainer::Create(job.architecture, job.start_weights, job.records, o));
  WISP_RETURN_IF_ERROR(CheckBudget(job, o));
  // Nothing is refused after it.
  if (job.new_limit && o.ledger != nullptr) WISP_RETURN_IF_ERROR(o.ledger->SetLimit(*job.new_limit));
  while (trainer->step() < o.num_steps) {
    WISP_ASSIGN_OR_RETURN(const DpFpStepReport report, trainer->Step());
    result.num_dropped += report.num_dropped;
    if (job.progress && !job.progress({.step = trainer->step(), .num_steps = o.num_steps, .mean_loss = report.mean_loss})) {
      return Cancelled("training was cancelled after step " + std::to_string(trainer->step()) + " of " + std::to_string(o.num_steps) +
                       "; what was charged to the ledger stays charged");
    }
  }
  result.weights.assign(trainer->weights().begin(), trainer->weights().end());
  result.norm_bound = trainer->inference_input().norm_bound;
  result.num_steps = trainer->step();
  result.description = DescribeDpFp(o, result.num_steps);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (o.mode == DpFpMode::kPaper) return result;
  WISP_ASSIGN_OR_RETURN(result.mechanisms, DpFpMechanisms(o, result.num_steps));
  if (o.reproducible_seed) return result;
  WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(job.goal.delta));
  WISP_ASSIGN_OR_RETURN(const double epsilon, o.ledger->SpentByRun(o.run, delta));
  result.epsilon = epsilon;
  return result;
}

}  // namespace wisp
