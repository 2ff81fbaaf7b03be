#include "runtime/train/state_cache.h"

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

bool StateCache::IsUsedFor(const Architecture& a, size_t num_records, const TrainingOptions& o) {
  if (o.last_blocks > 0) return true;  // ValidateTrains refuses it where there is no cache
  if (a.head.kind != HeadKind::kClasses || a.adapter || a.re_attention == ReAttention::kOn) return false;
  if (!o.device.memory.is_host() || Drops(o) || !TrainsTheHeadAlone(o)) return false;
  return num_records <= o.cache_at_most / (a.width * sizeof(float));
}

StateCache::Sizes StateCache::GetSizes(const Graph& graph, size_t num_records, const TrainingOptions& o) {
  const Architecture& a = graph.architecture();
  if (o.last_blocks == 0) return {.rows = num_records, .waiting_rows = graph.max_records()};
  const size_t most = num_records * LongestRecord(a, o.cut_to), space = o.cache_at_most / (a.width * 2);
  return {.first_block = static_cast<uint32_t>(a.blocks.size()) - o.last_blocks,
          .rows = std::min({most, space, size_t{kNotKept} - 1}),
          .waiting_rows = graph.max_rows()};
}

ArenaPlan StateCache::GetPlan(const Sizes& sizes, size_t width, Slot<float>& vectors, Slot<kernels::Half>& halves) {
  ArenaPlan plan;
  if (sizes.first_block) {
    halves = plan.Reserve<kernels::Half>(sizes.rows * width);
  } else {
    vectors = plan.Reserve<float>(sizes.rows * width);
  }
  return plan;
}

size_t StateCache::PlanBytes(const Graph& graph, size_t num_records, const TrainingOptions& o) {
  const size_t d = graph.architecture().width;
  const Sizes sizes = GetSizes(graph, num_records, o);
  Slot<float> vectors;
  Slot<kernels::Half> halves;
  return GetPlan(sizes, d, vectors, halves).allocated_bytes() + 2 * num_records * sizeof(uint32_t) +
         o.num_threads * (graph.max_records() * (sizeof(Record) + 2 * sizeof(uint32_t)) +
                          (sizes.first_block ? 2 : 1) * sizes.waiting_rows * d * sizeof(float));
}

StateCache::StateCache(const Graph& graph, std::span<const Record> records, const TrainingOptions& o)
    : graph_(&graph),
      records_(records),
      width_(graph.architecture().width),
      first_row_(records.size(), kNotKept),
      waiting_(o.num_threads) {
  const Sizes sizes = GetSizes(graph, records.size(), o);
  first_block_ = sizes.first_block;
  capacity_ = sizes.rows;
  states_ = Arena(GetPlan(sizes, width_, vectors_, halves_), {}, ArenaUse::kInPart);
  missing_.reserve(records.size());
  for (Waiting& waiting : waiting_) {
    waiting.records.reserve(graph.max_records());
    waiting.indices.reserve(graph.max_records());
    waiting.placed.reserve(graph.max_records());
    waiting.states.resize(sizes.waiting_rows * width_);
    if (first_block_) waiting.computed.resize(sizes.waiting_rows * width_);
  }
}

size_t StateCache::size_bytes() const {
  Slot<float> vectors;
  Slot<kernels::Half> halves;
  const Sizes sizes{.first_block = first_block_, .rows = capacity_};
  size_t bytes = GetPlan(sizes, width_, vectors, halves).allocated_bytes() +
                 (first_row_.capacity() + missing_.capacity()) * sizeof(uint32_t);
  for (const Waiting& w : waiting_) {
    bytes += w.records.capacity() * sizeof(Record) + (w.indices.capacity() + w.placed.capacity()) * sizeof(uint32_t) +
             (w.computed.capacity() + w.states.capacity()) * sizeof(float);
  }
  return bytes;
}

void StateCache::Forget() {
  std::fill(first_row_.begin(), first_row_.end(), kNotKept);
  rows_ = 0;
}

void StateCache::Want(uint32_t record) {
  const size_t rows = CountRows(record);
  if (first_row_[record] != kNotKept || rows > capacity_ - rows_) return;
  first_row_[record] = static_cast<uint32_t>(rows_);
  rows_ += rows;
  missing_.push_back(record);
}

bool StateCache::Fits(const Waiting& waiting, const Record& record) const {
  return waiting.records.size() < graph_->max_records() && waiting.rows + record.inputs.size() <= graph_->max_rows();
}

void StateCache::Wait(Waiting& waiting, uint32_t record) const {
  waiting.records.push_back(records_[record]);
  waiting.indices.push_back(record);
  waiting.rows += records_[record].inputs.size();
}

void StateCache::Fill(size_t worker, RecordContext& context) {
  Waiting& waiting = waiting_[worker];
  const auto keep = [this, &waiting](size_t i, const float* states) { Keep(states, waiting.indices[i]); };
  for (size_t i = worker; i < missing_.size(); i += waiting_.size()) {
    if (!Fits(waiting, records_[missing_[i]])) Compute(waiting, context, keep);
    Wait(waiting, missing_[i]);
  }
  Compute(waiting, context, keep);
}

template <class Take>
void StateCache::Compute(Waiting& waiting, RecordContext& context, const Take& take) const {
  if (waiting.records.empty()) return;
  float* states = first_block_ ? waiting.computed.data() : waiting.states.data();
  if (first_block_) {
    graph_->PassBelow(context, waiting.records, *first_block_, states);
  } else {
    graph_->Pool(context, waiting.records, states);
  }
  for (size_t i = 0; i < waiting.indices.size(); ++i) {
    take(i, states);
    states += CountRows(waiting.indices[i]) * width_;
  }
  waiting.records.clear();
  waiting.indices.clear();
  waiting.rows = 0;
}

void StateCache::Keep(const float* states, uint32_t record) {
  const size_t first = first_row_[record] * width_, size = CountRows(record) * width_;
  if (first_block_) {
    std::transform(states, states + size, states_[halves_] + first, kernels::ToHalf);
  } else {
    std::copy_n(states, size, states_[vectors_] + first);
  }
}

void StateCache::Place(size_t worker, size_t b, uint32_t record) {
  Waiting& waiting = waiting_[worker];
  if (b == 0) waiting.placed.clear();
  waiting.placed.push_back(record);
}

void StateCache::CopyKept(Waiting& waiting, size_t first, uint32_t record) const {
  const size_t from = first_row_[record] * width_, size = CountRows(record) * width_;
  float* to = waiting.states.data() + first * width_;
  if (first_block_) {
    std::transform(states_[halves_] + from, states_[halves_] + from + size, to, kernels::ToFloat);
  } else {
    std::copy_n(states_[vectors_] + from, size, to);
  }
}

void StateCache::Load(size_t worker, RecordContext& context) {
  Waiting& waiting = waiting_[worker];
  size_t first = 0;
  for (const uint32_t record : waiting.placed) {
    first_row_[record] == kNotKept ? Wait(waiting, record) : CopyKept(waiting, first, record);
    first += CountRows(record);
  }
  if (!first_block_) {
    context.pooled_BD = waiting.states.data();
    return;
  }
  size_t place = 0;
  first = 0;
  RecordContext below = context;
  below.dropout = nullptr;
  Compute(waiting, below, [&](size_t i, const float* states) {
    while (waiting.placed[place] != waiting.indices[i]) first += CountRows(waiting.placed[place++]);
    const size_t size = CountRows(waiting.indices[i]) * width_;
    std::transform(states, states + size, waiting.states.data() + first * width_,
                   [](float x) { return kernels::ToFloat(kernels::ToHalf(x)); });
  });
  context.below_RD = waiting.states.data();
  context.first_block = *first_block_;
}

}  // namespace wisp
