// Where one parameter of a model lies, in its stored form: float32; float16, converted to float32 as it is read; or
// panels of small integers or floats, which kernels multiply directly.
#ifndef WISP_RUNTIME_CORE_STORED_TENSOR_H_
#define WISP_RUNTIME_CORE_STORED_TENSOR_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "kernels/kernels.h"
#include "runtime/core/architecture.h"

namespace wisp {

// Row-major, 64-byte aligned; panels have their own order (kernels/panels.h). Exactly one form is set. Only tables can
// be float16.
struct StoredTensor {
  const float* floats = nullptr;
  const kernels::Half* halves = nullptr;
  kernels::PanelMatrix panels = {};
};

inline std::span<const std::byte> GetBytes(const ParameterSpec& p, const StoredTensor& tensor) {
  if (tensor.panels.data != nullptr)
    return {tensor.panels.data, kernels::PanelMatrixBytes(tensor.panels.bits, p.rows, p.cols)};
  if (tensor.halves != nullptr) return std::as_bytes(std::span(tensor.halves, p.size()));
  return std::as_bytes(std::span(tensor.floats, p.size()));
}

// Copies the tensor to `to` [p.size()], converted to float32 if necessary.
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
