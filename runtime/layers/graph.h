// A model that can be run: forward, backward, and the head's factors once more. Recommender and Classifier are graphs:
// a stack of blocks and a head each. What trains or plans the memory of it works on graphs, not on their kinds.
//
//   const std::unique_ptr<Graph> graph = MakeGraph(architecture, ops, {});
//   Buffers buffers = graph->AllocateForTraining();                 // one per worker
//   RecordContext context{.weights = weights, .buffers = buffers};
//   double loss = graph->Forward(context, record);
//   graph->Backward(context, record, sink);
//
// A graph is immutable and shared by all workers; what changes lies in Buffers. No allocation after the plan.
#ifndef WISP_RUNTIME_LAYERS_GRAPH_H_
#define WISP_RUNTIME_LAYERS_GRAPH_H_

#include <memory>
#include <span>
#include <vector>

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

// One training record. inputs: 1 to max_length items. Next-item head: as many targets, position t sees inputs[0..t] and
// is asked for targets[t]; -1 is padding (leading entries of `inputs`) or "no target here". Head of classes: one
// target, the class, and no padding. Lifetime: until the record is finished.
struct Record {
  std::span<const int32_t> inputs;
  std::span<const int32_t> targets;
};

// What every graph has beside its layers: parameters, packed matrices and the plan of its buffers. Recommender and
// Classifier are such; they have no virtual functions, so that an app that only scores links no gradients.
class GraphBase {
 public:
  Buffers AllocateForTraining() const { return {Arena(plan_.forward), Arena(plan_.backward)}; }
  Buffers AllocateForInference() const { return {Arena(plan_.forward), Arena()}; }
  // Of a graph for inference, which needs one in its context; of one for training nothing.
  KeyValueCache AllocateCache(KeptBlocks kept) const { return KeyValueCache(plan_.cache, kept); }
  // What these take from the system; known without allocating.
  size_t training_bytes() const { return plan_.forward.allocated_bytes() + plan_.backward.allocated_bytes(); }
  size_t inference_bytes() const { return plan_.forward.allocated_bytes(); }
  size_t cache_bytes(KeptBlocks kept) const { return plan_.cache.allocated_bytes(kept); }

  const Architecture& architecture() const { return architecture_; }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  const kernels::OpTable& ops() const { return *ops_; }
  const PackPlan& pack_plan() const { return pack_plan_; }

 protected:
  // The architecture must have passed Validate.
  GraphBase(const Architecture& architecture, const kernels::OpTable& ops, GraphUse use, HeadPacking head)
      : architecture_(architecture),
        ops_(&ops),
        parameters_(ParametersOf(architecture)),
        pack_plan_(ops, architecture, head),
        plan_(use) {}

  Architecture architecture_;
  const kernels::OpTable* ops_;
  std::vector<ParameterSpec> parameters_;
  PackPlan pack_plan_;
  BufferPlan plan_;
};

// A graph as training sees it, whatever its kind.
class Graph {
 public:
  virtual ~Graph() = default;

  // Sum over the targets of the context's target_weight * cross-entropy.
  virtual double Forward(RecordContext& context, const Record& record) const = 0;
  // Emits every factor of the record once; the context as in Forward.
  virtual void Backward(const RecordContext& context, const Record& record, FactorSink& sink) const = 0;
  // Emits the head's factors once more, after Backward.
  virtual void ReplayHead(const RecordContext& context, const Record& record, FactorSink& sink) const = 0;
  // What the head reads of a whole sequence [D]: the hidden state behind the last item, or the pooled first position.
  // Forward buffers only; valid until they are used again.
  virtual const float* Represent(RecordContext& context, std::span<const int32_t> inputs) const = 0;
  // The parameter whose Outer factors ReplayHead emits, in one piece or several.
  virtual size_t head_parameter() const = 0;

  const GraphBase& base() const { return *base_; }
  const Architecture& architecture() const { return base_->architecture(); }
  const std::vector<ParameterSpec>& parameters() const { return base_->parameters(); }
  const kernels::OpTable& ops() const { return base_->ops(); }
  const PackPlan& pack_plan() const { return base_->pack_plan(); }
  Buffers AllocateForTraining() const { return base_->AllocateForTraining(); }
  Buffers AllocateForInference() const { return base_->AllocateForInference(); }
  size_t training_bytes() const { return base_->training_bytes(); }

 protected:
  explicit Graph(const GraphBase& base) : base_(&base) {}

 private:
  const GraphBase* base_;
};

// A graph for training: the one that the architecture's head asks for. `num_negatives` > 0: a next-item head with a
// sampled softmax of that many.
std::unique_ptr<Graph> MakeGraph(const Architecture& architecture, const kernels::OpTable& ops, size_t num_negatives);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_GRAPH_H_
