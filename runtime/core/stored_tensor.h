// Where one parameter of a model lies, as it is stored: floats, or halves that are widened as they are read.
#ifndef WISP_RUNTIME_CORE_STORED_TENSOR_H_
#define WISP_RUNTIME_CORE_STORED_TENSOR_H_

#include "kernels/kernels.h"

namespace wisp {

// Row-major, on 64 bytes; the other is null. Halves are of tables only.
struct StoredTensor {
  const float* floats = nullptr;
  const kernels::Half* halves = nullptr;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_STORED_TENSOR_H_
