// The recommender as one graph: embedding, blocks, final norm, next-item head. Forward, backward, scoring.
//
//   Recommender graph(architecture, ops);
//   Buffers buffers = graph.AllocateForTraining();                 // one per worker
//   RecordContext context{.weights = weights, .buffers = buffers};
//   double loss = graph.Forward(context, record);
//   graph.Backward(context, record, sink);
//
// The graph itself is immutable and shared by all workers; what changes lies in Buffers. No allocation after the plan.
#ifndef WISP_RUNTIME_LAYERS_RECOMMENDER_H_
#define WISP_RUNTIME_LAYERS_RECOMMENDER_H_

#include <span>
#include <vector>

#include "runtime/layers/embedding.h"
#include "runtime/layers/next_item_head.h"
#include "runtime/layers/sampled_head.h"
#include "runtime/layers/stack.h"

namespace wisp {

// One training record: position t sees inputs[0..t] and is asked for targets[t]. Both have 1 to max_length entries;
// -1 is padding (leading entries of `inputs`) or "no target here". Lifetime: until the record is finished.
struct Record {
  std::span<const int32_t> inputs;
  std::span<const int32_t> targets;
};

class Recommender {
 public:
  // The architecture must have passed Validate. `num_negatives` > 0: trained with a sampled softmax of that many
  // negatives, given in the context; such a graph does not Score, and a step of it costs the same for any number of
  // items. `head`: kNone for a graph that only scores, over a table of halves.
  // A graph for inference takes less room, and allocates none for training.
  Recommender(const Architecture& architecture, const kernels::OpTable& ops, size_t num_negatives = 0,
              GraphUse use = GraphUse::kTraining, HeadPacking head = HeadPacking::kTiles);

  Buffers AllocateForTraining() const { return {Arena(plan_.forward), Arena(plan_.backward)}; }
  Buffers AllocateForInference() const { return {Arena(plan_.forward), Arena()}; }
  // Of a graph for inference, which needs one in its context.
  KeyValueCache AllocateCache(KeptBlocks kept) const { return KeyValueCache(plan_.cache, kept); }
  // What these take from the system; known without allocating.
  size_t training_bytes() const { return plan_.forward.allocated_bytes() + plan_.backward.allocated_bytes(); }
  size_t inference_bytes() const { return plan_.forward.allocated_bytes(); }
  size_t cache_bytes(KeptBlocks kept) const { return plan_.cache.allocated_bytes(kept); }

  // Sum over positions of weight * cross-entropy, with the same weight for each position that has a target.
  double Forward(RecordContext& context, const Record& record, float position_weight) const;
  // Emits every factor of the record once.
  void Backward(const RecordContext& context, const Record& record, FactorSink& sink) const;
  // Emits the head's factors once more, after Backward.
  void ReplayHead(const RecordContext& context, const Record& record, FactorSink& sink) const;

  // Scores of every item [num_items] after `history` (1 to max_length items, oldest first). Forward buffers only. The
  // first context.past of them, fewer than all, were the first of the history that passed through this cache of all
  // blocks last, with the same weights, and the two lengths keep keys: then only the others are computed. The scores
  // are the same, bit for bit.
  void Score(RecordContext& context, std::span<const int32_t> history, float* scores) const;

  // The two halves of Score: the hidden state [D] after the last item, valid until the buffers are used again; and the
  // scores of one tile of items for `rows` of them (NextItemHead::ScoreTile).
  const float* Represent(RecordContext& context, std::span<const int32_t> history) const;
  void ScoreTile(const Weights& weights, const float* h_RD, size_t rows, size_t tile, float* scores) const {
    head_.ScoreTile(weights, h_RD, rows, tile, scores);
  }

  // Whether keys and values of a history of `before` items hold for one of `now` items that begins alike: items see
  // those before them only, and stand where they stood.
  bool KeepsKeys(size_t before, size_t now) const;

  const Architecture& architecture() const { return architecture_; }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  const kernels::OpTable& ops() const { return *ops_; }
  const PackPlan& pack_plan() const { return pack_plan_; }

 private:
  // Returns the hidden states of the last `wanted` rows, of all if 0 [wanted, D].
  const float* Encode(RecordContext& context, std::span<const int32_t> inputs, size_t wanted) const;

  Architecture architecture_;
  const kernels::OpTable* ops_;
  std::vector<ParameterSpec> parameters_;
  PackPlan pack_plan_;
  BufferPlan plan_;
  Embedding embedding_;
  Stack stack_;
  NextItemHead head_;
  SampledHead sampled_head_;
  bool sampled_;
  Slot<float> weights_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_RECOMMENDER_H_
