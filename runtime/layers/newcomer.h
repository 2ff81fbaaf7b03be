// Scores for a user without history, or with a history of untrained items only. Serving and evaluation both use this
// function, so that the list that is evaluated is the list that is shown.
#ifndef WISP_RUNTIME_LAYERS_NEWCOMER_H_
#define WISP_RUNTIME_LAYERS_NEWCOMER_H_

#include <cstdint>
#include <span>

#include "runtime/layers/recommender.h"

namespace wisp {

// Scores every item [num_items] by the popularity that the model knows. If the head has a bias made of counts
// (`bias_is_popularity`), this is the bias. Otherwise it is the mean of the scores after one item, over at most 256
// items, none of them in `untrained` (ascending). Overwrites the cache. `scores` is host memory. Ops write to `room`
// [num_items] in the device's memory; on the host it may be `scores`.
void ScoreNewcomer(const Recommender& graph, RecordContext& context, std::span<const int32_t> untrained,
                   bool bias_is_popularity, float* room, float* scores);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_NEWCOMER_H_
