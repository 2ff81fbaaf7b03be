#include "runtime/train/pooled_cache.h"

#include <algorithm>

namespace wisp {
namespace {

// Must agree with TrainedBy.
bool TrainsTheHeadAlone(const TrainingOptions& o) { return !HasGradients(o) || o.trained_part == TrainedPart::kHead; }

// Dropout below the head is sampled anew each step. A run without gradients drops nothing.
bool Drops(const TrainingOptions& o) {
  return HasGradients(o) && (o.dropout.embedding > 0 || o.dropout.attention > 0 || o.dropout.residual > 0);
}

}  // namespace

bool PooledCache::IsUsedFor(const Architecture& a, size_t num_records, const TrainingOptions& o) {
  if (a.head.kind != HeadKind::kClasses || a.adapter || a.re_attention == ReAttention::kOn) return false;
  if (!o.device.memory.is_host() || Drops(o) || !TrainsTheHeadAlone(o)) return false;
  return num_records <= o.cache_at_most / (a.width * sizeof(float));
}

size_t PooledCache::PlanBytes(const Graph& graph, size_t num_records, size_t num_workers) {
  const size_t d = graph.architecture().width;
  return AlignedArray<float>::AllocatedBytes(num_records * d) + num_records * (sizeof(uint8_t) + sizeof(uint32_t)) +
         num_workers * graph.max_records() * (sizeof(Record) + sizeof(uint32_t) + d * sizeof(float));
}

PooledCache::PooledCache(const Graph& graph, size_t num_records, size_t num_workers)
    : graph_(&graph),
      width_(graph.architecture().width),
      states_(num_records * width_),
      known_(num_records, 0),
      waiting_(num_workers) {
  missing_.reserve(num_records);
  for (Waiting& waiting : waiting_) {
    waiting.records.reserve(graph.max_records());
    waiting.indices.reserve(graph.max_records());
    waiting.states.resize(graph.max_records() * width_);
  }
}

size_t PooledCache::size_bytes() const {
  size_t bytes = states_.allocated_bytes() + known_.capacity() + missing_.capacity() * sizeof(uint32_t);
  for (const Waiting& w : waiting_) {
    bytes += w.records.capacity() * sizeof(Record) + w.indices.capacity() * sizeof(uint32_t) +
             w.states.capacity() * sizeof(float);
  }
  return bytes;
}

void PooledCache::Want(uint32_t record) {
  if (known_[record] != 0) return;
  known_[record] = 1;
  missing_.push_back(record);
}

void PooledCache::Fill(size_t worker, RecordContext& context, std::span<const Record> records) {
  Waiting& waiting = waiting_[worker];
  for (size_t i = worker; i < missing_.size(); i += waiting_.size()) {
    const Record& record = records[missing_[i]];
    const bool fits =
        waiting.records.size() < graph_->max_records() && waiting.rows + record.inputs.size() <= graph_->max_rows();
    if (!fits) Compute(waiting, context);
    waiting.records.push_back(record);
    waiting.indices.push_back(missing_[i]);
    waiting.rows += record.inputs.size();
  }
  Compute(waiting, context);
}

void PooledCache::Place(size_t worker, size_t b, size_t record) {
  std::copy_n(states_.data() + record * width_, width_, waiting_[worker].states.data() + b * width_);
}

void PooledCache::Compute(Waiting& waiting, RecordContext& context) {
  if (waiting.records.empty()) return;
  graph_->Pool(context, waiting.records, waiting.states.data());
  for (size_t b = 0; b < waiting.indices.size(); ++b)
    std::copy_n(waiting.states.data() + b * width_, width_, states_.data() + waiting.indices[b] * width_);
  waiting.records.clear();
  waiting.indices.clear();
  waiting.rows = 0;
}

}  // namespace wisp
