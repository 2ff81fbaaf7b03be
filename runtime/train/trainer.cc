#include "runtime/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "kernels/kernels.h"
#include "runtime/core/hash.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/check_records.h"
#include "runtime/train/record_pass.h"
#include "runtime/train/release/step_release_parts.h"

namespace wisp {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;

// The seed of a record's dropout masks. In private training a record's gradient must depend on nothing but the record,
// or adding one would change those of others. So masks follow from the record's content, not from its place.
uint64_t PrivateDropoutSeed(uint64_t seed, uint64_t step, const Record& record) {
  const uint64_t parts[] = {seed, step, Hash64(std::as_bytes(record.inputs)), Hash64(std::as_bytes(record.targets))};
  return Hash64(std::as_bytes(std::span(parts)));
}

Status NoRoom(const Architecture& architecture, size_t num_records, const TrainingOptions& options) {
  const Result<TrainingMemory> plan = PlanTrainingMemory(architecture, num_records, options);
  return IoError(
      "there is no room on the device ", options.device.ops->name, ", or on the host, for the run, which takes ",
      plan.ok() ? plan->total() : 0,
      " bytes on both together; a smaller batch or fewer rows_at_once take less, and a limit of the device's "
      "memory may be raised");
}

}  // namespace

// The state of one worker: buffers, gradient method, noise stream, this step's records and figures.
struct Trainer::Worker {
  Worker(const Graph& graph, const Weights& view, RandomStream noise_stream, bool has_records)
      : buffers(has_records ? graph.AllocateForTraining() : Buffers()),
        weights(view),
        noise(std::move(noise_stream)),
        pass(graph) {}

  Buffers buffers;
  Weights weights;
  RandomStream noise;
  std::optional<PaperNoise> paper;
  RecordPass<Graph> pass;
  std::vector<uint32_t> records;
  size_t load = 0;
  // This step's figures.
  double loss = 0, norm = 0;
  size_t num_targets = 0, num_dropped = 0, num_clipped = 0;
};

Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::Create(const Architecture& architecture, std::span<const float> weights,
                                                 std::span<const Record> records, const TrainingOptions& given) {
  TrainingOptions options = given;
  if (options.num_threads == 0) options.num_threads = DefaultThreads();
  if (options.method == Method::kDpFp) options.sampling = Sampling::kPoisson;
  WISP_RETURN_IF_ERROR(Check(architecture, weights, records, options));
  if (options.num_records_public == 0) options.num_records_public = static_cast<uint32_t>(records.size());
  // recorded in RunIdentity
  if (MultipliesIntegers(architecture, options)) options.privacy.norm_form = NormForm::kIntegers;
  const bool secure = options.method != Method::kOrdinary && !options.privacy.reproducible_seed;
  const uint64_t seed = options.privacy.reproducible_seed.value_or(options.seed);
  std::vector<RandomStream> streams;  // 0 samples; from 1 on the workers' noise
  streams.reserve(options.num_threads + 1);
  for (size_t i = 0; i <= options.num_threads; ++i) {
    if (secure) {
      WISP_ASSIGN_OR_RETURN(RandomStream stream, RandomStream::Secure());
      streams.push_back(std::move(stream));
    } else {
      streams.push_back(RandomStream::Reproducible(seed + (uint64_t{i} << 32),
                                                   i == 0 ? StreamPurpose::kSampling : StreamPurpose::kNoise));
    }
  }
  std::unique_ptr<Trainer> trainer;
  const auto make = [&] { trainer.reset(new Trainer(architecture, weights, records, options, std::move(streams))); };
  if (options.device.memory.is_host()) {
    make();
  } else {
    try {
      make();
    } catch (const std::bad_alloc&) {
      return NoRoom(architecture, records.size(), options);
    }
  }
  // Packing is the device's first work, so a device that cannot run fails here, before anything is charged.
  if (!trainer->is_host()) trainer->Pack();
  WISP_RETURN_IF_ERROR(trainer->WaitForDevice("the run was set up"));
  if (!trainer->is_private()) return trainer;
  WISP_ASSIGN_OR_RETURN(trainer->plan_, PrivacyPlan::Create(architecture, options));
  trainer->charged_until_.assign(trainer->plan_->parts().size(), 0);
  return trainer;
}

Trainer::Trainer(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
                 const TrainingOptions& options, std::vector<RandomStream> streams)
    : options_(options),
      schedule_{options.num_steps, 0, options.num_steps},
      graph_(MakeGraph(architecture, options.device, GraphOf(architecture, options))),
      trained_(TrainedBy(graph_->parameters(), options)),
      records_(records),
      workers_(options.num_threads, options.executor),
      weights_(weights.size(), options.device.memory),
      first_held_(FirstHeld(graph_->parameters(), options)),
      tensors_(options.base.empty() ? std::vector<StoredTensor>()
                                    : TensorsOf(graph_->parameters(), options.base, weights_.data())),
      packed_(graph_->base(), tensors_.empty() ? weights_.data() : ParameterSource(tensors_),
              PackedWeights::Packing::kLater),
      ema_(options.ema_decay > 0 ? weights.size() : 0, options.device.memory),
      on_host_(options.device.memory.is_host() ? 0 : weights.size()),
      sampling_stream_(std::move(streams[0])) {
  if (is_private()) KeepTrainable();
  KeepWhatChanges();
  apply_ = [this](const Change& change) { Apply(change); };
  if (ReleasesHead(options_)) head_.emplace(*graph_, options_, records_.size());
  if (PooledCache::IsOf(architecture, records_.size(), options_))
    pooled_.emplace(*graph_, records_.size(), num_parts());
  if (HasGradients(options_)) {
    optimizer_.emplace(graph_->device(), options.optimizer, trained_.size());
    release_ = MakeStepRelease(*graph_, trained_, weights, options_);
  }
  if (is_private() && architecture.re_attention == ReAttention::kOn) KeepNoiseVariance();
  MakeWeights(weights);
  options_.re_attention.item_frequencies = {};
  sparse_rows_.assign(options.sparse.rows.begin(), options.sparse.rows.end());
  options_.sparse.rows = sparse_rows_;
  if (options.num_negatives > 0) negatives_.emplace(graph_->base(), options.num_negatives, options.seed);
  for (size_t w = 0; w < workers_.size(); ++w) {
    worker_state_.push_back(
        std::make_unique<Worker>(*graph_, packed_.view(), std::move(streams[w + 1]), w < num_parts()));
    if (is_balanced()) worker_state_.back()->records.reserve(records_.size());
    if (IsPaper(options_) && w < num_parts())
      worker_state_.back()->paper.emplace(options_, architecture.width, graph_->max_records());
  }
  const ListRoom room = PlanLists(options_, records_.size());
  sample_.reserve(room.sample);
  batch_.reserve(room.batch);
  batch_records_.reserve(room.batch_records);
  order_.resize(room.order);
}

void Trainer::KeepWhatChanges() {
  changes_.reserve(graph_->parameters().size());
  for (size_t i = 0; i < graph_->parameters().size(); ++i) {
    const bool fitted = ReleasesHead(options_) && IsOfHead(graph_->parameters()[i].role);
    changes_.push_back(fitted || (HasGradients(options_) && trained_.contains(i)) ? 1 : 0);
  }
}

void Trainer::KeepNoiseVariance() {
  const Architecture& a = graph_->architecture();
  noise_variance_.emplace(a, trained_, options_.re_attention,
                          GradientNoise(options_) * options_.privacy.clipping_norm / options_.expected_batch);
  if (!release_->FixedItemRows().empty()) noise_variance_->KeepItems(release_->FixedItemRows());
}

void Trainer::MakeWeights(std::span<const float> start) {
  const kernels::Memory& memory = options_.device.memory;
  if (ema_.size() > 0) memory.copy_in(ema_.data(), start.data(), start.size_bytes());
  memory.copy_in(weights_.data(), start.data(), start.size_bytes());
  if (!noise_variance_) return;
  if (is_host()) return noise_variance_->Initialise({weights_.data(), weights_.size()});
  (void)OnHost(weights_);
  noise_variance_->Initialise(on_host_);
  memory.copy_in(weights_.data(), on_host_.data(), start.size_bytes());
}

std::span<const float> Trainer::OnHost(const AlignedArray<float>& flat) const {
  if (is_host()) return {flat.data(), flat.size()};
  options_.device.memory.copy_out(on_host_.data(), flat.data(), flat.size() * sizeof(float));
  if (!options_.device.memory.wait()) failed_ = options_.device.memory.failure();
  return {on_host_.data(), flat.size()};
}

std::vector<float> Trainer::CopyOf(const AlignedArray<float>& array) const {
  std::vector<float> copy(array.size());
  options_.device.memory.copy_out(copy.data(), array.data(), copy.size() * sizeof(float));
  return copy;
}

Status Trainer::WaitForDevice(const char* what_for) {
  if (!options_.device.memory.wait()) failed_ = std::string(options_.device.memory.failure()) + ", while " + what_for;
  return CheckDevice();
}

Status Trainer::CheckDevice() const {
  if (failed_.empty()) return OkStatus();
  return IoError("the device that trains failed: ", failed_,
                 ". Its weights are lost; go on from the last checkpoint, in a new process");
}

template <class F>
void Trainer::ForParts(const F& part) {
  is_host() ? workers_.Run(part) : part(0);
}

// Leaves out invalid records. Whether a record is valid depends on that record alone, so it changes nothing for the
// others.
void Trainer::KeepTrainable() {
  const auto trainable = [this](const Record& record) {
    return IsTrainable(graph_->architecture(), record, LongestRecord(graph_->architecture(), options_.cut_to));
  };
  if (std::all_of(records_.begin(), records_.end(), trainable)) return;
  std::copy_if(records_.begin(), records_.end(), std::back_inserter(trainable_), trainable);
  num_left_out_ = records_.size() - trainable_.size();
  records_ = trainable_;
}

TrainingMemory Trainer::memory() const {
  TrainingMemory m{.weights = weights_.allocated_bytes() + ema_.allocated_bytes() + on_host_.size() * sizeof(float),
                   .packed_weights = packed_.allocated_bytes(),
                   .optimizer_state = optimizer_ ? optimizer_->size_bytes() : 0,
                   .negatives = negatives_ ? negatives_->size_bytes() : 0,
                   .activations = num_parts() * graph_->training_bytes(),
                   .variances = noise_variance_ ? noise_variance_->size_bytes() : 0,
                   .lists = (sample_.capacity() + batch_.capacity() + order_.capacity() + sparse_rows_.capacity()) *
                                sizeof(uint32_t) +
                            batch_records_.capacity() * sizeof(const Record*)};
  for (size_t w = 0; w < worker_state_.size(); ++w) {
    const Worker& worker = *worker_state_[w];
    if (release_ && w < num_parts()) m.record_gradients += release_->GradientsOf(w).scratch_bytes();
    m.lists += worker.records.capacity() * sizeof(uint32_t);
    m.activations += worker.pass.size_bytes();
  }
  if (release_) m.gradient_sums = release_->planned_bytes() - m.record_gradients;
  for (const auto& worker : worker_state_) m.record_gradients += worker->paper ? worker->paper->size_bytes() : 0;
  if (pooled_) m.pooled = pooled_->size_bytes();
  if (!head_) return m;
  m.gradient_sums += head_->release_bytes();
  m.lists += head_->list_bytes();
  return m;
}

RandomStream& Trainer::NoiseStream(size_t worker) { return worker_state_[worker]->noise; }

bool Trainer::at_end_of_charge() const {
  return std::all_of(charged_until_.begin(), charged_until_.end(), [this](uint64_t until) { return step_ >= until; });
}

// Charges all parts of the coming steps. Each part remembers how far it is charged: if the second charge is refused,
// the first one serves the next try. While the ledger is still empty, every step is written as one plan before the
// first charge: the steps' number and parameters do not depend on released values.
Status Trainer::ChargeIfNeeded() {
  const auto is_charged = [this](uint64_t until) { return step_ < until; };
  if (!is_private() || std::all_of(charged_until_.begin(), charged_until_.end(), is_charged)) return OkStatus();
  const uint64_t until = std::max(std::min(schedule_.end, pause_), step_ + 1);
  const uint64_t steps = std::min<uint64_t>(options_.privacy.steps_per_charge, until - step_);
  if (charged_until_.front() == 0) {
    WISP_ASSIGN_OR_RETURN(const auto all,
                          plan_->ChargesTogether(std::max<uint64_t>(schedule_.end, step_ + steps) - step_));
    WISP_RETURN_IF_ERROR(options_.privacy.ledger->PlanRun(all));
  }
  WISP_ASSIGN_OR_RETURN(const auto charges, plan_->Charges(steps));
  for (size_t i = 0; i < charges.size(); ++i) {
    if (step_ < charged_until_[i]) continue;
    WISP_RETURN_IF_ERROR(options_.privacy.ledger->Charge(charges[i]).status());
    charged_until_[i] = step_ + steps;
    if (i == 0) num_charged_ += steps;
  }
  WISP_ASSIGN_OR_RETURN(receipt_, options_.privacy.ledger->ReceiptOf(options_.privacy.run));
  return OkStatus();
}

void Trainer::DrawBatch() {
  sampling_stream_.Freshen();  // two machines restored from one snapshot then draw different noise
  for (const auto& w : worker_state_) w->noise.Freshen();
  if (head_) head_->Draw(sampling_stream_, records_.size());
  batch_.clear();
  if (release_) DrawGradientBatch();
}

void Trainer::DrawGradientBatch() {
  const uint32_t n = static_cast<uint32_t>(records_.size());
  if (IsPaper(options_)) {
    for (uint32_t m = 0; m < options_.dp_fp.micro_batches; ++m) {
      privacy::PoissonSample(sampling_stream_, MicroBatchProbability(options_), n, sample_);
      batch_.insert(batch_.end(), sample_.begin(), sample_.end());
    }
    return;
  }
  if (options_.sampling == Sampling::kPoisson) {
    privacy::PoissonSample(sampling_stream_, BatchProbability(options_), n, batch_);
    return;
  }
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

// Assigns the longest record first to the least loaded worker, which is deterministic. DP-FP's texts are taken in turns
// (RunRecords).
void Trainer::AssignBatch() {
  for (auto& w : worker_state_) {
    w->records.clear();
    w->load = 0;
    w->loss = w->norm = 0;
    w->num_targets = w->num_dropped = w->num_clipped = 0;
  }
  if (!is_balanced()) return;
  std::sort(batch_.begin(), batch_.end(), [this](uint32_t a, uint32_t b) {
    const size_t la = records_[a].inputs.size(), lb = records_[b].inputs.size();
    return la != lb ? la > lb : a < b;
  });
  batch_records_.clear();
  for (uint32_t record : batch_) {
    if (IsAdaptive(options_.method)) batch_records_.push_back(&records_[record]);
    const auto end = worker_state_.begin() + static_cast<ptrdiff_t>(num_parts());
    auto& least =
        *std::min_element(worker_state_.begin(), end, [](const auto& a, const auto& b) { return a->load < b->load; });
    least->records.push_back(record);
    least->load += records_[record].inputs.size();
  }
}

void Trainer::RunRecords(size_t index) {
  Worker& worker = *worker_state_[index];
  if (is_balanced()) {
    for (uint32_t i : worker.records) AddRecord(index, i);
  } else {
    for (size_t i = index; i < batch_.size(); i += num_parts()) AddRecord(index, batch_[i]);
  }
  RunWaiting(index);
}

void Trainer::AddRecord(size_t index, uint32_t i) {
  Worker& worker = *worker_state_[index];
  const Record& whole = records_[i];
  const Record record = pooled_ ? PooledCache::RowOf(whole) : whole;
  const size_t targets = NumTargets(record);
  if (targets == 0) return;
  if (!worker.pass.Fits(record)) RunWaiting(index);
  const uint64_t seed = is_private() ? PrivateDropoutSeed(options_.seed, step_, whole)
                                     : options_.seed * 0x9e3779b97f4a7c15ull + step_ * records_.size() + i;
  const float weight = options_.loss == LossWeighting::kRecordMean ? 1.0f / static_cast<float>(targets) : 1.0f;
  if (worker.paper) worker.paper->Draw(worker.noise, worker.pass.size());
  if (pooled_) pooled_->Place(index, worker.pass.size(), i);
  worker.pass.Push(record, {.dropout_seed = seed, .target_weight = weight});
  worker.num_targets += targets;
}

void Trainer::RunWaiting(size_t index) {
  Worker& worker = *worker_state_[index];
  if (worker.pass.empty()) return;
  RecordContext context{.weights = worker.weights,
                        .buffers = worker.buffers,
                        .dropout = &options_.dropout,
                        .negatives = negatives_ ? &negatives_->negatives() : nullptr,
                        .head_input = worker.paper ? worker.paper->Input() : inference_input(),
                        .pooled_BD = pooled_ ? pooled_->placed(index) : nullptr};
  for (const auto& outcome : worker.pass.Run(context, release_->GradientsOf(index))) {
    worker.loss += outcome.loss;
    worker.norm += outcome.gradient.finite ? outcome.gradient.norm : 0;
    worker.num_clipped += outcome.gradient.finite && outcome.gradient.factor < 1 ? 1 : 0;
    worker.num_dropped += outcome.gradient.finite && outcome.gradient.within ? 0 : 1;
  }
}

// Applies one range of the step's gradient: optimizer and average.
void Trainer::Apply(const Change& change) {
  const ParameterSpec& p = graph_->parameters()[change.parameter];
  float* weights = weights_.data() + (p.offset - first_held_) + change.first;
  const size_t offset = trained_.offset(change.parameter) + change.first, n = change.n;
  if (change.row_J != nullptr) {  // averages are not offered by rows (ValidateSparse)
    return optimizer_->UpdateRows(p, offset, change.gradient, n, change.row_J, rate_, step_, weights);
  }
  optimizer_->Update(p.shape, offset, change.gradient, n, rate_, step_, weights);
  if (ema_.size() == 0) return;
  float* average = ema_.data() + (p.offset - first_held_) + change.first;
  // The decay grows towards its final value, or the average would never forget the start.
  const float decay = std::min(options_.ema_decay, static_cast<float>(1 + step_) / static_cast<float>(10 + step_));
  graph_->ops().scale({.x = average, .y = average, .n = n, .a = decay, .store = kernels::Store::kAssign});
  graph_->ops().scale({.x = weights, .y = average, .n = n, .a = 1 - decay, .store = kernels::Store::kAdd});
}

// Variances have no gradient, so the averaged weights take the newest ones.
void Trainer::KeepVariances() {
  for (const ParameterSpec& p : graph_->parameters()) {
    const bool variance = p.role == ParameterRole::kItemVariance || p.role == ParameterRole::kParameterVariance;
    if (!variance || ema_.size() == 0) continue;
    graph_->ops().scale({.x = weights_.data() + p.offset,
                         .y = ema_.data() + p.offset,
                         .n = p.size(),
                         .a = 1.0f,
                         .store = kernels::Store::kAssign});
  }
}

void Trainer::UpdateVariances(size_t index) {
  noise_variance_->Add({.optimizer = *optimizer_, .rate = rate_, .step = step_, .item_rows = release_->StepItemRows()},
                       index, num_parts(), {weights_.data(), weights_.size()});
}

void Trainer::Pack() {
  ForParts([this](size_t w) {
    const std::span<const uint8_t> all_of_them;
    packed_.Pack(w, num_parts(), packed_once_ ? changes_ : all_of_them);
  });
  packed_once_ = true;
}

void Trainer::PoolOnce() {
  for (uint32_t i : batch_) pooled_->Want(i);
  if (head_) head_->ForEachDrawn([this](uint32_t i) { pooled_->Want(i); });
  ForParts([this](size_t w) {
    RecordContext context{.weights = worker_state_[w]->weights, .buffers = worker_state_[w]->buffers};
    pooled_->Fill(w, context, records_);
  });
  pooled_->Filled();
}

void Trainer::FitHead(StepReport& report) {
  report.num_head_records = head_->num_drawn();
  ForParts([this](size_t w) {
    Worker& worker = *worker_state_[w];
    RecordContext context{.weights = worker.weights, .buffers = worker.buffers};
    worker.num_dropped += head_->Add(w, context, records_, pooled_ ? &*pooled_ : nullptr);
  });
  head_->Fit(NoiseStream(0), {weights_.data(), weights_.size()});
}

// The divisor of the sum of gradients: a public constant if the run is private.
double Trainer::Divisor(size_t num_targets) const {
  if (is_private()) return options_.expected_batch;
  const size_t counted = options_.loss == LossWeighting::kRecordMean ? batch_.size() : num_targets;
  return static_cast<double>(std::max<size_t>(1, counted));
}

Status Trainer::StepWeights(StepReport& report) {
  if (negatives_) negatives_->Draw(step_, weights_.data());
  release_->Begin(step_, {weights_.data(), weights_.size()},
                  {batch_records_, negatives_ ? negatives_->negatives().items : std::span<const int32_t>()},
                  NoiseStream(0));
  workers_.Run([this](size_t w) {
    if (w < num_parts()) RunRecords(w);
    release_->DrawNoise(w, NoiseStream(w));
  });
  WISP_RETURN_IF_ERROR(WaitForDevice("the records of a step passed"));
  size_t targets = 0;
  double loss = 0;
  for (const auto& w : worker_state_) {
    loss += w->loss;
    report.mean_norm += w->norm;
    report.num_clipped += w->num_clipped;
    targets += w->num_targets;
  }
  report.num_records = batch_.size();
  if (targets > 0) report.mean_loss = loss / static_cast<double>(targets);
  if (!batch_.empty()) report.mean_norm /= static_cast<double>(batch_.size());
  if (!is_private() && !std::isfinite(report.mean_loss)) {
    return InvalidData("the loss of step ", step_, " is not finite: the learning rate ",
                       options_.optimizer.learning_rate, " is too high for this model");
  }
  release_->Reduce();
  workers_.Run([this](size_t w) { release_->AddNoise(w, NoiseStream(w)); });
  release_->Prepare();
  // The sum must not be released before its noise has arrived.
  WISP_RETURN_IF_ERROR(WaitForDevice("the noise of a step was added"));
  const double divisor = Divisor(targets);
  ForParts([this, divisor](size_t w) { release_->Update(w, NoiseStream(w), divisor, apply_); });
  return OkStatus();
}

Result<StepReport> Trainer::Step() {
  if (records_.empty() && !is_private()) return InvalidData("there is no record to train on");
  WISP_RETURN_IF_ERROR(CheckDevice());
  WISP_RETURN_IF_ERROR(ChargeIfNeeded());
  DrawBatch();
  AssignBatch();
  Pack();
  StepReport report{.step = step_};
  report.learning_rate = rate_ = LearningRate(options_.optimizer, schedule_.Position(step_), schedule_.planned);
  if (pooled_) PoolOnce();
  if (head_) FitHead(report);
  if (head_ && release_) Pack();  // the head has changed
  if (release_) WISP_RETURN_IF_ERROR(StepWeights(report));
  for (const auto& w : worker_state_) report.num_dropped += w->num_dropped;
  if (noise_variance_) {
    ForParts([this](size_t w) { UpdateVariances(w); });
    KeepVariances();
  }
  WISP_RETURN_IF_ERROR(WaitForDevice("a step changed the weights"));
  ++step_;
  return report;
}

}  // namespace wisp
