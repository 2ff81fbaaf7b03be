// Where one parameter of a model lies, as it is stored: floats; halves, which are widened as they are read; or panels
// of small integers or of floats, which are multiplied as they lie.
#ifndef WISP_RUNTIME_CORE_STORED_TENSOR_H_
#define WISP_RUNTIME_CORE_STORED_TENSOR_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "kernels/kernels.h"
#include "runtime/core/architecture.h"

namespace wisp {

// Row-major, on 64 bytes; panels in their own order (kernels/panels.h). One of the three is there. Halves are of tables
// only.
struct StoredTensor {
  const float* floats = nullptr;
  const kernels::Half* halves = nullptr;
  kernels::PanelMatrix panels = {};
};

inline std::span<const std::byte> BytesOf(const ParameterSpec& p, const StoredTensor& tensor) {
  if (tensor.panels.data != nullptr)
    return {tensor.panels.data, kernels::PanelMatrixBytes(tensor.panels.bits, p.rows, p.cols)};
  if (tensor.halves != nullptr) return std::as_bytes(std::span(tensor.halves, p.size()));
  return std::as_bytes(std::span(tensor.floats, p.size()));
}

// Widened where it is not floats, to `to` [p.size()].
inline void CopyAsFloats(const ParameterSpec& p, const StoredTensor& tensor, float* to) {
  if (tensor.panels.data != nullptr) {
    kernels::WidenPanels(tensor.panels, 0, p.rows, p.cols, to);
  } else if (tensor.halves != nullptr) {
    std::transform(tensor.halves, tensor.halves + p.size(), to, kernels::ToFloat);
  } else {
    std::copy_n(tensor.floats, p.size(), to);
  }
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_STORED_TENSOR_H_
