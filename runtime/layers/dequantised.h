// Training beside frozen matrices that are stored as integer blocks, panels of floats or float16. A tile of rows at a
// time is converted to floats in a worker's buffers. No whole matrix of floats is made.
//
// Training multiplies these floats, forward and backward; panels of floats are multiplied directly in the forward pass.
// So gradients are exactly those of the function that the floats define. Products in inference also round the input
// (multiply_panels).
#ifndef WISP_RUNTIME_LAYERS_DEQUANTISED_H_
#define WISP_RUNTIME_LAYERS_DEQUANTISED_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/layers/context.h"

namespace wisp {

// Rows of a tile. linear_backward_input takes this many rows together, so a product by tiles has the bits of a product
// with the whole matrix. The head's tiles have the same size.
inline constexpr size_t kDequantisedRows = kHeadTile;

// Reserves workspace for a tile of the widest matrix or table that is not floats, and for the packed tile if it is
// multiplied so. `stored` has the first parameters.
DequantisedSpace ReserveDequantised(const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters,
                                    std::span<const StoredTensor> stored, BufferPlan& plan);

// Calls f(first, n) for each tile of n rows.
template <class F>
void ForEachTile(size_t rows, const F& f) {
  for (size_t first = 0; first < rows; first += kDequantisedRows) f(first, std::min(kDequantisedRows, rows - first));
}

// Rows [first, first + n) of a matrix as dense floats; n <= kDequantisedRows. They lie in place, or in the workspace
// until the next call of FloatRows or PackedRows.
const float* FloatRows(const RecordContext& context, size_t parameter, size_t first, size_t n);
// These rows packed for linear_forward, in the workspace until the next call of either function.
const float* PackedRows(const RecordContext& context, size_t parameter, size_t first, size_t n);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_DEQUANTISED_H_
