#include "runtime/methods/dp_fp/head_pass.h"

#include <algorithm>

#include "runtime/train/memory.h"
#include "runtime/train/privacy_plan.h"

namespace wisp {
namespace {

HeadReleaseOptions ReleaseOptions(const Architecture& a, const TrainingOptions& o) {
  return {.num_classes = a.head.num_classes,
          .width = a.width,
          .micro_batches = o.dp_fp.micro_batches,
          .clipping_norm = o.dp_fp.clipping_norm,
          .noise_multiplier = o.dp_fp.noise_multiplier,
          .sampling_probability = MicroBatchProbability(o),
          .num_records_public = o.num_records_public,
          .release_decay = o.dp_fp.release_decay,
          .effective_dimensions = o.dp_fp.effective_dimensions,
          .class_prior = o.dp_fp.class_prior};
}

}  // namespace

size_t MicroBatchDrawsAtMost(const TrainingOptions& o, size_t num_records) {
  return BinomialUpperQuantile(num_records * o.dp_fp.micro_batches, MicroBatchProbability(o));
}

HeadPass::HeadPass(const Graph& graph, const TrainingOptions& o, size_t num_records)
    : graph_(&graph),
      num_workers_(graph.device().memory.is_host() ? o.num_threads : 1),
      micro_batches_(o.dp_fp.micro_batches),
      probability_(MicroBatchProbability(o)),
      releases_(graph.device().memory.is_host() ? graph.device() : kernels::BestOps(),
                ReleaseOptions(graph.architecture(), o)),
      weight_(size_t{graph.architecture().head.num_classes} * graph.architecture().width),
      bias_(graph.architecture().head.num_classes) {
  sample_.reserve(num_records);
  draws_.reserve(MicroBatchDrawsAtMost(o, num_records));
  waiting_.resize(num_workers_);
  for (Waiting& waiting : waiting_) {
    waiting.records.reserve(graph.max_records());
    waiting.draws.reserve(graph.max_records());
    waiting.h.resize(graph.max_records() * graph.architecture().width);
  }
}

HeadPass::Bytes HeadPass::PlanBytes(const Graph& graph, const TrainingOptions& o, size_t num_records) {
  const Architecture& a = graph.architecture();
  const size_t draws = MicroBatchDrawsAtMost(o, num_records);
  const size_t waiting = graph.max_records() * (sizeof(Record) + sizeof(size_t) + a.width * sizeof(float));
  return {.releases = HeadReleases::PlanBytes(ReleaseOptions(a, o)),
          .lists = num_records * sizeof(uint32_t) + draws * sizeof(Drawn) +
                   (graph.device().memory.is_host() ? o.num_threads : 1) * waiting +
                   size_t{a.head.num_classes} * (a.width + 1) * sizeof(float),
          .records_at_most = draws};
}

size_t HeadPass::list_bytes() const {
  size_t bytes = sample_.capacity() * sizeof(uint32_t) + draws_.capacity() * sizeof(Drawn) +
                 (weight_.capacity() + bias_.capacity()) * sizeof(float);
  for (const Waiting& w : waiting_) {
    bytes +=
        w.records.capacity() * sizeof(Record) + w.draws.capacity() * sizeof(size_t) + w.h.capacity() * sizeof(float);
  }
  return bytes;
}

void HeadPass::Draw(privacy::RandomStream& sampling, size_t num_records) {
  draws_.clear();
  for (uint32_t m = 0; m < micro_batches_; ++m) {
    privacy::PoissonSample(sampling, probability_, static_cast<uint32_t>(num_records), sample_);
    for (uint32_t record : sample_) draws_.push_back({record, m});
  }
  releases_.Clear();
}

size_t HeadPass::Add(size_t worker, RecordContext& context, std::span<const Record> records, StateCache* cache) {
  Waiting& waiting = waiting_[worker];
  size_t dropped = 0;
  const auto add_waiting = [&] {
    if (cache != nullptr) cache->Load(worker, context);
    dropped += AddWaiting(worker, context);
  };
  for (size_t i = worker; i < draws_.size(); i += num_workers_) {
    const Record& whole = records[draws_[i].record];
    const Record record = cache != nullptr ? cache->GetPassed(whole) : whole;
    if (waiting.records.size() == graph_->max_records() || waiting.rows + record.inputs.size() > graph_->max_rows()) {
      add_waiting();
    }
    if (cache != nullptr) cache->Place(worker, waiting.records.size(), draws_[i].record);
    waiting.records.push_back(record);
    waiting.draws.push_back(i);
    waiting.rows += record.inputs.size();
  }
  add_waiting();
  return dropped;
}

size_t HeadPass::AddWaiting(size_t worker, RecordContext& context) {
  Waiting& waiting = waiting_[worker];
  if (waiting.records.empty()) return 0;
  graph_->Represent(context, waiting.records, waiting.h.data());
  size_t dropped = 0;
  for (size_t b = 0; b < waiting.records.size(); ++b) {
    const float* h = waiting.h.data() + b * graph_->architecture().width;
    const uint32_t target = static_cast<uint32_t>(waiting.records[b].targets[0]);
    if (!releases_.Add(worker, draws_[waiting.draws[b]].micro_batch, h, target)) ++dropped;
  }
  waiting.records.clear();
  waiting.draws.clear();
  waiting.rows = 0;
  return dropped;
}

void HeadPass::Fit(privacy::RandomStream& noise, std::span<float> weights) {
  releases_.Release(noise);
  const std::vector<ParameterSpec>& parameters = graph_->parameters();
  releases_.FitHead(weight_.data(), bias_.data());
  const auto copy = [&](ParameterRole role, const std::vector<float>& fitted) {
    float* at = weights.data() + parameters[RequireParameter(parameters, role)].offset;
    graph_->device().memory.copy_in(at, fitted.data(), fitted.size() * sizeof(float));
  };
  copy(ParameterRole::kClassWeight, weight_);
  copy(ParameterRole::kClassBias, bias_);
}

}  // namespace wisp
