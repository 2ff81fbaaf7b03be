// Options of the methods that release rows of the item table: DP-FEST, DP-AdaFEST and DP-AdaFEST+ (docs/algorithms.md,
// section 5).
#ifndef WISP_RUNTIME_TRAIN_SPARSE_OPTIONS_H_
#define WISP_RUNTIME_TRAIN_SPARSE_OPTIONS_H_

#include <cstdint>
#include <span>

namespace wisp {

struct SparseOptions {
  // DP-FEST and DP-AdaFEST+: the only rows that train, ascending, chosen from public figures or from a release that was
  // charged (LargestRows of PrivatePopularity's histogram). Read only while the trainer is constructed.
  std::span<const int32_t> rows = {};
  // DP-AdaFEST's contribution map. Its noise is `map_noise_ratio` times the gradient's (sigma1 / sigma2).
  double map_clipping_norm = 1;
  double map_threshold = 5;
  double map_noise_ratio = 1;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_SPARSE_OPTIONS_H_
