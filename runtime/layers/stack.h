// The blocks of a graph and the norm after them: the part of every graph between its embedding and its head.
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

  // Runs the embeddings of ids [rows] and all blocks, on as many of the context's threads as pays. Returns the stream
  // after the last block for the last `wanted` rows [wanted, D]; 0: for all rows.
  const float* Forward(RecordContext& context, const Embedding& embedding, const int32_t* ids, size_t wanted) const {
    return Run(context, embedding, ids, wanted, blocks_.size());
  }
  // Runs the embeddings and the blocks below `block`. Returns what enters it, all rows.
  const float* ForwardBelow(RecordContext& context, const Embedding& embedding, const int32_t* ids,
                            size_t block) const {
    return Run(context, embedding, ids, /*wanted=*/0, block);
  }
  // The final norm of `x`, whose rows are the context's. Returns `x` itself if the architecture has no final norm.
  const float* Norm(const RecordContext& context, const float* x) const;

  // The stream after the last block, all rows.
  const float* last(const RecordContext& context) const { return context.forward(states_.back()); }
  // The last result of Norm, if its rows were all of the record's or the first ones.
  const float* normed(const RecordContext& context) const {
    return context.forward(final_norm_ ? normed_ : states_.back());
  }

  // The memory for the gradient of normed().
  float* dnormed(const RecordContext& context) const {
    return context.backward(final_norm_ ? dnormed_ : dstates_.back());
  }
  // Computes the gradient of the stream after the last block [rows, D] from dnormed. Writes only the context's rows.
  void NormBackward(const RecordContext& context, FactorSink& sink) const {
    NormBackward(context, context.forward(states_.back()), dlast(context), sink);
  }
  // Computes that gradient from rows x that lie elsewhere, and writes it to dx [rows, D].
  void NormBackward(const RecordContext& context, const float* x, float* dx, FactorSink& sink) const;
  bool has_norm() const { return final_norm_.has_value(); }
  float* dlast(const RecordContext& context) const { return context.backward(dstates_.back()); }
  // Goes down from dlast through all blocks and the embedding, and emits their factors. Stops at the lowest layer of
  // which the sink wants a factor.
  void Backward(const RecordContext& context, const Embedding& embedding, const int32_t* ids, FactorSink& sink) const;

 private:
  // Forward up to what enters block `end`. Starts from the context's below_RD if it has one.
  const float* Run(RecordContext& context, const Embedding& embedding, const int32_t* ids, size_t wanted,
                   size_t end) const;
  bool Wanted(size_t block, const FactorSink& sink) const;
  void ComputeAgain(const RecordContext& context, size_t block) const;

  size_t d_;
  RowCost cost_;
  bool recomputes_;  // BufferPlan::recomputes
  VarianceBuffers variance_;
  std::vector<Block> blocks_;
  std::vector<std::vector<size_t>> parameters_;  // parameter indices of each block
  std::optional<NormLayer> final_norm_;
  // the residual stream before each block and after the last; its gradients
  std::vector<Slot<float>> states_, dstates_;
  Slot<float> normed_, dnormed_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_STACK_H_
