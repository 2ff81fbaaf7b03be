// The blocks of a graph and the norm behind them: what every graph has between its embedding and its head.
//
//   const float* last = stack.Forward(context, embedding, ids, /*wanted=*/0);
//   const float* h = stack.Norm(context, last);
//   head.Backward(context, h, ..., stack.dnormed(context), sink);
//   stack.NormBackward(context, sink);
//   stack.Backward(context, embedding, ids, sink);
#ifndef WISP_RUNTIME_LAYERS_STACK_H_
#define WISP_RUNTIME_LAYERS_STACK_H_

#include <optional>
#include <vector>

#include "runtime/layers/block.h"
#include "runtime/layers/embedding.h"
#include "runtime/layers/norm.h"
#include "runtime/layers/parts.h"
#include "runtime/layers/variance.h"

namespace wisp {

class Stack {
 public:
  // At most `normed_rows` rows of a record pass the final norm.
  [[gnu::cold]] Stack(const Architecture& architecture, const kernels::OpTable& ops,
                      const std::vector<ParameterSpec>& parameters, size_t normed_rows, BufferPlan& plan);

  // The embeddings of ids [rows] and all blocks over them, on as many threads as the context has and as pays. Returns
  // the stream behind the last: of its last `wanted` rows, of all if 0 [wanted, D].
  const float* Forward(RecordContext& context, const Embedding& embedding, const int32_t* ids, size_t wanted) const;
  // The final norm of the context's rows, which are those of `x`; `x` itself where the architecture has none.
  const float* Norm(const RecordContext& context, const float* x) const;

  // The stream behind the last block, of all rows.
  const float* last(const RecordContext& context) const { return context.forward(states_.back()); }
  // What Norm returned last, where the rows were all of the record's or its first.
  const float* normed(const RecordContext& context) const {
    return context.forward(final_norm_ ? normed_ : states_.back());
  }

  // Where the gradient of it is to be written.
  float* dnormed(const RecordContext& context) const {
    return context.backward(final_norm_ ? dnormed_ : dstates_.back());
  }
  // The gradient of the stream behind the last block [rows, D], from dnormed: only the context's rows are written.
  void NormBackward(const RecordContext& context, FactorSink& sink) const {
    NormBackward(context, context.forward(states_.back()), dlast(context), sink);
  }
  // The same of rows x that stand elsewhere, to dx [rows, D].
  void NormBackward(const RecordContext& context, const float* x, float* dx, FactorSink& sink) const;
  bool has_norm() const { return final_norm_.has_value(); }
  float* dlast(const RecordContext& context) const { return context.backward(dstates_.back()); }
  // From dlast down through all blocks and the embedding, whose factors are emitted; no further than to the lowest of
  // which the sink wants any.
  void Backward(const RecordContext& context, const Embedding& embedding, const int32_t* ids, FactorSink& sink) const;

 private:
  bool Wanted(size_t block, const FactorSink& sink) const;
  void ComputeAgain(const RecordContext& context, size_t block) const;

  size_t d_;
  RowCost cost_;
  bool recomputes_;  // BufferPlan::recomputes
  VarianceBuffers variance_;
  std::vector<Block> blocks_;
  std::vector<std::vector<size_t>> parameters_;  // of each block
  std::optional<NormLayer> final_norm_;
  std::vector<Slot<float>> states_, dstates_;  // the residual stream before each block, and behind the last
  Slot<float> normed_, dnormed_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_STACK_H_
