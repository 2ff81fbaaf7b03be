// One Transformer block: attention and feed-forward, each with a residual and a layer norm before or after it.
//
//   before (pre-norm):  m = x + A(N1(x));   y = m + F(N2(m))
//   after (post-norm):  m = N1(x + A(x));   y = N2(m + F(m))
//
// Where its residuals are gated, a branch passes its gate before it is added.
#ifndef WISP_RUNTIME_LAYERS_BLOCK_H_
#define WISP_RUNTIME_LAYERS_BLOCK_H_

#include "runtime/layers/attention.h"
#include "runtime/layers/feed_forward.h"
#include "runtime/layers/norm.h"
#include "runtime/layers/residual_gate.h"
#include "runtime/layers/variance.h"

namespace wisp {

class Block {
 public:
  [[gnu::cold]] Block(const Architecture& architecture, const kernels::OpTable& ops,
                      const std::vector<ParameterSpec>& parameters, uint32_t index, const VarianceBuffers& variance,
                      BufferPlan& plan);

  // Forward in two halves: up to keys, values and the last `queries` queries, and the rest (attention.h). Where fewer
  // rows are wanted than there are, they are as many as these. With Re-Attention
  // the variance of x, in the stream of the variance buffers, is replaced by that of y; the last block leaves it as it
  // is. x [rows, D], y [wanted rows, D]; fewer than all are wanted of the last block only.
  void Begin(const RecordContext& context, const float* x, size_t queries) const;
  void Finish(const RecordContext& context, const float* x, float* y) const;

  // dx is assigned; dy and dx must stay as they are until the record is finished.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, FactorSink& sink) const;

 private:
  void FinishPre(const RecordContext& context, const float* x, float* y) const;
  void FinishPost(const RecordContext& context, const float* x, float* y) const;
  // Re-Attention: what the attention needs before it runs, and what the block does to the variance of the stream.
  void KeyVariancePre(const RecordContext& context) const;
  void VariancePre(const RecordContext& context) const;
  void VariancePost(const RecordContext& context) const;
  void BackwardPre(const RecordContext& context, const float* x, const float* dy, float* dx, FactorSink& sink) const;
  void BackwardPost(const RecordContext& context, const float* x, const float* dy, float* dx, FactorSink& sink) const;
  void Copy(const RecordContext& context, const float* from, float* to) const;
  void Add(const RecordContext& context, const float* from, float* to) const;
  float Rate(const RecordContext& context) const { return context.dropout != nullptr ? context.dropout->residual : 0; }

  size_t d_;
  bool variance_to_the_end_;  // Re-Attention, and not the last block: somebody reads the variance of y
  VarianceBuffers variance_;
  NormPlacement placement_;
  NormLayer norm1_, norm2_;
  Attention attention_;
  FeedForward feed_forward_;
  Dropout dropout1_, dropout2_;
  ResidualGate gate1_, gate2_;
  // `a`, `b`: what enters attention and feed-forward (pre) or the norms (post); `middle`: between the two halves.
  Slot<float> a_, middle_, b_;
  Slot<float> dmiddle_, da_, db_, ddropped1_, ddropped2_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_BLOCK_H_
