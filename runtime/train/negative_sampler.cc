// Built for speed: draws and copies of rows in every step.
#include "runtime/train/negative_sampler.h"

#include <algorithm>
#include <cmath>

namespace wisp {
namespace {

constexpr uint64_t kWordsPerStep = uint64_t{1} << 32;  // far more than any step draws

}  // namespace

NegativeSampler::NegativeSampler(const GraphBase& graph, uint32_t num_negatives, uint64_t seed)
    : graph_(&graph),
      table_(RequireParameter(graph.parameters(), ParameterRole::kItemTable)),  // tied: it is the table of the head
      bias_(FindParameter(graph.parameters(), ParameterRole::kOutputBias)),
      // Not the stream of the batches: the same seed gives another stream for this purpose.
      random_(privacy::RandomStream::Reproducible(seed, privacy::StreamPurpose::kDropout)),
      drawn_(graph.architecture().num_items),
      items_(num_negatives),
      rows_(size_t{num_negatives} * graph.architecture().width, graph.device().memory),
      packed_(graph.ops().packed_size(num_negatives, graph.architecture().width), graph.device().memory),
      bias_values_(num_negatives, graph.device().memory) {
  drawn_.Reserve(num_negatives);
  view_ = {.items = items_, .rows_KD = rows_.data(), .packed = packed_.data(), .bias_K = bias_values_.data()};
}

void NegativeSampler::Draw(uint64_t step, const float* weights) {
  const uint32_t num_items = graph_->architecture().num_items;
  const size_t d = graph_->architecture().width, k = items_.size();
  (void)random_.Seek(step * kWordsPerStep);
  drawn_.Clear();
  while (drawn_.size() < k) drawn_.Insert(static_cast<int32_t>(random_.UniformBelow(num_items)));
  std::copy(drawn_.rows().begin(), drawn_.rows().end(), items_.begin());
  std::sort(items_.begin(), items_.end());
  const float log_weight = std::log(static_cast<float>(num_items) / static_cast<float>(k));
  const float* table = weights + graph_->parameters()[table_].offset;
  for (size_t i = 0; i < k; ++i) {
    const auto item = static_cast<size_t>(items_[i]);
    std::copy_n(table + item * d, d, rows_.data() + i * d);
    bias_values_.data()[i] = log_weight + (bias_ ? weights[graph_->parameters()[*bias_].offset + item] : 0.0f);
  }
  graph_->ops().pack_weights({.w_NK = rows_.data(), .ldw = d, .packed = packed_.data(), .n = k, .k = d});
}

size_t NegativeSampler::PlanBytes(const GraphBase& graph, uint32_t num_negatives) {
  const Architecture& a = graph.architecture();
  size_t bytes = num_negatives * sizeof(int32_t) + RowSet::PlanBytes(a.num_items, num_negatives);
  for (size_t size :
       {size_t{num_negatives} * a.width, graph.ops().packed_size(num_negatives, a.width), size_t{num_negatives}}) {
    bytes += AlignedArray<float>::AllocatedBytes(size);
  }
  return bytes;
}

size_t NegativeSampler::size_bytes() const {
  return rows_.allocated_bytes() + packed_.allocated_bytes() + bias_values_.allocated_bytes() +
         items_.size() * sizeof(int32_t) + drawn_.size_bytes();
}

}  // namespace wisp
