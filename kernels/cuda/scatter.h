// Adds rows of a gradient to the table rows that their ids name.
#ifndef WISP_KERNELS_CUDA_SCATTER_H_
#define WISP_KERNELS_CUDA_SCATTER_H_

#include "kernels/cuda/device_code.h"
#include "kernels/kernels.h"

namespace wisp::kernels::cuda {

inline constexpr unsigned kScatterThreads = 256;

// scatter_add for one record, by all blocks along x. The first of the rows that share an id adds all of them in the
// order of t. So the order does not depend on threads. One warp for each row.
__device__ inline void AddRowsById(const ScatterAddArgs<>& a) {
  const size_t warps = AllThreads() / kWarp;
  for (size_t t = GlobalThread() / kWarp; t < a.rows; t += warps) {
    const int32_t id = a.ids_T[t];
    if (id < 0) continue;
    bool first = true;
    for (size_t before = Lane(); before < t && first; before += kWarp) first = a.ids_T[before] != id;
    if (__ballot_sync(kWholeWarp, first) != kWholeWarp) continue;
    float* row = a.table_MD + static_cast<size_t>(id) * a.ldtable;
    for (size_t other = t; other < a.rows; ++other) {
      if (a.ids_T[other] != id) continue;
      for (size_t i = Lane(); i < a.d; i += kWarp) row[i] += a.scale * a.dx_TD[other * a.lddx + i];
    }
  }
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_SCATTER_H_
