// Adds rows of a gradient to the table rows that their ids name.
#ifndef WISP_KERNELS_CUDA_SCATTER_H_
#define WISP_KERNELS_CUDA_SCATTER_H_

#include "kernels/cuda/device_code.h"
#include "kernels/kernels.h"

namespace wisp::kernels::cuda {

inline constexpr unsigned kScatterThreads = 256;

// scatter_add for one record, by all blocks along x. The first of the rows that share an id adds all of them in the
// order of t. So the order does not depend on threads. One warp for each row; its lanes compare 32 ids at once.
__device__ inline void AddRowsById(const ScatterAddArgs<>& a) {
  const size_t warps = AllThreads() / kWarp;
  for (size_t t = GlobalThread() / kWarp; t < a.rows; t += warps) {
    const int32_t id = a.ids_T[t];
    if (id < 0) continue;
    bool first = true;
    for (size_t before = Lane(); before < t && first; before += kWarp) first = a.ids_T[before] != id;
    if (__ballot_sync(kWholeWarp, first) != kWholeWarp) continue;
    float* row = a.table_MD + static_cast<size_t>(id) * a.ldtable;
    for (size_t from = t; from < a.rows; from += kWarp) {
      const bool shares = from + Lane() < a.rows && a.ids_T[from + Lane()] == id;
      for (unsigned left = __ballot_sync(kWholeWarp, shares); left != 0; left &= left - 1) {
        const float* dx = a.dx_TD + (from + LowestBit(left)) * a.lddx;
        for (size_t i = Lane(); i < a.d; i += kWarp) row[i] += a.scale * dx[i];
      }
    }
  }
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_SCATTER_H_
