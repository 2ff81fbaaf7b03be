// A model that can be run: forward, backward, and the head's factors once more. Recommender and Classifier are graphs:
// a stack of blocks and a head each. What trains or plans the memory of it works on graphs, not on their kinds.
//
//   const std::unique_ptr<Graph> graph = MakeGraph(architecture, ops, {});
//   Buffers buffers = graph->AllocateForTraining();                 // one per worker
//   RecordContext context{.weights = weights, .buffers = buffers};
//   graph->Forward(context, batch, loss_B);
//   graph->Backward(context, batch, sink);
//
// A graph is immutable and shared by all workers; what changes lies in Buffers. No allocation after the plan.
#ifndef WISP_RUNTIME_LAYERS_GRAPH_H_
#define WISP_RUNTIME_LAYERS_GRAPH_H_

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"
#include "runtime/layers/parts.h"
#include "runtime/layers/record.h"

namespace wisp {

struct GraphOptions {
  GraphUse use = GraphUse::kTraining;
  // Next-item head, > 0: trained with a sampled softmax of that many negatives, given in the context; such a graph does
  // not Score, and a step of it costs the same for any number of items.
  size_t num_negatives = 0;
  // kNone for a next-item head over a table of halves or panels: one that only scores, or one whose table is frozen.
  HeadPacking head = HeadPacking::kTiles;
  // Where the parameters that it will run with lie, in the host's memory, or the first of them: matrices in panels are
  // multiplied there, and not packed as floats; in training a tile of rows at a time, as floats (widened.h). Read when
  // the graph is made.
  std::span<const StoredTensor> stored = {};
  size_t max_records = 1;  // that may pass at once; of a graph for inference on the host 1, or texts that grow
  // That these have together, or more where one record may have more; 0: as many as the longest have.
  size_t max_rows = 0;
  // Of a graph for training: of each block its input alone is kept, and it is computed again before its Backward.
  // Gradients are the same to the bit. A sink must take each factor before the next block's come (FactorSink::EndKept).
  // For one record at a time, on the host, without Re-Attention.
  bool recompute_blocks = false;
  // Positions of the longest record, fewer than the architecture has: less room. 0: as many as it has.
  uint32_t max_length = 0;
};

// Of a graph that runs weights as a model file stores them (ModelFile::tensors), on the host or copied to a device.
GraphOptions InferenceOf(const kernels::Device& device, const Architecture& architecture,
                         std::span<const StoredTensor> stored);

// What every graph has beside its layers: parameters, packed matrices and the plan of its buffers. Recommender and
// Classifier are such; they have no virtual functions, so that an app that only scores links no gradients.
class GraphBase {
 public:
  Buffers AllocateForTraining() const {
    return {Arena(plan_.forward, device_.memory), Arena(plan_.backward, device_.memory), Arena(plan_.host)};
  }
  Buffers AllocateForInference() const {
    return {Arena(plan_.forward, device_.memory, ArenaUse::kInPart), Arena(), Arena(plan_.host)};
  }
  // Of a graph for inference, which needs one in its context; of one for training nothing.
  // `positions` may be fewer than the graph takes; 0: as many. Halves: on the host, without Re-Attention.
  KeyValueCache AllocateCache(KeptBlocks kept, size_t positions = 0,
                              kernels::KeptType type = kernels::KeptType::kFloat) const {
    return KeyValueCache(plan_.cache, KeptOf(kept, positions, type), device_.memory);
  }
  // For so many threads, the caller's among them (parts.h): buffers for each but the caller's. Null for one.
  [[gnu::cold]] std::unique_ptr<Helpers> AllocateHelpers(size_t num_threads, Executor executor = {}) const;
  // What these take from the system; known without allocating.
  size_t training_bytes() const { return inference_bytes() + plan_.backward.allocated_bytes(); }
  size_t inference_bytes() const { return plan_.forward.allocated_bytes() + plan_.host.allocated_bytes(); }
  size_t host_bytes() const { return plan_.host.allocated_bytes(); }  // of these, in the host's memory on a device too
  size_t helper_bytes(size_t num_threads) const {
    return (std::clamp<size_t>(num_threads, 1, Team::kMaxTasks) - 1) * inference_bytes();
  }
  size_t cache_bytes(KeptBlocks kept, size_t positions = 0, kernels::KeptType type = kernels::KeptType::kFloat) const {
    return plan_.cache.allocated_bytes(KeptOf(kept, positions, type));
  }

  const Architecture& architecture() const { return architecture_; }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  const kernels::Device& device() const { return device_; }
  const kernels::OpTable& ops() const { return *device_.ops; }
  const PackPlan& pack_plan() const { return pack_plan_; }
  size_t max_records() const { return plan_.max_records; }
  size_t max_rows() const { return plan_.max_rows(); }
  size_t max_record_rows() const { return plan_.max_record_rows; }  // of one record

 protected:
  // The architecture must have passed Validate.
  GraphBase(const Architecture& architecture, const kernels::Device& device, const GraphOptions& options);

  // Tells the context where the records lie, and puts their items and targets, one behind the other, where ops read
  // them: Inputs and Targets. Here records enter a device's memory; everything else that touches a buffer is an op.
  void Enter(RecordContext& context, Batch batch) const;
  // The same of one record in inference. What it returns is its Inputs.
  const int32_t* EnterOne(RecordContext& context, std::span<const int32_t> inputs) const;
  const int32_t* Inputs(const RecordContext& context, Batch batch) const {
    return stays(batch) ? batch[0].inputs.data() : context.forward(inputs_);
  }
  const int32_t* Targets(const RecordContext& context, Batch batch) const {
    return stays(batch) ? batch[0].targets.data() : context.backward(targets_);
  }

  Architecture architecture_;
  kernels::Device device_;
  std::vector<ParameterSpec> parameters_;
  PackPlan pack_plan_;
  BufferPlan plan_;
  Slot<int32_t> inputs_;  // of a graph for several records, or on a device
  Slot<int32_t> types_;   // where tokens have types

 private:
  KeptPositions KeptOf(KeptBlocks kept, size_t positions, kernels::KeptType type) const {
    return {.blocks = kept, .positions = positions == 0 ? plan_.max_rows() : positions, .type = type};
  }
  // One record is read where it lies, where ops can.
  bool stays(Batch batch) const { return batch.size() == 1 && device_.memory.is_host(); }
  void CopyIds(RecordContext& context, Batch batch) const;
  void EnterTypes(RecordContext& context, Batch batch) const;

  // Of a graph for several records, or on a device.
  Slot<uint32_t> begin_, first_valid_, begin_on_device_;
  Slot<int32_t> targets_;
  Slot<int32_t> ids_;  // in the host's memory: what is to be copied in, ids or types
};

// A graph as training sees it, whatever its kind.
class Graph {
 public:
  virtual ~Graph() = default;

  // loss_B: of each record the sum over its targets of its target_weight * cross-entropy.
  virtual void Forward(RecordContext& context, Batch batch, double* loss_B) const = 0;
  // Emits every factor of the batch once; the context as in Forward.
  virtual void Backward(const RecordContext& context, Batch batch, FactorSink& sink) const = 0;
  // Emits the head's factors once more, after Backward.
  virtual void ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const = 0;
  // h_BD: what the head reads of each whole sequence: the hidden state behind the last item, or the pooled first
  // position. It lies in host memory, and has arrived when the call returns. Targets are not read.
  virtual void Represent(RecordContext& context, Batch batch, float* h_BD) const = 0;
  // e_BD: what is pooled of each whole sequence, which the pooler reads, or the head where there is none. Of a
  // classifier alone (architecture().head.kind is kClasses); the rest as of Represent.
  virtual void Pool(RecordContext& context, Batch batch, float* e_BD) const = 0;
  // The parameter whose Outer factors ReplayHead emits, in one piece or several.
  virtual size_t head_parameter() const = 0;

  const GraphBase& base() const { return *base_; }
  const Architecture& architecture() const { return base_->architecture(); }
  const std::vector<ParameterSpec>& parameters() const { return base_->parameters(); }
  const kernels::Device& device() const { return base_->device(); }
  const kernels::OpTable& ops() const { return base_->ops(); }
  const PackPlan& pack_plan() const { return base_->pack_plan(); }
  Buffers AllocateForTraining() const { return base_->AllocateForTraining(); }
  Buffers AllocateForInference() const { return base_->AllocateForInference(); }
  size_t training_bytes() const { return base_->training_bytes(); }
  size_t max_records() const { return base_->max_records(); }
  size_t max_rows() const { return base_->max_rows(); }
  size_t max_record_rows() const { return base_->max_record_rows(); }

 protected:
  explicit Graph(const GraphBase& base) : base_(&base) {}

 private:
  const GraphBase* base_;
};

// GraphOptions::max_records for products of `rows` rows: how many of the longest records have so many rows, 1 to
// kMostAtOnce. A next-item head over all items must be able to keep their logits, which may make them fewer.
inline constexpr size_t kMostAtOnce = 64;
// On a device, where a head keeps no logits.
inline constexpr size_t kMostOnDevice = 1024;
size_t RecordsOfRows(const Architecture& architecture, size_t num_negatives, size_t rows);

// The graph that the architecture's head asks for.
std::unique_ptr<Graph> MakeGraph(const Architecture& architecture, const kernels::Device& device,
                                 const GraphOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_GRAPH_H_
