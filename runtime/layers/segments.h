// The boundaries of records among the rows of an activation: the type that ops take.
#ifndef WISP_RUNTIME_LAYERS_SEGMENTS_H_
#define WISP_RUNTIME_LAYERS_SEGMENTS_H_

#include "kernels/kernels.h"

namespace wisp {

using kernels::Segments;

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_SEGMENTS_H_
