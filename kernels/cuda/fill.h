// The contribution of each file of kernels/cuda to the table of ops.
#ifndef WISP_KERNELS_CUDA_FILL_H_
#define WISP_KERNELS_CUDA_FILL_H_

#include "kernels/device.h"

namespace wisp::kernels::cuda {

void FillActivation(OpTable& table);
void FillAttention(OpTable& table);
void FillPanels(OpTable& table);
void FillElementwise(OpTable& table);
void FillEmbedding(OpTable& table);
void FillExpDouble(OpTable& table);
void FillFormed(OpTable& table);
void FillGemm(OpTable& table);
void FillHalf(OpTable& table);
void FillHeads(OpTable& table);
void FillNorm(OpTable& table);
void FillOptimizer(OpTable& table);
void FillReduce(OpTable& table);
void FillRotary(OpTable& table);
void FillSoftmax(OpTable& table);
void FillStep(OpTable& table);
// Replaces entries of the others: matrix products of other types than float32, and the table's name.
void FillTensor(OpTable& table, Arithmetic arithmetic);
void FillTopK(OpTable& table);
void FillVariance(OpTable& table);

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_FILL_H_
