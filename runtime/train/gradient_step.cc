#include "runtime/train/gradient_step.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/hash.h"
#include "runtime/train/check_records.h"
#include "runtime/train/checkpoint_parts.h"

namespace wisp {
namespace {

// The seed of a record's dropout masks. In private training a record's gradient must depend on nothing but the record,
// or adding one would change those of others. So masks follow from the record's content, not from its place.
uint64_t PrivateDropoutSeed(uint64_t seed, uint64_t step, const Record& record) {
  const uint64_t parts[] = {seed, step, Hash64(std::as_bytes(record.inputs)), Hash64(std::as_bytes(record.targets))};
  return Hash64(std::as_bytes(std::span(parts)));
}

// Entries for which a step's lists reserve memory: the records of the batch, those that an adaptive method reads, and
// those of all workers together.
struct ListRoom {
  size_t batch, batch_records, of_workers;
};
ListRoom PlanLists(const TrainingOptions& o, size_t num_records) {
  return {.batch = PlanSampler(o, num_records).most_records,
          .batch_records = IsAdaptive(o.method) ? num_records : 0,
          .of_workers = o.method == Method::kDpFp ? 0 : o.num_threads * num_records};
}

size_t ScratchAlong(const Architecture& a, const TrainingOptions& o) {
  return o.item_features.values.empty() ? 0 : Optimizer::ScratchAlong(o.item_features.count, a.width);
}

}  // namespace

GradientStep::GradientStep(StepContext& context, std::span<const float> start)
    : context_(&context),
      sampler_(MakeSampler(context.options, context.records.size())),
      method_(GetEntry(context.options).make({context.graph, context.trained, start, context.options})) {
  const TrainingOptions& o = context.options;
  const Graph& graph = context.graph;
  optimizer_.emplace(graph.device(), o.optimizer, context.trained.size());
  along_ = AlignedArray<float>(ScratchAlong(graph.architecture(), o));
  observer_ = MakeUpdateObserver(graph, context.trained, o, method_->FixedItemRows());
  if (observer_) observer_->Start(context.weights);
  if (o.num_negatives > 0) negatives_.emplace(graph.base(), o.num_negatives, o.seed);
  for (size_t w = 0; w < context.workers.size(); ++w) {
    workers_.push_back(std::make_unique<Worker>(graph));
    if (is_balanced()) workers_.back()->records.reserve(context.records.size());
    if (w < context.num_callers) workers_.back()->head_noise = MakeHeadNoise(graph, o);
  }
  const ListRoom room = PlanLists(o, context.records.size());
  batch_.reserve(room.batch);
  batch_records_.reserve(room.batch_records);
  apply_ = [this](const Change& change) { Apply(change); };
}

std::span<const int32_t> GradientStep::negatives() const {
  return negatives_ ? negatives_->negatives().items : std::span<const int32_t>();
}

void GradientStep::Draw(privacy::RandomStream& sampling) { sampler_->Draw(context_->step, sampling, batch_); }

void GradientStep::WantStates(StateCache& states) const {
  for (const uint32_t i : batch_) states.Want(i);
}

// Assigns the longest record first to the least loaded worker, which is deterministic. DP-FP's texts are taken in turns
// (RunRecords).
void GradientStep::Assign() {
  for (auto& w : workers_) {
    w->records.clear();
    w->load = w->num_begun = 0;
    w->loss = w->norm = 0;
    w->num_targets = w->num_dropped = w->num_clipped = 0;
  }
  if (!is_balanced()) return;
  const std::span<const Record> records = context_->records;
  std::sort(batch_.begin(), batch_.end(), [records](uint32_t a, uint32_t b) {
    const size_t la = records[a].inputs.size(), lb = records[b].inputs.size();
    return la != lb ? la > lb : a < b;
  });
  batch_records_.clear();
  for (const uint32_t record : batch_) {
    if (method_->ReadsBatch()) batch_records_.push_back(&records[record]);
    const auto end = workers_.begin() + static_cast<ptrdiff_t>(context_->num_callers);
    auto& least =
        *std::min_element(workers_.begin(), end, [](const auto& a, const auto& b) { return a->load < b->load; });
    least->records.push_back(record);
    least->load += records[record].inputs.size();
  }
}

size_t GradientStep::CountRecords(size_t index) const {
  if (is_balanced()) return workers_[index]->records.size();
  return (batch_.size() - index + context_->num_callers - 1) / context_->num_callers;
}

void GradientStep::RunRecords(size_t index) {
  const auto take_up = [this, index](uint32_t record) {
    if (context_->stop.now()) return;
    AddRecord(index, record);
    ++workers_[index]->num_begun;
  };
  if (is_balanced()) {
    for (const uint32_t i : workers_[index]->records) take_up(i);
  } else {
    for (size_t i = index; i < batch_.size(); i += context_->num_callers) take_up(batch_[i]);
  }
  if (!context_->stop.now()) RunWaiting(index);
}

void GradientStep::AddRecord(size_t index, uint32_t i) {
  const TrainingOptions& o = context_->options;
  Worker& worker = *workers_[index];
  const Record& whole = context_->records[i];
  const Record record = context_->states ? context_->states->GetPassed(whole) : whole;
  const size_t targets = NumTargets(record);
  if (targets == 0) return;
  if (!worker.pass.Fits(record)) RunWaiting(index);
  const uint64_t seed = IsPrivate(o) ? PrivateDropoutSeed(o.seed, context_->step, whole)
                                     : o.seed * 0x9e3779b97f4a7c15ull + context_->step * context_->records.size() + i;
  const float weight = o.loss == LossWeighting::kRecordMean ? 1.0f / static_cast<float>(targets) : 1.0f;
  if (worker.head_noise) worker.head_noise->Draw(context_->of_workers[index].noise, worker.pass.size());
  if (context_->states) context_->states->Place(index, worker.pass.size(), i);
  worker.pass.Push(record, {.dropout_seed = seed, .target_weight = weight});
  worker.num_targets += targets;
}

void GradientStep::RunWaiting(size_t index) {
  Worker& worker = *workers_[index];
  if (worker.pass.empty()) return;
  if (index == 0) context_->stop.Ask();
  RecordContext context{.weights = context_->weights.view(),
                        .buffers = context_->of_workers[index].buffers,
                        .dropout = &context_->options.dropout,
                        .negatives = negatives_ ? &negatives_->negatives() : nullptr,
                        .head_input = worker.head_noise ? worker.head_noise->Input() : context_->inference_input()};
  if (context_->states) context_->states->Load(index, context);
  // A device computes while the share of the noise is drawn that is due after these records.
  const double share = static_cast<double>(worker.num_begun) / static_cast<double>(CountRecords(index));
  const auto draw = [&] { method_->DrawNoise(index, context_->GetNoise(index), share); };
  for (const auto& outcome : worker.pass.Run(context, method_->GetGradients(index), draw)) {
    worker.loss += outcome.loss;
    worker.norm += outcome.gradient.finite ? outcome.gradient.norm : 0;
    worker.num_clipped += outcome.gradient.finite && outcome.gradient.factor < 1 ? 1 : 0;
    worker.num_dropped += outcome.gradient.finite && outcome.gradient.within ? 0 : 1;
  }
}

size_t GradientStep::AddFigures(StepReport& report) const {
  size_t targets = 0;
  double loss = 0;
  for (const auto& w : workers_) {
    loss += w->loss;
    report.mean_norm += w->norm;
    report.num_clipped += w->num_clipped;
    report.num_dropped += w->num_dropped;
    targets += w->num_targets;
  }
  report.num_records = batch_.size();
  if (targets > 0) report.mean_loss = loss / static_cast<double>(targets);
  if (!batch_.empty()) report.mean_norm /= static_cast<double>(batch_.size());
  return targets;
}

// The divisor of the sum of gradients: a public constant if the run is private.
double GradientStep::Divisor(size_t num_targets) const {
  const TrainingOptions& o = context_->options;
  if (IsPrivate(o)) return o.expected_batch;
  const size_t counted = o.loss == LossWeighting::kRecordMean ? batch_.size() : num_targets;
  return static_cast<double>(std::max<size_t>(1, counted));
}

Status GradientStep::Run(StepReport& report) {
  StepContext& c = *context_;
  Assign();
  const std::span<const float> weights = c.weights.current();
  if (negatives_) negatives_->Draw(c.step, weights.data());
  method_->Begin(c.step, weights, {batch_records_, negatives()}, c.GetNoise(0));
  c.workers.Run([this](size_t w) {
    if (w < context_->num_callers) RunRecords(w);
    if (!context_->stop.now()) method_->DrawNoise(w, context_->GetNoise(w), 1);
  });
  if (c.stop.now()) return Cancelled("step ", c.step + 1, " was given up");
  WISP_RETURN_IF_ERROR(c.weights.WaitForDevice("the records of a step passed"));
  const size_t targets = AddFigures(report);
  if (!IsPrivate(c.options) && !std::isfinite(report.mean_loss)) {
    return InvalidData("the loss of step ", c.step, " is not finite: the learning rate ",
                       c.options.optimizer.learning_rate, " is too high for this model");
  }
  method_->Reduce();
  c.workers.Run([this](size_t w) { method_->AddNoise(w, context_->GetNoise(w)); });
  method_->Prepare();
  // The sum must not be released before its noise has arrived.
  WISP_RETURN_IF_ERROR(c.weights.WaitForDevice("the noise of a step was added"));
  const double divisor = Divisor(targets);
  c.ForParts([this, divisor](size_t w) { method_->Update(w, context_->GetNoise(w), divisor, apply_); });
  MoveAlongFeatures();
  if (observer_) observer_->Follow(c, *optimizer_, method_->StepItemRows());
  return OkStatus();
}

// Applies one range of the step's gradient: optimizer and average. Averages are not offered by rows (CheckSparse).
void GradientStep::Apply(const Change& change) {
  StepContext& c = *context_;
  const ParameterSpec& p = c.graph.parameters()[change.parameter];
  const size_t first = c.weights.offset(p) + change.first, offset = c.trained.offset(change.parameter) + change.first;
  float* weights = c.weights.current().data() + first;
  if (change.row_J != nullptr)
    return optimizer_->UpdateRows(p, offset, change.gradient, change.n, change.row_J, c.rate, c.step, weights);
  optimizer_->Update(p.shape, offset, change.gradient, change.n, c.rate, c.step, weights);
  if (c.weights.has_average()) c.weights.Average(first, change.n, c.step);
}

// By one thread: a few operations a weight.
void GradientStep::MoveAlongFeatures() {
  StepContext& c = *context_;
  const ItemFeatureOptions& f = c.options.item_features;
  if (f.values.empty()) return;
  for (const uint32_t i : c.trained.parameters()) {
    const ParameterSpec& p = c.graph.parameters()[i];
    if (p.role != ParameterRole::kItemTable && p.role != ParameterRole::kOutputTable) continue;
    optimizer_->UpdateAlong(f.values.data(), f.count, p, c.trained.offset(i), c.rate * f.rate, c.step, along_.data(),
                            c.weights.current().data() + c.weights.offset(p));
  }
}

namespace {

std::vector<float> MakeCopy(const kernels::Memory& memory, const AlignedArray<float>& array) {
  std::vector<float> copy(array.size());
  memory.copy_out(copy.data(), array.data(), copy.size() * sizeof(float));
  return copy;
}

}  // namespace

void GradientStep::Save(Checkpoint& c) const {
  const kernels::Memory& memory = context_->options.device.memory;
  c.first_moment = MakeCopy(memory, optimizer_->first());
  c.second_moment = MakeCopy(memory, optimizer_->second());
  sampler_->Save(c);
}

Status GradientStep::Check(const Checkpoint& c) const {
  using checkpoint_parts::CheckSize;
  WISP_RETURN_IF_ERROR(CheckSize("first moment", c.first_moment.size(), optimizer_->first().size()));
  WISP_RETURN_IF_ERROR(CheckSize("second moment", c.second_moment.size(), optimizer_->second().size()));
  return sampler_->Check(c);
}

void GradientStep::Restore(const Checkpoint& c) {
  const kernels::Memory& memory = context_->options.device.memory;
  memory.copy_in(optimizer_->first().data(), c.first_moment.data(), c.first_moment.size() * sizeof(float));
  memory.copy_in(optimizer_->second().data(), c.second_moment.data(), c.second_moment.size() * sizeof(float));
  sampler_->Restore(c);
}

void GradientStep::EndSteps() {
  method_.reset();
  optimizer_.reset();
  along_ = {};
}

void GradientStep::AddMemory(TrainingMemory& m) const {
  m.optimizer_state += (optimizer_ ? optimizer_->size_bytes() : 0) + along_.allocated_bytes();
  m.negatives += negatives_ ? negatives_->size_bytes() : 0;
  m.variances += observer_ ? observer_->size_bytes() : 0;
  m.lists +=
      sampler_->size_bytes() + batch_.capacity() * sizeof(uint32_t) + batch_records_.capacity() * sizeof(const Record*);
  size_t records = 0;
  for (size_t w = 0; w < workers_.size(); ++w) {
    if (method_ && w < context_->num_callers) records += method_->GetGradients(w).scratch_bytes();
    m.lists += workers_[w]->records.capacity() * sizeof(uint32_t);
    m.activations += workers_[w]->pass.size_bytes();
    m.record_gradients += workers_[w]->head_noise ? workers_[w]->head_noise->size_bytes() : 0;
  }
  m.record_gradients += records;
  if (method_) m.gradient_sums += method_->planned_bytes() - records;
}

void GradientStep::AddPlannedMemory(const Graph& graph, size_t num_records, const TrainingOptions& o,
                                    TrainingMemory& m) {
  const TrainedSet trained = TrainedBy(graph.parameters(), o);
  const MethodBytes method = GetEntry(o).plan(graph, trained, num_records, o);
  const SamplerPlan sampler = PlanSampler(o, num_records);
  const ListRoom lists = PlanLists(o, num_records);
  m.optimizer_state += Optimizer::PlanBytes(o.optimizer, trained.size()) +
                       AlignedArray<float>::AllocatedBytes(ScratchAlong(graph.architecture(), o));
  m.negatives += o.num_negatives > 0 ? NegativeSampler::PlanBytes(graph.base(), o.num_negatives) : 0;
  m.variances += PlanUpdateObserver(graph.architecture(), o);
  m.lists +=
      sampler.bytes + (lists.batch + lists.of_workers) * sizeof(uint32_t) + lists.batch_records * sizeof(const Record*);
  m.activations += o.num_threads * RecordPass<Graph>::PlanBytes(graph);
  m.record_gradients += method.records + NumCallers(o) * PlanHeadNoise(graph, o);
  m.gradient_sums += method.sums;
  m.growth_at_most = method.growth_at_most;
  m.rows_at_most = method.rows_at_most;
  m.records_at_most = IsPaper(o) ? sampler.most_records : method.records_at_most;
}

}  // namespace wisp
