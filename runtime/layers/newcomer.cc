#include "runtime/layers/newcomer.h"

#include <algorithm>
#include <vector>

#include "runtime/core/arena.h"

namespace wisp {
namespace {

// The most one-item histories to average over. More of them give no better recommendations (docs/gains.md).
constexpr size_t kMostAsked = 256;

// The item with this number when items in `untrained` (ascending) are not counted.
int32_t KnownItem(size_t number, std::span<const int32_t> untrained) {
  auto item = static_cast<int32_t>(number);
  for (const int32_t id : untrained) {
    if (id > item) break;
    ++item;
  }
  return item;
}

}  // namespace

void ScoreNewcomer(const Recommender& graph, RecordContext& context, std::span<const int32_t> untrained,
                   bool bias_is_popularity, float* room, float* scores) {
  const size_t num_items = graph.architecture().num_items, width = graph.architecture().width;
  const kernels::Memory& memory = graph.device().memory;
  const auto bias = FindParameter(graph.parameters(), ParameterRole::kOutputBias);
  if (bias_is_popularity && bias) {
    memory.copy_out(scores, context.weights.at(*bias), num_items * sizeof(float));
    return;
  }
  const size_t known = num_items - untrained.size(), asked = std::min(known, kMostAsked);
  // Scores are linear in the head's input. So the scores of the mean state are the mean of the scores.
  const float weight = 1 / static_cast<float>(asked);
  std::vector<float> mean(width, 0), state(width);
  context.past = 0;
  for (size_t a = 0; a < asked; ++a) {
    const int32_t item = KnownItem(a * known / asked, untrained);
    const Record record{.inputs = {&item, 1}};
    graph.Represent(context, {&record, 1}, state.data());
    for (size_t i = 0; i < width; ++i) mean[i] += weight * state[i];
  }
  const AlignedArray<float> where_ops_read(width, memory);
  memory.copy_in(where_ops_read.data(), mean.data(), width * sizeof(float));
  graph.ScoreState(context, where_ops_read.data(), room);
  if (room != scores) memory.copy_out(scores, room, num_items * sizeof(float));
}

}  // namespace wisp
