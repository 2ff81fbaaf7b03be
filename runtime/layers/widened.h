// Training beside frozen matrices that are stored as blocks of integers, as panels of floats or as halves: rows of them
// as floats, a tile at a time, in a worker's buffers. No matrix of floats is made.
//
// Training multiplies these floats, forward and backward; those of panels forward where they lie. So its gradients are
// exactly those of the function that the floats define. Products of inference also round what they multiply by
// (multiply_panels).
#ifndef WISP_RUNTIME_LAYERS_WIDENED_H_
#define WISP_RUNTIME_LAYERS_WIDENED_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/layers/context.h"

namespace wisp {

// Rows of a tile: as many as linear_backward_input takes together, so that a product by tiles is, bit for bit, that of
// the whole matrix. The head's tiles are of so many too.
inline constexpr size_t kWidenedRows = kHeadTile;

// Reserves room for a tile of the widest matrix or table that is not floats; packed too, where it is multiplied so.
// `stored`: of the first parameters.
WidenedRoom ReserveWidened(const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters,
                           std::span<const StoredTensor> stored, BufferPlan& plan);

// f(first, n) for each tile of n rows.
template <class F>
void ForEachTile(size_t rows, const F& f) {
  for (size_t first = 0; first < rows; first += kWidenedRows) f(first, std::min(kWidenedRows, rows - first));
}

// Rows [first, first + n) of a matrix as floats, dense, n at most kWidenedRows: where they lie, or in the room until
// the next call of either.
const float* FloatRows(const RecordContext& context, size_t parameter, size_t first, size_t n);
// The same packed for linear_forward, in the room until the next call.
const float* PackedRows(const RecordContext& context, size_t parameter, size_t first, size_t n);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_WIDENED_H_
