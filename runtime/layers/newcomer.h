// Scores for a person of whom a model knows nothing: no history, or one of items alone that have not learned. Serving,
// evaluation and judging ask here alone, so that such a person is judged by the list that is shown.
#ifndef WISP_RUNTIME_LAYERS_NEWCOMER_H_
#define WISP_RUNTIME_LAYERS_NEWCOMER_H_

#include <cstdint>
#include <span>

#include "runtime/layers/recommender.h"

namespace wisp {

// What is popular, as the model knows it, of every item [num_items]: the head's bias, where it has one and that was
// made of counts (`bias_is_popularity`); else the mean of the scores after one item, over at most 256 items. Those in
// `untrained`, which ascends, are not asked. What the cache held is lost. `scores` are in the host's memory; ops write
// to `room` [num_items], in the device's, which on the host may be the same.
void ScoreNewcomer(const Recommender& graph, RecordContext& context, std::span<const int32_t> untrained,
                   bool bias_is_popularity, float* room, float* scores);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_NEWCOMER_H_
