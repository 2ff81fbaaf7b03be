// Built for speed: draws and copies of rows in every step.
#include "runtime/train/negative_sampler.h"

#include <algorithm>
#include <cmath>

namespace wisp {
namespace {

constexpr uint64_t kWordsPerStep = uint64_t{1} << 32;  // far more than a step draws

}  // namespace

NegativeSampler::NegativeSampler(const GraphBase& graph, uint32_t num_negatives, uint64_t seed)
    : graph_(&graph),
      table_(RequireParameter(graph.parameters(), ParameterRole::kItemTable)),  // in a tied model the head's table too
      bias_(FindParameter(graph.parameters(), ParameterRole::kOutputBias)),
      // A purpose of its own gives another stream than the batches', from the same seed.
      random_(privacy::RandomStream::Reproducible(seed, privacy::StreamPurpose::kDropout)),
      drawn_(graph.architecture().num_items),
      items_(num_negatives),
      on_device_(graph.device().memory.is_host() ? 0 : num_negatives, graph.device().memory),
      rows_(size_t{num_negatives} * graph.architecture().width, graph.device().memory),
      packed_(graph.ops().packed_size(num_negatives, graph.architecture().width), graph.device().memory),
      log_weights_(num_negatives, graph.device().memory),
      bias_values_(bias_ ? num_negatives : 0, graph.device().memory) {
  drawn_.Reserve(num_negatives);
  const float log_weight =
      std::log(static_cast<float>(graph.architecture().num_items) / static_cast<float>(num_negatives));
  const std::vector<float> log_weights(num_negatives, log_weight);
  graph.device().memory.copy_in(log_weights_.data(), log_weights.data(), num_negatives * sizeof(float));
  view_ = {.items = items_,
           .item_K = on_device_.size() > 0 ? on_device_.data() : items_.data(),
           .rows_KD = rows_.data(),
           .packed = packed_.data(),
           .bias_K = bias_ ? bias_values_.data() : log_weights_.data()};
}

void NegativeSampler::Draw(uint64_t step, const float* weights) {
  const uint32_t num_items = graph_->architecture().num_items;
  const size_t d = graph_->architecture().width, k = items_.size();
  (void)random_.Seek(step * kWordsPerStep);
  drawn_.Clear();
  while (drawn_.size() < k) drawn_.Insert(static_cast<int32_t>(random_.UniformBelow(num_items)));
  std::copy(drawn_.rows().begin(), drawn_.rows().end(), items_.begin());
  std::sort(items_.begin(), items_.end());
  if (on_device_.size() > 0)
    graph_->device().memory.copy_in(on_device_.data(), items_.data(), items_.size() * sizeof(int32_t));
  LookUp(weights + graph_->parameters()[table_].offset, d, nullptr, rows_.data());
  if (bias_) LookUp(weights + graph_->parameters()[*bias_].offset, 1, log_weights_.data(), bias_values_.data());
  graph_->ops().pack_weights({.w_NK = rows_.data(), .ldw = d, .packed = packed_.data(), .n = k, .k = d});
}

// Copies the items' rows of a table of `d` columns exactly, and adds added_KD to them.
void NegativeSampler::LookUp(const float* table, size_t d, const float* added_KD, float* rows_KD) const {
  graph_->ops().embed_forward({.table_MD = table,
                               .positions_TD = added_KD,
                               .ids_T = view_.item_K,
                               .y_TD = rows_KD,
                               .rows = items_.size(),
                               .d = d,
                               .scale = 1.0f});
}

size_t NegativeSampler::PlanBytes(const GraphBase& graph, uint32_t num_negatives) {
  const Architecture& a = graph.architecture();
  size_t bytes = num_negatives * sizeof(int32_t) + RowSet::PlanBytes(a.num_items, num_negatives);
  const size_t k = num_negatives, biases = FindParameter(graph.parameters(), ParameterRole::kOutputBias) ? k : 0,
               copied = graph.device().memory.is_host() ? 0 : k;
  for (size_t size : {k * a.width, graph.ops().packed_size(k, a.width), k, biases, copied})
    bytes += AlignedArray<float>::AllocatedBytes(size);
  return bytes;
}

size_t NegativeSampler::size_bytes() const {
  return rows_.allocated_bytes() + packed_.allocated_bytes() + log_weights_.allocated_bytes() +
         bias_values_.allocated_bytes() + on_device_.allocated_bytes() + items_.size() * sizeof(int32_t) +
         drawn_.size_bytes();
}

}  // namespace wisp
