// The audit of one step: what it observes in both worlds, and what that proves.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

#include "runtime/layers/packed_weights.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/train/audit/audit_device.h"
#include "runtime/train/audit/audit_training.h"
#include "runtime/train/method_table.h"
#include "runtime/train/negative_sampler.h"
#include "runtime/train/record_pass.h"

namespace wisp {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;

// Noise small enough to read the direction of the canary's gradient: with 1e6 coordinates 1% of the clipping norm.
constexpr double kHardlyAnyNoise = 1e-5;

// Produces releases of a step on one list of records, each from the same weights.
class Observed {
 public:
  virtual ~Observed() = default;
  // The sum that the step would divide by the expected batch, in the layout of the weights; 0 where nothing is
  // released.
  virtual Status Next(std::span<float> sum) = 0;
};

TrainingOptions OneStep(const TrainingOptions& given) {
  TrainingOptions o = given;
  o.sampling = Sampling::kPoisson;
  o.num_steps = 1;
  // The learning rate equals the expected batch, so weights before minus weights after are the sum itself.
  o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = static_cast<float>(o.expected_batch)};
  o.dropout = {};
  o.ema_decay = 0;
  return o;
}

class ThroughTrainer final : public Observed {
 public:
  static Result<std::unique_ptr<Observed>> Create(const StepAuditOptions& o, const TrainingOptions& step,
                                                  std::span<const Record> records) {
    auto self = std::make_unique<ThroughTrainer>();
    WISP_ASSIGN_OR_RETURN(self->trainer_, Trainer::Create(o.architecture, o.weights, records, step));
    WISP_ASSIGN_OR_RETURN(self->start_, self->trainer_->Save());
    self->start_weights_.assign(self->trainer_->weights().begin(), self->trainer_->weights().end());
    return std::unique_ptr<Observed>(std::move(self));
  }

  Status Next(std::span<float> sum) override {
    WISP_RETURN_IF_ERROR(trainer_->Step().status());
    const std::span<const float> after = trainer_->weights();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = start_weights_[i] - after[i];
    // Restores the start, but never noise that was used: the streams of a reproducible run continue.
    WISP_ASSIGN_OR_RETURN(const Checkpoint now, trainer_->Save());
    start_.streams = now.streams;
    return trainer_->Restore(start_);
  }

 private:
  std::unique_ptr<Trainer> trainer_;
  Checkpoint start_;
  std::vector<float> start_weights_;  // all of them: an adapter's checkpoint holds only the adapter
};

// Drives a GradientMethod as a step of training does, with one worker.
class ThroughRelease final : public Observed {
 public:
  ThroughRelease(const StepAuditOptions& o, const TrainingOptions& step, std::span<const Record> records,
                 const MethodFactory& make, RandomStream random)
      : options_(step),
        records_(records),
        weights_(o.weights),
        graph_(MakeGraph(o.architecture, step.device, GraphFor(o.architecture, step))),
        trained_(TrainedBy(graph_->parameters(), step)),
        packed_(graph_->base(), weights_.data()),
        buffers_(graph_->AllocateForTraining()),
        pass_(*graph_),
        random_(std::move(random)) {
    options_.num_threads = 1;
    if (step.num_negatives > 0) {
      negatives_.emplace(graph_->base(), step.num_negatives, step.seed);
      negatives_->Draw(0, weights_.data());
    }
    const MethodSetup setup{*graph_, trained_, weights_, options_};
    method_ = make ? make(setup) : GetEntry(options_).make(setup);
  }

  Status Next(std::span<float> sum) override {
    std::fill(sum.begin(), sum.end(), 0.0f);
    privacy::PoissonSample(random_, BatchProbability(options_), static_cast<uint32_t>(records_.size()), drawn_);
    batch_.clear();
    for (uint32_t i : drawn_) batch_.push_back(&records_[i]);
    method_->Begin(0, weights_, {batch_, negatives_ ? negatives_->negatives().items : std::span<const int32_t>()},
                   random_);
    for (const Record* record : batch_) Add(*record);
    RunWaiting();
    method_->DrawNoise(0, random_, 1);
    method_->Reduce();
    method_->AddNoise(0, random_);
    method_->Prepare();
    const double divisor = options_.expected_batch;
    method_->Update(0, random_, divisor, [&](const Change& change) {
      assert(change.row_J == nullptr);  // only devices set row_J, and audits refuse devices
      const size_t offset = graph_->parameters()[change.parameter].offset + change.first;
      for (size_t i = 0; i < change.n; ++i)
        sum[offset + i] = static_cast<float>(static_cast<double>(change.gradient[i]) * divisor);
    });
    return OkStatus();
  }

 private:
  void Add(const Record& record) {
    const auto targets =
        std::count_if(record.targets.begin(), record.targets.end(), [](int32_t id) { return id >= 0; });
    if (targets == 0) return;
    if (!pass_.Fits(record)) RunWaiting();
    pass_.Push(record, {.target_weight = 1.0f / static_cast<float>(targets)});
  }

  void RunWaiting() {
    if (pass_.empty()) return;
    RecordContext context{
        .weights = packed_.view(), .buffers = buffers_, .negatives = negatives_ ? &negatives_->negatives() : nullptr};
    pass_.Run(context, method_->GetGradients(0));
  }

  TrainingOptions options_;
  std::span<const Record> records_;
  std::span<const float> weights_;
  std::unique_ptr<Graph> graph_;
  TrainedSet trained_;
  PackedWeights packed_;
  Buffers buffers_;
  RecordPass<Graph> pass_;
  RandomStream random_;
  std::optional<NegativeSampler> negatives_;
  std::unique_ptr<GradientMethod> method_;
  std::vector<uint32_t> drawn_;
  std::vector<const Record*> batch_;
};

double Norm(std::span<const float> v) {
  double squares = 0;
  for (float x : v) squares += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(squares);
}

// The two worlds' streams differ from each other and from the trainer's for the same seed.
Result<RandomStream> Stream(const TrainingOptions& o, uint64_t which) {
  if (o.privacy.reproducible_seed)
    return RandomStream::Reproducible(*o.privacy.reproducible_seed + ((which + 1) << 48), StreamPurpose::kNoise);
  return RandomStream::Secure();
}

// The sound mechanism's release for the canary alone, always sampled, with hardly any noise.
Result<std::vector<float>> MakeRelease(const StepAuditOptions& o, const Record& canary) {
  TrainingOptions step = OneStep(o.training);
  step.expected_batch = step.num_records_public = 1;
  // AdaFEST's threshold falls with the noise, so all rows that the canary names survive, and hardly any other.
  step.sparse.map_threshold *= kHardlyAnyNoise / step.privacy.noise_multiplier;
  step.privacy.noise_multiplier = kHardlyAnyNoise;
  WISP_RETURN_IF_ERROR(Trainer::Check(o.architecture, o.weights, std::span(&canary, 1), step));
  ThroughRelease alone(o, step, std::span(&canary, 1), {},
                       RandomStream::Reproducible(o.training.seed, StreamPurpose::kNoise));
  std::vector<float> direction(o.weights.size());
  WISP_RETURN_IF_ERROR(alone.Next(direction));
  return direction;
}

Result<std::vector<double>> Observe(const StepAuditOptions& o, const TrainingOptions& step,
                                    std::span<const Record> records, uint64_t which, std::span<const float> direction) {
  std::unique_ptr<Observed> observed;
  if (o.through == StepAuditOptions::Through::kTrainer) {
    WISP_ASSIGN_OR_RETURN(observed, ThroughTrainer::Create(o, step, records));
  } else {
    WISP_ASSIGN_OR_RETURN(RandomStream random, Stream(step, which));
    observed = std::make_unique<ThroughRelease>(o, step, records, o.make_method, std::move(random));
  }
  const double unit = Norm(direction) * step.privacy.clipping_norm;
  std::vector<float> sum(o.weights.size());
  std::vector<double> seen(o.observations);
  for (double& x : seen) {
    WISP_RETURN_IF_ERROR(observed->Next(sum));
    for (size_t i = 0; i < sum.size(); ++i) x += static_cast<double>(sum[i]) * static_cast<double>(direction[i]);
    x /= unit;
  }
  return seen;
}

// Charges both worlds' releases at once, because both read the same data. The trainer charges its own.
Status ChargeReleases(const StepAuditOptions& o, const TrainingOptions& step, const PrivacyPlan& plan) {
  if (o.through == StepAuditOptions::Through::kTrainer) return OkStatus();
  WISP_ASSIGN_OR_RETURN(auto charges, plan.Charges(2 * o.observations));
  for (privacy::ChargeRequest& charge : charges) {
    charge.purpose = "audit of a step";
    WISP_RETURN_IF_ERROR(step.privacy.ledger->Charge(charge).status());
  }
  return OkStatus();
}

Status CheckOptions(const StepAuditOptions& o) {
  WISP_RETURN_IF_ERROR(RefuseDevice(o.training));
  if (o.training.method == Method::kOrdinary)
    return InvalidArgument("ordinary training makes no claim that a step could be audited for");
  if (o.observations < 4) return InvalidArgument("observations is ", o.observations, ", allowed are 4 and above");
  for (double delta : o.deltas) WISP_RETURN_IF_ERROR(privacy::Delta::Create(delta).status());
  return privacy::CheckAuditLevel({.delta = 0, .confidence = o.confidence});
}

}  // namespace

bool PassesClippingNorm(double reach, uint64_t coordinates) {
  return reach > std::sqrt(1 + 2 * kHardlyAnyNoise * kHardlyAnyNoise * static_cast<double>(coordinates)) + 1e-3;
}

Result<StepAuditResult> AuditStep(const StepAuditOptions& o) {
  WISP_RETURN_IF_ERROR(CheckOptions(o));
  TrainingOptions step = OneStep(o.training);
  std::vector<Record> without(o.others.begin(), o.others.end()), with = without;
  with.push_back(o.canary);
  WISP_RETURN_IF_ERROR(Trainer::Check(o.architecture, o.weights, with, step));
  const double sigma = step.privacy.noise_multiplier;
  WISP_ASSIGN_OR_RETURN(const PrivacyPlan plan, PrivacyPlan::Create(o.architecture, step));
  WISP_ASSIGN_OR_RETURN(const std::vector<float> direction, MakeRelease(o, o.canary));
  StepAuditResult result{.claimed_mu = 1 / sigma, .reach = Norm(direction) / step.privacy.clipping_norm};
  if (!(result.reach > 0)) return InvalidArgument("the canary adds nothing to the release: another canary is needed");
  WISP_RETURN_IF_ERROR(ChargeReleases(o, step, plan));
  WISP_ASSIGN_OR_RETURN(const std::vector<double> seen_with, Observe(o, step, with, 0, direction));
  // Both worlds must not get the same noise in a reproducible run.
  if (step.privacy.reproducible_seed)
    step.privacy.reproducible_seed = *step.privacy.reproducible_seed + (uint64_t{1} << 40);
  WISP_ASSIGN_OR_RETURN(const std::vector<double> seen_without, Observe(o, step, without, 1, direction));

  const privacy::CanaryObservations observations{.with = seen_with, .without = seen_without};
  result.level = 1 - (1 - o.confidence) / static_cast<double>(o.deltas.size() + 1);
  WISP_ASSIGN_OR_RETURN(result.mu, privacy::CanaryGdp(observations, result.level));
  result.refuted =
      result.mu.mu > result.claimed_mu || PassesClippingNorm(result.reach, NumReleased(o.architecture, step));
  for (double delta : o.deltas) {
    StepAuditResult::AtDelta at{.delta = delta};
    WISP_ASSIGN_OR_RETURN(at.claimed, ClaimedEpsilon(plan, 1, delta));
    WISP_ASSIGN_OR_RETURN(at.bound, privacy::CanaryEpsilon(observations, {.delta = delta, .confidence = result.level}));
    result.refuted |= at.bound.epsilon > at.claimed;
    result.at_delta.push_back(at);
  }
  return result;
}

Result<size_t> StrongestCanary(const StepAuditOptions& o, std::span<const Record> candidates) {
  WISP_RETURN_IF_ERROR(CheckOptions(o));
  size_t best = 0;
  double most = -1;
  for (size_t i = 0; i < candidates.size(); ++i) {
    WISP_ASSIGN_OR_RETURN(const std::vector<float> direction, MakeRelease(o, candidates[i]));
    if (Norm(direction) > most) most = Norm(direction), best = i;
  }
  return best;
}

}  // namespace wisp
