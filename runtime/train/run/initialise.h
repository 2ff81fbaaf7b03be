// Fresh weights. The scales are chosen independently of the data: under DP they decide more than anything else
// (docs/recipes).
#ifndef WISP_RUNTIME_TRAIN_RUN_INITIALISE_H_
#define WISP_RUNTIME_TRAIN_RUN_INITIALISE_H_

#include <span>

#include "runtime/core/architecture.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

struct InitialisationOptions {
  float table_deviation = 0.02f;     // item tables: normal
  float position_deviation = 0.02f;  // 0 starts positions at zero
  float matrix_gain = 1.0f;          // factor on Xavier's uniform bound sqrt(6 / (n + k))
};

// Initialises all weights. Gains are 1, biases and the matrix of classes 0. `weights` has
// FlatSize(ListParameters(architecture)) entries; gaps become 0. If `first`, the start of a parameter, is given,
// `weights` has only the entries from there on, with the same numbers.
void InitialiseWeights(const Architecture& architecture, const InitialisationOptions& options,
                       privacy::RandomStream& random, std::span<float> weights, size_t first = 0);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_INITIALISE_H_
