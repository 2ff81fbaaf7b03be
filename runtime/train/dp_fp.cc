#include "runtime/train/dp_fp.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "kernels/kernels.h"
#include "runtime/privacy/discrete_gaussian.h"
#include "runtime/train/check_records.h"
#include "runtime/train/dp_fp_report.h"
#include "runtime/train/graph_replay.h"

namespace wisp {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;

constexpr size_t kUpdateChunk = 4096;  // coordinates noised and stepped at a time: 16 KB of gradient on the stack

PhantomOptions GradientOptions(const DpFpOptions& o, const std::optional<privacy::ExactGrid>& grid) {
  PhantomOptions options{.form = o.encoder.norm_form};
  if (!grid) return options;
  const double bound = grid->reduced_clipping_norm();
  options.clip = o.encoder.clipping == ClipKind::kFlat ? ClipRule::Flat(bound) : ClipRule::Automatic(bound);
  return options;
}

// `trained` where the gradient moves them: all in kPaper; not the head in kClipped, which is made of the releases.
std::vector<ParameterSpec> GradientParameters(const Classifier& graph, DpFpMode mode) {
  std::vector<ParameterSpec> parameters = graph.parameters();
  if (mode != DpFpMode::kClipped) return parameters;
  for (size_t head : {graph.head_weight(), graph.head_bias()}) parameters[head].trained = false;
  return parameters;
}

PhantomGradients::Setup SetupOf(const Classifier& graph, const std::vector<ParameterSpec>& parameters, size_t worker) {
  return {.parameters = parameters,
          .head_parameter = graph.head_weight(),
          .max_rows = graph.architecture().max_length,
          .worker = worker};
}

double MicroProbability(const DpFpOptions& o) {
  return static_cast<double>(o.expected_batch) / o.num_records_public / o.micro_batches;
}

// Draws of a step that room is made for, over all micro-batches.
size_t DrawsAtMost(size_t num_records, const DpFpOptions& o) {
  return SeldomMore(num_records * o.micro_batches, MicroProbability(o));
}

}  // namespace

// What one worker owns: buffers, noise stream, gradient method (not in kAggregate), this step's figures.
struct DpFpTrainer::Worker {
  Worker(const Classifier& graph, const Weights& view, RandomStream noise_stream)
      : buffers(graph.AllocateForTraining()),
        weights(view),
        noise(std::move(noise_stream)),
        noise_steps(graph.architecture().width),
        noise_values(graph.architecture().width) {}

  Buffers buffers;
  Weights weights;
  RandomStream noise;
  std::optional<PhantomGradients> gradients;
  std::vector<int64_t> noise_steps;  // kPaper: of one representation
  std::vector<float> noise_values;
  double loss = 0;
  size_t num_dropped = 0;
};

Result<std::unique_ptr<DpFpTrainer>> DpFpTrainer::Create(const Architecture& architecture,
                                                         std::span<const float> weights,
                                                         std::span<const Record> records, const DpFpOptions& given) {
  DpFpOptions options = given;
  if (options.num_threads == 0) options.num_threads = DefaultThreads();
  WISP_RETURN_IF_ERROR(Check(architecture, weights, records, options));
  // Stream 0 samples; streams 1.. are the workers' noise.
  std::vector<RandomStream> streams;
  for (size_t i = 0; i <= options.num_threads; ++i) {
    if (!options.reproducible_seed) {
      WISP_ASSIGN_OR_RETURN(RandomStream stream, RandomStream::Secure());
      streams.push_back(std::move(stream));
    } else {
      streams.push_back(RandomStream::Reproducible(*options.reproducible_seed + (i << 32),
                                                   i == 0 ? StreamPurpose::kSampling : StreamPurpose::kNoise));
    }
  }
  return std::unique_ptr<DpFpTrainer>(new DpFpTrainer(architecture, weights, records, options, std::move(streams)));
}

DpFpTrainer::DpFpTrainer(const Architecture& architecture, std::span<const float> weights,
                         std::span<const Record> records, const DpFpOptions& options, std::vector<RandomStream> streams)
    : options_(options),
      schedule_{options.num_steps, 0, options.num_steps},
      graph_(architecture, kernels::BestOps()),
      records_(records),
      workers_(options.num_threads),
      gradient_parameters_(GradientParameters(graph_, options.mode)),
      weights_(weights.size()),
      packed_(graph_.pack_plan().size()),
      sampling_stream_(std::move(streams[0])),
      charged_until_(options.mode == DpFpMode::kClipped ? 2 : 1, 0) {
  if (options_.num_records_public == 0) options_.num_records_public = static_cast<uint32_t>(records.size());
  const auto trainable = [&](const Record& record) { return IsTrainable(architecture, record); };
  if (is_private() && !std::all_of(records_.begin(), records_.end(), trainable)) {
    std::copy_if(records_.begin(), records_.end(), std::back_inserter(trainable_), trainable);
    num_left_out_ = records_.size() - trainable_.size();
    records_ = trainable_;
  }
  std::memcpy(weights_.data(), weights.data(), weights.size_bytes());
  const kernels::OpTable& ops = graph_.ops();
  GradientSum* sum = nullptr;
  if (is_private()) {
    releases_.emplace(ops, HeadReleaseOptions{.num_classes = architecture.head.num_classes,
                                              .width = architecture.width,
                                              .micro_batches = options.micro_batches,
                                              .clipping_norm = options.clipping_norm,
                                              .noise_multiplier = options.noise_multiplier,
                                              .sampling_probability = micro_probability(),
                                              .num_records_public = options_.num_records_public,
                                              .release_decay = options.release_decay,
                                              .effective_dimensions = options.effective_dimensions,
                                              .class_prior = options.class_prior});
  } else {
    float_sum_ = std::make_unique<FloatGradientSum>(ops, weights.size(), workers_.size());
    sum = float_sum_.get();
  }
  if (options.mode == DpFpMode::kClipped) {
    uint64_t coordinates = 0;
    for (const ParameterSpec& p : gradient_parameters_) coordinates += p.trained ? p.size() : 0;
    gradient_grid_.emplace(options.encoder.clipping_norm, coordinates);
    grid_sum_ = std::make_unique<GridGradientSum>(
        ops, weights.size(),
        GridGradientSum::Grid{.steps_per_unit = static_cast<float>(gradient_grid_->steps_per_unit()),
                              .max_sum_squares = gradient_grid_->max_sum_squares()});
    sum = grid_sum_.get();
  }
  if (sum != nullptr) optimizer_.emplace(ops, options.optimizer, weights.size());
  const Weights view{&ops, &graph_.pack_plan(), &graph_.parameters(), weights_.data(), packed_.data()};
  for (size_t w = 0; w < workers_.size(); ++w) {
    worker_state_.push_back(std::make_unique<Worker>(graph_, view, std::move(streams[w + 1])));
    if (sum == nullptr) continue;
    worker_state_.back()->gradients.emplace(ops, SetupOf(graph_, gradient_parameters_, w),
                                            GradientOptions(options_, gradient_grid_), *sum);
  }
  sample_.reserve(records_.size());
  if (options.mode == DpFpMode::kClipped) encoder_batch_.reserve(records_.size());
  draws_.reserve(DrawsAtMost(records_.size(), options_));
}

DpFpTrainer::~DpFpTrainer() = default;

TrainingMemory DpFpTrainer::memory() const {
  TrainingMemory m{
      .weights = weights_.allocated_bytes(),
      .packed_weights = packed_.allocated_bytes(),
      .optimizer_state = optimizer_ ? optimizer_->size_bytes() : 0,
      .gradient_sums = (releases_ ? releases_->size_bytes() : 0) + (grid_sum_ ? grid_sum_->size_bytes() : 0) +
                       (float_sum_ ? float_sum_->size_bytes() : 0),
      .activations = worker_state_.size() * graph_.training_bytes(),
      .lists = (sample_.capacity() + encoder_batch_.capacity()) * sizeof(uint32_t) + draws_.capacity() * sizeof(Draw)};
  for (const auto& w : worker_state_) {
    m.record_gradients += w->noise_steps.capacity() * sizeof(int64_t) + w->noise_values.capacity() * sizeof(float);
    if (w->gradients) m.record_gradients += w->gradients->scratch_bytes();
  }
  return m;
}

Result<TrainingMemory> PlanClassificationMemory(const Architecture& architecture, size_t num_records,
                                                const DpFpOptions& given) {
  WISP_RETURN_IF_ERROR(Validate(architecture));
  WISP_RETURN_IF_ERROR(CheckThreads(given.num_threads));
  if (given.micro_batches == 0 || given.expected_batch == 0)
    return InvalidArgument("expected_batch and micro_batches must be 1 or above");
  DpFpOptions o = given;
  if (o.num_threads == 0) o.num_threads = DefaultThreads();
  if (o.num_records_public == 0) o.num_records_public = static_cast<uint32_t>(num_records);
  const Classifier graph(architecture, kernels::BestOps());
  const size_t size = FlatSize(graph.parameters()), workers = o.num_threads, width = architecture.width;
  const bool clipped = o.mode == DpFpMode::kClipped, paper = o.mode == DpFpMode::kPaper;
  TrainingMemory m{.weights = AlignedArray<float>::AllocatedBytes(size),
                   .packed_weights = AlignedArray<float>::AllocatedBytes(graph.pack_plan().size()),
                   .activations = workers * graph.training_bytes(),
                   .record_gradients = workers * width * (sizeof(int64_t) + sizeof(float)),
                   .records_at_most = DrawsAtMost(num_records, o)};
  m.lists = (clipped ? 2 : 1) * num_records * sizeof(uint32_t) + m.records_at_most * sizeof(DpFpTrainer::Draw);
  if (paper) m.gradient_sums = workers * AlignedArray<float>::AllocatedBytes(size);
  if (!paper)
    m.gradient_sums = HeadReleases::PlanBytes(
        {.num_classes = architecture.head.num_classes, .width = architecture.width, .micro_batches = o.micro_batches});
  if (clipped) m.gradient_sums += AlignedArray<int64_t>::AllocatedBytes(size);
  if (!clipped && !paper) return m;
  WISP_RETURN_IF_ERROR(Validate(o.optimizer));
  m.optimizer_state = Optimizer::PlanBytes(o.optimizer, size);
  const std::vector<ParameterSpec> parameters = GradientParameters(graph, o.mode);
  m.record_gradients += workers * PhantomGradients::PlanBytes(graph.ops(), SetupOf(graph, parameters, 0),
                                                              GradientOptions(o, std::nullopt));
  return m;
}

std::vector<privacy::RandomStream*> DpFpTrainer::AllStreams() {
  std::vector<privacy::RandomStream*> streams = {&sampling_stream_};
  for (const auto& worker : worker_state_) streams.push_back(&worker->noise);
  return streams;
}

double DpFpTrainer::micro_probability() const { return MicroProbability(options_); }

// All steps, as one plan, where the ledger is still empty: number and parameters do not depend on what is released.
Status DpFpTrainer::PlanSteps(uint64_t steps) const {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::Mechanism> mechanisms, DpFpMechanisms(options_, steps));
  std::vector<privacy::ChargeRequest> all;
  for (const privacy::Mechanism& m : mechanisms) {
    all.push_back(
        {.mechanism = m,
         .run = options_.run,
         .noise = options_.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure});
  }
  all.front().loss_slack = DpFpLossSlack(graph_.architecture(), options_, steps);  // of both together
  return options_.ledger->PlanRun(all);
}

// Each mechanism remembers how far it is charged: where the second is refused, the first charge serves the next try.
Status DpFpTrainer::ChargeIfNeeded() {
  if (!is_private()) return OkStatus();
  if (std::all_of(charged_until_.begin(), charged_until_.end(), [this](uint64_t until) { return step_ < until; }))
    return OkStatus();
  const uint64_t steps =
      std::min<uint64_t>(options_.steps_per_charge, std::max<uint64_t>(schedule_.end, step_ + 1) - step_);
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::Mechanism> mechanisms, DpFpMechanisms(options_, steps));
  if (charged_until_.front() == 0)
    WISP_RETURN_IF_ERROR(PlanSteps(std::max<uint64_t>(schedule_.end, step_ + steps) - step_));
  for (size_t i = 0; i < mechanisms.size(); ++i) {
    if (step_ < charged_until_[i]) continue;
    const bool head = i == 0;
    const privacy::ExactGrid& grid = head ? releases_->grid() : *gradient_grid_;
    const privacy::ChargeRequest charge{
        .mechanism = mechanisms[i],
        .run = options_.run,
        .purpose = head ? kHeadPurpose : kEncoderPurpose,
        .noise = options_.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure,
        .loss_slack =
            privacy::DiscretisationLoss({.sigma_in_steps = grid.sigma_in_steps(mechanisms[i].noise_multiplier()),
                                         .num_coordinates = grid.num_coordinates(),
                                         .num_steps = mechanisms[i].steps()})};
    WISP_RETURN_IF_ERROR(options_.ledger->Charge(charge).status());
    charged_until_[i] = step_ + steps;
    if (head) num_charged_ += steps;
  }
  return OkStatus();
}

void DpFpTrainer::DrawBatches() {
  const uint32_t n = static_cast<uint32_t>(records_.size());
  draws_.clear();
  for (uint32_t m = 0; m < options_.micro_batches; ++m) {
    privacy::PoissonSample(sampling_stream_, micro_probability(), n, sample_);
    for (uint32_t record : sample_) draws_.push_back({record, m});
  }
  if (options_.mode != DpFpMode::kClipped) return;
  privacy::PoissonSample(sampling_stream_, static_cast<double>(options_.expected_batch) / options_.num_records_public,
                         n, encoder_batch_);
}

void DpFpTrainer::Pack() {
  workers_.Run(
      [this](size_t w) { graph_.pack_plan().Pack(graph_.ops(), weights_.data(), packed_.data(), w, workers_.size()); });
}

void DpFpTrainer::AddRepresentations(size_t index) {
  Worker& worker = *worker_state_[index];
  RecordContext context{.weights = worker.weights, .buffers = worker.buffers};
  for (size_t i = index; i < draws_.size(); i += worker_state_.size()) {
    const Record& record = records_[draws_[i].record];
    const float* h = graph_.Represent(context, record.inputs);
    if (!releases_->Add(index, draws_[i].micro_batch, h, static_cast<uint32_t>(record.targets[0])))
      ++worker.num_dropped;
  }
}

void DpFpTrainer::AddRecordGradient(Worker& worker, const Record& record, const HeadInput& input) {
  RecordContext context{.weights = worker.weights, .buffers = worker.buffers, .head_input = input};
  worker.gradients->BeginRecord(record.inputs);
  worker.loss += graph_.Forward(context, record);
  graph_.Backward(context, record, *worker.gradients);
  GraphReplay replayer(graph_, context, record);
  const RecordOutcome outcome = worker.gradients->FinishRecord(replayer);
  if (!outcome.finite || !outcome.within) ++worker.num_dropped;
}

void DpFpTrainer::AddEncoderGradients(size_t index) {
  for (size_t i = index; i < encoder_batch_.size(); i += worker_state_.size()) {
    AddRecordGradient(*worker_state_[index], records_[encoder_batch_[i]], inference_input());
  }
}

void DpFpTrainer::AddPaperGradients(size_t index) {
  Worker& worker = *worker_state_[index];
  const privacy::ExactGrid grid(options_.clipping_norm, worker.noise_steps.size());
  for (size_t i = index; i < draws_.size(); i += worker_state_.size()) {
    std::fill(worker.noise_steps.begin(), worker.noise_steps.end(), 0);
    privacy::AddDiscreteGaussian(worker.noise, grid.sigma_in_steps(options_.noise_multiplier), worker.noise_steps);
    for (size_t k = 0; k < worker.noise_steps.size(); ++k) {
      worker.noise_values[k] = static_cast<float>(static_cast<double>(worker.noise_steps[k]) * grid.grid());
    }
    AddRecordGradient(worker, records_[draws_[i].record],
                      {.norm_bound = options_.clipping_norm, .noise_D = worker.noise_values.data()});
  }
}

// Every coordinate that a gradient moves, in chunks dealt out to the workers: noise (kClipped), scale, optimizer.
void DpFpTrainer::UpdateWeights(size_t index, double divisor) {
  Worker& worker = *worker_state_[index];
  const float scale = static_cast<float>(is_private() ? gradient_grid_->Scale(divisor) : 1.0 / divisor);
  float g[kUpdateChunk];
  size_t turn = 0;
  for (const ParameterSpec& p : gradient_parameters_) {
    if (!p.trained) continue;
    for (size_t first = 0; first < p.size(); first += kUpdateChunk) {
      if (turn++ % worker_state_.size() != index) continue;
      const size_t n = std::min(kUpdateChunk, p.size() - first), offset = p.offset + first;
      if (is_private()) {
        const std::span<int64_t> sum = grid_sum_->sum().subspan(offset, n);
        privacy::AddDiscreteGaussian(worker.noise, gradient_grid_->sigma_in_steps(options_.encoder.noise_multiplier),
                                     sum);
        for (size_t i = 0; i < n; ++i) g[i] = static_cast<float>(sum[i]) * scale;
      } else {
        for (size_t i = 0; i < n; ++i) g[i] = float_sum_->sum()[offset + i] * scale;
      }
      optimizer_->Update(p, offset, g, n, rate_, step_, weights_.data());
    }
  }
}

void DpFpTrainer::UpdateHead() {
  releases_->Clear();
  workers_.Run([this](size_t w) { AddRepresentations(w); });
  releases_->Release(worker_state_[0]->noise);
  releases_->FitHead(weights_.data() + graph_.parameters()[graph_.head_weight()].offset,
                     weights_.data() + graph_.parameters()[graph_.head_bias()].offset);
}

Result<DpFpStepReport> DpFpTrainer::Step() {
  WISP_RETURN_IF_ERROR(ChargeIfNeeded());
  DrawBatches();
  for (auto& w : worker_state_) {
    w->loss = 0;
    w->num_dropped = 0;
  }
  Pack();
  if (is_private()) UpdateHead();
  rate_ = LearningRate(options_.optimizer, schedule_.Position(step_), schedule_.planned);
  DpFpStepReport report{.step = step_, .num_records = draws_.size()};
  size_t with_loss = 0;
  if (options_.mode == DpFpMode::kClipped) {
    Pack();  // the head has changed
    grid_sum_->Clear();
    workers_.Run([this](size_t w) { AddEncoderGradients(w); });
    with_loss = report.num_encoder_records = encoder_batch_.size();
    workers_.Run([this](size_t w) { UpdateWeights(w, options_.expected_batch); });
  } else if (!is_private()) {
    float_sum_->Clear();
    workers_.Run([this](size_t w) { AddPaperGradients(w); });
    with_loss = draws_.size();
  }
  for (const auto& w : worker_state_) {
    report.mean_loss += w->loss / static_cast<double>(std::max<size_t>(1, with_loss));
    report.num_dropped += w->num_dropped;
  }
  if (!is_private()) {
    if (!std::isfinite(report.mean_loss)) {
      return InvalidData("the loss of step ", step_, " is not finite: the learning rate ",
                         options_.optimizer.learning_rate, " is too high for this model");
    }
    float_sum_->Reduce();
    workers_.Run(
        [this, with_loss](size_t w) { UpdateWeights(w, static_cast<double>(std::max<size_t>(1, with_loss))); });
  }
  ++step_;
  return report;
}

}  // namespace wisp
