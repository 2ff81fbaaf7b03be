// A sequence classifier on the encoder stack: embedding, blocks, first position, pooler, tanh, linear head,
// cross-entropy.
//
//   h = tanh(W_pool e_0 + b_pool)      e_0: the encoder's first position; h: the representation, k = D values
//   x = h min(1, C / ||h||) + noise    HeadInput; x = h where it names neither bound nor noise
//   z = W_head x + b_head              [num_classes];  loss = -log softmax(z)[label]
//
// What it is not: a privacy mechanism. Bound and noise are inputs to the graph; what they are worth is the business of
// runtime/train/dp_fp.h. It has no padding: a record has as many positions as it has tokens.
//
//   Classifier graph(architecture, ops);
//   Buffers buffers = graph.AllocateForTraining();                  // one per worker
//   RecordContext context{.weights = weights, .buffers = buffers};
//   double loss = graph.Forward(context, record, {});
//   graph.Backward(context, record, {}, sink);
//
// The graph is immutable and shared by all workers; what changes lies in Buffers. No allocation after the plan.
#ifndef WISP_RUNTIME_LAYERS_CLASSIFIER_H_
#define WISP_RUNTIME_LAYERS_CLASSIFIER_H_

#include <span>
#include <vector>

#include "runtime/layers/embedding.h"
#include "runtime/layers/stack.h"

namespace wisp {

// One labelled sequence. tokens: 1 to max_length, 0 .. num_items - 1; the first position is the one that is pooled.
struct LabelledRecord {
  std::span<const int32_t> tokens;
  int32_t label = 0;
};

// What is done to h before the head reads it.
struct HeadInput {
  double norm_bound = 0;           // C; 0: not clipped
  const float* noise_D = nullptr;  // added after clipping; null: none. Must stay as it is until the record is finished
};

class Classifier {
 public:
  // The architecture must have passed Validate, and have a head of classes. A graph for inference takes less room, and
  // allocates none for training.
  Classifier(const Architecture& architecture, const kernels::OpTable& ops, GraphUse use = GraphUse::kTraining);

  Buffers AllocateForTraining() const { return {Arena(plan_.forward), Arena(plan_.backward)}; }
  Buffers AllocateForInference() const { return {Arena(plan_.forward), Arena()}; }
  // Of a graph for inference, which needs one in its context. Nothing of the past is of use: it is kept in turn.
  KeyValueCache AllocateCache() const { return KeyValueCache(plan_.cache, KeptBlocks::kInTurn); }
  // What these take from the system; known without allocating.
  size_t inference_bytes() const { return plan_.forward.allocated_bytes(); }
  size_t cache_bytes() const { return plan_.cache.allocated_bytes(KeptBlocks::kInTurn); }
  size_t training_bytes() const { return plan_.forward.allocated_bytes() + plan_.backward.allocated_bytes(); }

  // h [D], unclipped; valid until the context's buffers are used again. Forward buffers only, as Logits.
  const float* Represent(RecordContext& context, std::span<const int32_t> tokens) const;
  // z [num_classes], likewise.
  const float* Logits(RecordContext& context, std::span<const int32_t> tokens, const HeadInput& input) const;

  // Cross-entropy of one record.
  double Forward(RecordContext& context, const LabelledRecord& record, const HeadInput& input) const;
  // Emits every factor of the record once; `input` as in Forward. The encoder gets a gradient at row 0 only.
  void Backward(const RecordContext& context, const LabelledRecord& record, const HeadInput& input,
                FactorSink& sink) const;
  // Emits the head's factors once more, after Backward.
  void ReplayHead(const RecordContext& context, FactorSink& sink) const;

  const Architecture& architecture() const { return architecture_; }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  const kernels::OpTable& ops() const { return *ops_; }
  const PackPlan& pack_plan() const { return pack_plan_; }
  size_t head_weight() const { return head_weight_; }  // indices into parameters()
  size_t head_bias() const { return head_bias_; }

 private:
  Architecture architecture_;
  const kernels::OpTable* ops_;
  std::vector<ParameterSpec> parameters_;
  PackPlan pack_plan_;
  BufferPlan plan_;
  Embedding embedding_;
  Stack stack_;
  Linear pooler_, head_;
  size_t head_weight_, head_bias_;
  Slot<float> h_, x_, logits_;
  Slot<float> dh_, dx_, dlogits_;
};

// min(1, bound / ||h||) in double; 1 where bound is 0.
double ClipScale(const float* h, size_t n, double bound);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_CLASSIFIER_H_
