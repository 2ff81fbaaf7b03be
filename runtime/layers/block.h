// One Transformer block: attention and feed-forward, each with a residual and a layer norm before or after it.
//
//   before (pre-norm):  m = x + A(N1(x));   y = m + F(N2(m))
//   after (post-norm):  m = N1(x + A(x));   y = N2(m + F(m))
//
// With gated residuals, a branch passes its gate before it is added.
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

  // Forward in two halves (attention.h). Begin computes keys, values and the last `queries` queries; Finish computes
  // the rest. If fewer rows are wanted than x has, `queries` is their number; only the last block may want fewer. x
  // [rows, D], y [wanted rows, D]. With Re-Attention the variance of x, in the stream of the variance buffers, is
  // replaced by that of y; the last block leaves it unchanged.
  void Begin(const RecordContext& context, const float* x, size_t queries) const;
  void Finish(const RecordContext& context, const float* x, float* y) const;

  // dx is assigned. dy and dx must stay unchanged until the record is finished.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, FactorSink& sink) const;

 private:
  void FinishPre(const RecordContext& context, const float* x, float* y) const;
  void FinishPost(const RecordContext& context, const float* x, float* y) const;
  // Re-Attention: KeyVariancePre prepares the attention; the others update the variance of the residual stream.
  void KeyVariancePre(const RecordContext& context) const;
  void VariancePre(const RecordContext& context) const;
  void VariancePost(const RecordContext& context) const;
  void BackwardPre(const RecordContext& context, const float* x, const float* dy, float* dx, FactorSink& sink) const;
  void BackwardPost(const RecordContext& context, const float* x, const float* dy, float* dx, FactorSink& sink) const;
  void Copy(const RecordContext& context, const float* from, float* to) const;
  void Add(const RecordContext& context, const float* from, float* to) const;
  float Rate(const RecordContext& context) const { return context.dropout != nullptr ? context.dropout->residual : 0; }

  size_t d_;
  bool variance_to_the_end_;  // Re-Attention, and not the last block: the variance of y is read
  VarianceBuffers variance_;
  NormPlacement placement_;
  NormLayer norm1_, norm2_;
  Attention attention_;
  FeedForward feed_forward_;
  Dropout dropout1_, dropout2_;
  ResidualGate gate1_, gate2_;
  // pre-norm: `a` and `b` are the inputs of attention and feed-forward; post-norm: of the norms. `middle` is the stream
  // between the two.
  Slot<float> a_, middle_, b_;
  Slot<float> dmiddle_, da_, db_, ddropped1_, ddropped2_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_BLOCK_H_
