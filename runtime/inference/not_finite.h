// The error for results that are not finite, on the processor or a device.
#ifndef WISP_RUNTIME_INFERENCE_NOT_FINITE_H_
#define WISP_RUNTIME_INFERENCE_NOT_FINITE_H_

#include <string>

#include "kernels/device.h"
#include "runtime/core/status.h"

namespace wisp {

// kInvalidData: `what` is not finite, for the model in the file of this name.
Status NotFiniteOn(const kernels::Device& device, const std::string& name, const char* what);

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_NOT_FINITE_H_
