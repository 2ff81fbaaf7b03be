// A model that can run: forward, backward, and the head's factors a second time. Recommender and Classifier are graphs,
// each a stack of blocks and a head. Training and memory planning use graphs of either kind.
//
//   const std::unique_ptr<Graph> graph = MakeGraph(architecture, ops, {});
//   Buffers buffers = graph->AllocateForTraining();                 // one per worker
//   RecordContext context{.weights = weights, .buffers = buffers};
//   graph->Forward(context, batch, loss_B);
//   graph->Backward(context, batch, sink);
//
// A graph is immutable and shared by all workers. State lies in Buffers. After the plan nothing is allocated.
#ifndef WISP_RUNTIME_LAYERS_GRAPH_H_
#define WISP_RUNTIME_LAYERS_GRAPH_H_

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/trained_set.h"
#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"
#include "runtime/layers/parts.h"
#include "runtime/layers/record.h"

namespace wisp {

struct GraphOptions {
  GraphUse use = GraphUse::kTraining;
  // Above 0, for a next-item head: train with a sampled softmax of this many negatives, given in the context. Such a
  // graph cannot Score. The cost of a step does not depend on the number of items.
  size_t num_negatives = 0;
  // kNone if the head's table is float16 or panels and the graph only scores, or if that table is frozen.
  HeadPacking head = HeadPacking::kTiles;
  // Where the parameters lie in host memory, all or the first of them. Matrices in panels are not packed as floats:
  // inference multiplies them directly, training converts a tile of rows at a time to floats (dequantised.h). Read when
  // the graph is made.
  std::span<const StoredTensor> stored = {};
  size_t max_records = 1;  // the most records in one pass; 1 for inference on the host, except for growing texts
  // The most rows of one pass. Higher if one record may have more. 0: max_records times the longest record.
  size_t max_rows = 0;
  // Training only: keep just the input of each block, and compute the block again before its Backward. Gradients have
  // the same bits. A sink must take each factor before the next block emits (FactorSink::EndKept). Only for one record
  // at a time, on the host, without Re-Attention.
  bool recompute_blocks = false;
  // Positions of the longest record. Fewer than the architecture's take less memory. 0: the architecture's.
  uint32_t max_length = 0;
};

// Options for a graph that runs weights as a model file stores them (ModelFile::tensors), on the host or on a device.
GraphOptions MakeInferenceOptions(const kernels::Device& device, const Architecture& architecture,
                                  std::span<const StoredTensor> stored);

// The common part of every graph: parameters, packed matrices and the buffer plan. ModelView and Classifier derive from
// it. Forward and Backward are no virtual functions here, so that an app that only scores does not link the gradients.
class GraphBase {
 public:
  Buffers AllocateForTraining() const {
    return {Arena(plan_.forward, device_.memory), Arena(plan_.backward, device_.memory), Arena(plan_.host)};
  }
  Buffers AllocateForInference() const {
    return {Arena(plan_.forward, device_.memory, ArenaUse::kInPart), Arena(), Arena(plan_.host)};
  }
  // Makes the cache that a graph for inference needs in its context; a graph for training has no cache. `positions` may
  // be fewer than the graph takes; 0: as many. Float16 is only for the host, without Re-Attention.
  KeyValueCache AllocateCache(CacheBlocks kept, size_t positions = 0,
                              kernels::CacheType type = kernels::CacheType::kFloat) const {
    return KeyValueCache(plan_.cache, KeptOf(kept, positions, type), device_.memory);
  }
  // For `num_threads` threads, including the caller (parts.h): buffers for each other thread. Null for one thread.
  [[gnu::cold]] std::unique_ptr<Helpers> AllocateHelpers(size_t num_threads, Executor executor = {}) const;
  // The bytes that contexts, helpers and caches of this graph allocate, computed without allocating them.
  size_t training_bytes() const { return inference_bytes() + plan_.backward.allocated_bytes(); }
  size_t inference_bytes() const { return plan_.forward.allocated_bytes() + plan_.host.allocated_bytes(); }
  // part of these bytes that is host memory, also when a device runs the graph
  size_t host_bytes() const { return plan_.host.allocated_bytes(); }
  size_t helper_bytes(size_t num_threads) const {
    return (std::clamp<size_t>(num_threads, 1, Team::kMaxTasks) - 1) * inference_bytes();
  }
  size_t cache_bytes(CacheBlocks kept, size_t positions = 0,
                     kernels::CacheType type = kernels::CacheType::kFloat) const {
    return plan_.cache.allocated_bytes(KeptOf(kept, positions, type));
  }

  const Architecture& architecture() const { return architecture_; }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  const kernels::Device& device() const { return device_; }
  const kernels::OpTable& ops() const { return *device_.ops; }
  const PackPlan& pack_plan() const { return pack_plan_; }
  size_t max_records() const { return plan_.max_records; }
  size_t max_rows() const { return plan_.max_rows(); }
  // The most rows that one record has in a factor: the longest record's, twice in a model of two towers.
  size_t max_record_rows() const { return plan_.max_record_rows * (architecture_.item_features > 0 ? 2 : 1); }

 protected:
  // The architecture must have passed Validate.
  GraphBase(const Architecture& architecture, const kernels::Device& device, const GraphOptions& options);

  // Sets the record boundaries in the context. Places items and targets of the records, one after another, where ops
  // read them (Inputs and Targets). Records enter a device's memory here only; all other access to buffers is by ops.
  void Enter(RecordContext& context, Batch batch) const;
  // Enter for one record in inference. Returns its Inputs.
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
  Slot<int32_t> inputs_;  // for several records, or on a device
  Slot<int32_t> types_;   // only if tokens have types

 private:
  CachedPositions KeptOf(CacheBlocks kept, size_t positions, kernels::CacheType type) const {
    return {.blocks = kept, .positions = positions == 0 ? plan_.max_rows() : positions, .type = type};
  }
  // True if ops can read the one record's items where they are.
  bool stays(Batch batch) const { return batch.size() == 1 && device_.memory.is_host(); }
  void CopyIds(RecordContext& context, Batch batch) const;
  void EnterTypes(RecordContext& context, Batch batch) const;

  // Allocated for a graph of several records, and for any graph on a device.
  Slot<uint32_t> begin_, first_valid_, begin_on_device_;
  Slot<int32_t> targets_;
  Slot<int32_t> ids_;  // host memory: ids or types to be copied in
};

// A graph as training uses it, whatever its head.
class Graph {
 public:
  virtual ~Graph() = default;

  // loss_B: for each record, the sum over its targets of target_weight * cross-entropy.
  virtual void Forward(RecordContext& context, Batch batch, double* loss_B) const = 0;
  // Emits every factor of the batch once. The context is the one of Forward.
  virtual void Backward(const RecordContext& context, Batch batch, FactorSink& sink) const = 0;
  // Emits the head's factors once more, after Backward.
  virtual void ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const = 0;
  // Writes to h_BD the head's input for each whole sequence: the hidden state after the last item, or the pooled state.
  // h_BD is host memory and complete when the call returns. Targets are not read.
  virtual void Represent(RecordContext& context, Batch batch, float* h_BD) const = 0;
  // Classifier only (architecture().head.kind is kClasses). Writes to e_BD the pooled state of each sequence, which the
  // pooler reads or, without a pooler, the head. Otherwise as Represent.
  virtual void Pool(RecordContext& context, Batch batch, float* e_BD) const = 0;
  // Classifier only. Writes to x_RD what enters block `block`, for all rows of the sequences, one after another. The
  // embedding and the blocks below run. Otherwise as Represent.
  virtual void PassBelow(RecordContext& context, Batch batch, size_t block, float* x_RD) const = 0;
  // The parameter whose Outer factors ReplayHead emits, in one piece or in several.
  virtual size_t head_parameter() const = 0;
  // Computes the weights that follow from trained ones: the item rows of a model of two towers. Call it after the
  // weights have changed, once for each part, from as many threads as there are parts. `weights` are in the flat
  // layout, in host memory.
  virtual void Derive(std::span<float> weights, size_t part, size_t num_parts) const = 0;
  // The parameter that Derive computes if these are trained; nullopt if it computes nothing.
  std::optional<size_t> derived(const TrainedSet& trained) const {
    const std::optional<size_t> tower = FindParameter(parameters(), ParameterRole::kItemTower);
    if (!tower || !trained.contains(*tower)) return std::nullopt;
    return FindParameter(parameters(), ParameterRole::kItemTable);
  }

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

// Chooses GraphOptions::max_records so that this many of the longest records have `rows` rows together; 1 to
// kMostAtOnce. It is lower where a next-item head over all items could not keep the logits of so many.
inline constexpr size_t kMostAtOnce = 64;
// The limit on a device, where a head keeps no logits.
inline constexpr size_t kMostOnDevice = 1024;
size_t CountRecords(const Architecture& architecture, size_t num_negatives, size_t rows);

// Makes the graph for the architecture's head.
std::unique_ptr<Graph> MakeGraph(const Architecture& architecture, const kernels::Device& device,
                                 const GraphOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_GRAPH_H_
