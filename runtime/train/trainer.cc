#include "runtime/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>

#include "kernels/kernels.h"
#include "runtime/core/hash.h"
#include "runtime/privacy/exact_sum.h"
#include "runtime/train/check_records.h"
#include "runtime/train/graph_replay.h"
#include "runtime/train/step_release_parts.h"

namespace wisp {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;

Status ValidatePrivacy(const Architecture& a, const TrainingOptions& o) {
  const PrivateTraining& p = o.privacy;
  if (p.ledger == nullptr) {
    return PrivacyRefused("private training needs a ledger: without one the budget spent would be forgotten");
  }
  if (o.sampling != Sampling::kPoisson) {
    return PrivacyRefused(
        "private training with shuffled batches: the guarantee is computed for Poisson sampling; set sampling to "
        "poisson");
  }
  if (o.loss != LossWeighting::kRecordMean) {
    return PrivacyRefused(
        "private training weights positions by record (loss record_mean): a divisor that depends on the batch would "
        "leak");
  }
  if (!(p.noise_multiplier > 0) || !std::isfinite(p.noise_multiplier)) {
    return PrivacyRefused("private training with noise multiplier ", p.noise_multiplier,
                          ": it must be a positive number");
  }
  if (o.num_records_public == 0) {
    return PrivacyRefused(
        "private training needs the number of records declared as public (num_records_public): the sampling "
        "probability is a public constant and must not be derived from the data");
  }
  if (o.method == Method::kRgp) WISP_RETURN_IF_ERROR(Validate(o.rgp, ParametersOf(a)));
  if (IsSparse(o.method)) WISP_RETURN_IF_ERROR(ValidateSparse(a, o));
  WISP_RETURN_IF_ERROR(privacy::ExactGrid::Validate(
      {.clipping_norm = p.clipping_norm, .num_coordinates = NumReleased(a, o), .noise_multiplier = GradientNoise(o)}));
  if (p.clipping == ClipKind::kNone)
    return PrivacyRefused("private training without clipping has no bounded sensitivity");
  if (p.steps_per_charge == 0) return InvalidArgument("steps_per_charge is 0, allowed are 1 and above");
  return OkStatus();
}

Status ValidateOptions(const Architecture& a, std::span<const float> weights, std::span<const Record> records,
                       const TrainingOptions& o) {
  WISP_RETURN_IF_ERROR(Validate(a));
  WISP_RETURN_IF_ERROR(Validate(o.optimizer));
  WISP_RETURN_IF_ERROR(CheckThreads(o.num_threads));
  if (weights.size() != FlatSize(ParametersOf(a))) {
    return InvalidArgument("weights have ", weights.size(), " numbers, the architecture ", FlatSize(ParametersOf(a)));
  }
  WISP_RETURN_IF_ERROR(ValidateBatch(o, records.size()));
  for (float rate : {o.dropout.embedding, o.dropout.attention, o.dropout.residual}) {
    if (!(rate >= 0 && rate < 1)) return InvalidArgument("a dropout rate is ", rate, ", allowed is 0 <= rate < 1");
  }
  WISP_RETURN_IF_ERROR(ValidateAverage(o));
  WISP_RETURN_IF_ERROR(ValidateNegatives(a, o));
  if (a.re_attention == ReAttention::kOn) WISP_RETURN_IF_ERROR(Validate(o.re_attention, a));
  return o.method != Method::kOrdinary ? ValidatePrivacy(a, o) : CheckRecords(a, records);
}

size_t NumTargets(const Record& record) {
  return static_cast<size_t>(
      std::count_if(record.targets.begin(), record.targets.end(), [](int32_t id) { return id >= 0; }));
}

// In private training a record's gradient must hang on nothing but the record, or one record more would change those of
// all others: its masks follow from what it holds, not from its place among the records.
uint64_t PrivateDropoutSeed(uint64_t seed, uint64_t step, const Record& record) {
  const uint64_t parts[] = {seed, step, Hash64(std::as_bytes(record.inputs)), Hash64(std::as_bytes(record.targets))};
  return Hash64(std::as_bytes(std::span(parts)));
}

}  // namespace

// What one worker owns: buffers, gradient method, noise stream, this step's records and figures.
struct Trainer::Worker {
  Worker(const Graph& graph, const Weights& view, RandomStream noise_stream)
      : buffers(graph.AllocateForTraining()), weights(view), noise(std::move(noise_stream)) {}

  Buffers buffers;
  Weights weights;
  RandomStream noise;
  std::vector<uint32_t> records;
  size_t load = 0;
  // This step's figures.
  double loss = 0, norm = 0;
  size_t num_targets = 0, num_dropped = 0;
};

Status Trainer::Check(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
                      const TrainingOptions& options) {
  return ValidateOptions(architecture, weights, records, options);
}

Result<std::unique_ptr<Trainer>> Trainer::Create(const Architecture& architecture, std::span<const float> weights,
                                                 std::span<const Record> records, const TrainingOptions& given) {
  TrainingOptions options = given;
  if (options.num_threads == 0) options.num_threads = DefaultThreads();
  WISP_RETURN_IF_ERROR(ValidateOptions(architecture, weights, records, options));
  const bool secure = options.method != Method::kOrdinary && !options.privacy.reproducible_seed;
  const uint64_t seed = options.privacy.reproducible_seed.value_or(options.seed);
  // Stream 0 samples; streams 1.. are the workers' noise.
  std::vector<RandomStream> streams;
  for (size_t i = 0; i <= options.num_threads; ++i) {
    if (secure) {
      WISP_ASSIGN_OR_RETURN(RandomStream stream, RandomStream::Secure());
      streams.push_back(std::move(stream));
    } else {
      streams.push_back(
          RandomStream::Reproducible(seed + (i << 32), i == 0 ? StreamPurpose::kSampling : StreamPurpose::kNoise));
    }
  }
  return std::unique_ptr<Trainer>(new Trainer(architecture, weights, records, options, std::move(streams)));
}

Trainer::Trainer(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
                 const TrainingOptions& options, std::vector<RandomStream> streams)
    : options_(options),
      schedule_{options.num_steps, 0, options.num_steps},
      graph_(MakeGraph(architecture, kernels::BestOps(), options.num_negatives)),
      records_(records),
      workers_(options.num_threads, options.executor),
      weights_(weights.size()),
      packed_(graph_->pack_plan().size()),
      ema_(options.ema_decay > 0 ? weights.size() : 0),
      optimizer_(graph_->ops(), options.optimizer, weights.size()),
      sampling_stream_(std::move(streams[0])) {
  if (options_.num_records_public == 0) options_.num_records_public = static_cast<uint32_t>(records.size());
  if (is_private()) KeepTrainable();
  std::memcpy(weights_.data(), weights.data(), weights.size_bytes());
  if (ema_.size() > 0) std::memcpy(ema_.data(), weights.data(), weights.size_bytes());
  apply_ = [this](const ParameterSpec& p, size_t first, const float* g, size_t n) { Apply(p, first, g, n); };
  release_ = MakeStepRelease(*graph_, weights, options_);
  if (is_private() && architecture.re_attention == ReAttention::kOn) {
    noise_variance_.emplace(architecture, options.re_attention,
                            GradientNoise(options) * options.privacy.clipping_norm / options.expected_batch);
    for (size_t i = 0; i < graph_->parameters().size(); ++i) {
      if (!release_->Steps(i)) noise_variance_->Freeze(i);
    }
    if (!release_->FixedItemRows().empty()) noise_variance_->KeepItems(release_->FixedItemRows());
    noise_variance_->Initialise({weights_.data(), weights_.size()});
  }
  options_.re_attention.item_frequencies = {};
  sparse_rows_.assign(options.sparse.rows.begin(), options.sparse.rows.end());
  options_.sparse.rows = sparse_rows_;
  if (options.num_negatives > 0) negatives_.emplace(*graph_, options.num_negatives, options.seed);
  const Weights view{&graph_->ops(), &graph_->pack_plan(), &graph_->parameters(), weights_.data(), packed_.data()};
  for (size_t w = 0; w < workers_.size(); ++w) {
    worker_state_.push_back(std::make_unique<Worker>(*graph_, view, std::move(streams[w + 1])));
    worker_state_.back()->records.reserve(records_.size());
  }
  batch_.reserve(records_.size());
  batch_records_.reserve(records_.size());
  order_.resize(records_.size());
}

// One by one, whatever the others are: what one record is changes what is done with no other.
void Trainer::KeepTrainable() {
  const auto trainable = [this](const Record& record) { return IsTrainable(graph_->architecture(), record); };
  if (std::all_of(records_.begin(), records_.end(), trainable)) return;
  std::copy_if(records_.begin(), records_.end(), std::back_inserter(trainable_), trainable);
  num_left_out_ = records_.size() - trainable_.size();
  records_ = trainable_;
}

Trainer::~Trainer() = default;

TrainingMemory Trainer::memory() const {
  TrainingMemory m{.weights = weights_.allocated_bytes() + ema_.allocated_bytes(),
                   .packed_weights = packed_.allocated_bytes(),
                   .optimizer_state = optimizer_.size_bytes(),
                   .negatives = negatives_ ? negatives_->size_bytes() : 0,
                   .activations = worker_state_.size() * graph_->training_bytes(),
                   .variances = noise_variance_ ? noise_variance_->size_bytes() : 0,
                   .lists = (batch_.capacity() + order_.capacity() + sparse_rows_.capacity()) * sizeof(uint32_t) +
                            batch_records_.capacity() * sizeof(const Record*)};
  for (size_t w = 0; w < worker_state_.size(); ++w) {
    m.record_gradients += release_->Gradients(w).scratch_bytes();
    m.lists += worker_state_[w]->records.capacity() * sizeof(uint32_t);
  }
  m.gradient_sums = release_->planned_bytes() - m.record_gradients;
  return m;
}

RandomStream& Trainer::NoiseStream(size_t worker) { return worker_state_[worker]->noise; }

std::span<const float> Trainer::final_weights() const {
  return ema_.size() > 0 ? std::span<const float>(ema_.data(), ema_.size()) : weights();
}

Result<privacy::Mechanism> Trainer::StepMechanism(uint64_t steps) const {
  return privacy::Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = options_.privacy.noise_multiplier,
       .sampling_probability = static_cast<double>(options_.expected_batch) / options_.num_records_public,
       .steps = steps});
}

// All steps, as one plan, where the ledger is still empty: number and parameters do not depend on what is released.
Status Trainer::PlanSteps(const privacy::ChargeRequest& first) const {
  const uint64_t steps = std::max<uint64_t>(schedule_.end, step_ + first.mechanism.steps()) - step_;
  privacy::ChargeRequest all = first;
  WISP_ASSIGN_OR_RETURN(all.mechanism, StepMechanism(steps));
  all.loss_slack = StepLossSlack(graph_->architecture(), options_, options_.privacy.noise_multiplier, steps);
  return options_.privacy.ledger->PlanRun({&all, 1});
}

Status Trainer::ChargeIfNeeded() {
  if (!is_private() || step_ < charged_until_) return OkStatus();
  const uint64_t steps =
      std::min<uint64_t>(options_.privacy.steps_per_charge, std::max<uint64_t>(schedule_.end, step_ + 1) - step_);
  WISP_ASSIGN_OR_RETURN(const privacy::Mechanism mechanism, StepMechanism(steps));
  const privacy::ChargeRequest charge{
      .mechanism = mechanism,
      .run = options_.privacy.run,
      .purpose = "training",
      .noise = options_.privacy.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure,
      .loss_slack = StepLossSlack(graph_->architecture(), options_, options_.privacy.noise_multiplier, steps)};
  if (charged_until_ == 0) WISP_RETURN_IF_ERROR(PlanSteps(charge));
  WISP_RETURN_IF_ERROR(options_.privacy.ledger->Charge(charge).status());
  charged_until_ = step_ + steps;
  num_charged_ += steps;
  return OkStatus();
}

void Trainer::DrawBatch() {
  const uint32_t n = static_cast<uint32_t>(records_.size());
  if (options_.sampling == Sampling::kPoisson) {
    const double q = static_cast<double>(options_.expected_batch) / options_.num_records_public;
    privacy::PoissonSample(sampling_stream_, q, n, batch_);
    return;
  }
  batch_.clear();
  while (batch_.size() < options_.expected_batch) {
    if (order_next_ == 0) {
      std::iota(order_.begin(), order_.end(), 0u);
      for (uint32_t i = n; i > 1; --i) std::swap(order_[i - 1], order_[sampling_stream_.UniformBelow(i)]);
    }
    batch_.push_back(order_[order_next_]);
    order_next_ = (order_next_ + 1) % n;
    if (order_next_ == 0) break;  // an epoch's last batch may be smaller
  }
}

// Longest first to the least loaded worker: balanced, and the same for the same batch.
void Trainer::AssignBatch() {
  std::sort(batch_.begin(), batch_.end(), [this](uint32_t a, uint32_t b) {
    const size_t la = records_[a].inputs.size(), lb = records_[b].inputs.size();
    return la != lb ? la > lb : a < b;
  });
  for (auto& w : worker_state_) {
    w->records.clear();
    w->load = 0;
    w->loss = w->norm = 0;
    w->num_targets = w->num_dropped = 0;
  }
  batch_records_.clear();
  for (uint32_t record : batch_) {
    batch_records_.push_back(&records_[record]);
    auto& least = *std::min_element(worker_state_.begin(), worker_state_.end(),
                                    [](const auto& a, const auto& b) { return a->load < b->load; });
    least->records.push_back(record);
    least->load += records_[record].inputs.size();
  }
}

void Trainer::RunRecords(size_t index) {
  Worker& worker = *worker_state_[index];
  RecordGradients& gradients = release_->Gradients(index);
  RecordContext context{.weights = worker.weights,
                        .buffers = worker.buffers,
                        .dropout = &options_.dropout,
                        .negatives = negatives_ ? &negatives_->negatives() : nullptr};
  for (uint32_t i : worker.records) {
    const Record& record = records_[i];
    const size_t targets = NumTargets(record);
    if (targets == 0) continue;
    const float weight = options_.loss == LossWeighting::kRecordMean ? 1.0f / static_cast<float>(targets) : 1.0f;
    context.dropout_seed = is_private() ? PrivateDropoutSeed(options_.seed, step_, record)
                                        : options_.seed * 0x9e3779b97f4a7c15ull + step_ * records_.size() + i;
    gradients.BeginRecord(record.inputs);
    context.target_weight = weight;
    const double loss = graph_->Forward(context, record);
    graph_->Backward(context, record, gradients);
    GraphReplay replayer(*graph_, context, record);
    const RecordOutcome outcome = gradients.FinishRecord(replayer);
    worker.loss += loss / weight;
    worker.norm += outcome.finite ? outcome.norm : 0;
    worker.num_targets += targets;
    worker.num_dropped += outcome.finite && outcome.within ? 0 : 1;
  }
}

// One range of the step's gradient: optimizer, average.
void Trainer::Apply(const ParameterSpec& p, size_t first, const float* gradient, size_t n) {
  const size_t offset = p.offset + first;
  optimizer_.Update(p, offset, gradient, n, rate_, step_, weights_.data());
  if (ema_.size() == 0) return;
  // The first steps would otherwise remember the start for ever: decay grows towards its final value.
  const float decay = std::min(options_.ema_decay, static_cast<float>(1 + step_) / static_cast<float>(10 + step_));
  graph_->ops().scale(
      {.x = ema_.data() + offset, .y = ema_.data() + offset, .n = n, .a = decay, .store = kernels::Store::kAssign});
  graph_->ops().scale({.x = weights_.data() + offset,
                       .y = ema_.data() + offset,
                       .n = n,
                       .a = 1 - decay,
                       .store = kernels::Store::kAdd});
}

// The variances are parameters that no gradient trains: averaged weights keep those of the newest.
void Trainer::KeepVariances() {
  for (const ParameterSpec& p : graph_->parameters()) {
    const bool variance = p.role == ParameterRole::kItemVariance || p.role == ParameterRole::kParameterVariance;
    if (variance && ema_.size() > 0)
      std::memcpy(ema_.data() + p.offset, weights_.data() + p.offset, p.size() * sizeof(float));
  }
}

void Trainer::UpdateVariances(size_t index) {
  noise_variance_->Add({.optimizer = optimizer_, .rate = rate_, .step = step_, .item_rows = release_->ItemRows()},
                       index, workers_.size(), {weights_.data(), weights_.size()});
}

Result<StepReport> Trainer::Step() {
  if (records_.empty() && !is_private()) return InvalidData("there is no record to train on");
  WISP_RETURN_IF_ERROR(ChargeIfNeeded());
  DrawBatch();
  AssignBatch();
  workers_.Run([this](size_t w) {
    graph_->pack_plan().Pack(graph_->ops(), weights_.data(), packed_.data(), w, workers_.size());
  });
  if (negatives_) negatives_->Draw(step_, weights_.data());
  release_->Begin(step_, weights(),
                  {batch_records_, negatives_ ? negatives_->negatives().items : std::span<const int32_t>()},
                  NoiseStream(0));
  workers_.Run([this](size_t w) { RunRecords(w); });
  StepReport report{.step = step_, .num_records = batch_.size()};
  size_t targets = 0;
  double loss = 0;
  for (const auto& w : worker_state_) {
    loss += w->loss;
    report.mean_norm += w->norm;
    report.num_dropped += w->num_dropped;
    targets += w->num_targets;
  }
  if (targets > 0) report.mean_loss = loss / static_cast<double>(targets);
  if (!batch_.empty()) report.mean_norm /= static_cast<double>(batch_.size());
  if (!is_private() && !std::isfinite(report.mean_loss)) {
    return InvalidData("the loss of step ", step_, " is not finite: the learning rate ",
                       options_.optimizer.learning_rate, " is too high for this model");
  }
  release_->Reduce();
  report.learning_rate = rate_ = LearningRate(options_.optimizer, schedule_.Position(step_), schedule_.planned);
  double divisor = options_.expected_batch;
  if (!is_private())
    divisor = static_cast<double>(options_.loss == LossWeighting::kRecordMean ? std::max<size_t>(1, batch_.size())
                                                                              : std::max<size_t>(1, targets));
  workers_.Run([this](size_t w) { release_->AddNoise(w, NoiseStream(w)); });
  release_->Prepare();
  workers_.Run([this, divisor](size_t w) { release_->Update(w, NoiseStream(w), divisor, apply_); });
  if (noise_variance_) {
    workers_.Run([this](size_t w) { UpdateVariances(w); });
    KeepVariances();
  }
  ++step_;
  return report;
}

}  // namespace wisp
