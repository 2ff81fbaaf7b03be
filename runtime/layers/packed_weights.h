// A graph's packed matrices and a view of all its weights. Code that runs records creates one.
//
//   const PackedWeights weights(graph, flat);                       // packed here, by this thread
//   RecordContext context{.weights = weights.view(), .buffers = buffers};
#ifndef WISP_RUNTIME_LAYERS_PACKED_WEIGHTS_H_
#define WISP_RUNTIME_LAYERS_PACKED_WEIGHTS_H_

#include <cstddef>

#include "runtime/core/arena.h"
#include "runtime/layers/graph.h"
#include "runtime/layers/weights.h"

namespace wisp {

class PackedWeights {
 public:
  enum class Packing { kNow, kLater };

  // `graph` and the memory behind `source` must outlive this. With kLater the caller packs before the first use.
  [[gnu::cold]] PackedWeights(const GraphBase& graph, const ParameterSource& source, Packing packing = Packing::kNow);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // Packs after the weights have changed. Call once for each part, from as many threads as there are parts. Op tables
  // whose packing owns memory (OpTable::release_packed) are packed once only. `changed`: for each parameter, true if it
  // has changed; empty: all have.
  void Pack(size_t part, size_t num_parts, std::span<const uint8_t> changed = {});

  const Weights& view() const { return view_; }
  size_t allocated_bytes() const { return packed_.allocated_bytes(); }
  // Bytes that one allocates, without making it.
  static size_t PlanBytes(const GraphBase& graph) {
    return AlignedArray<float>::AllocatedBytes(graph.pack_plan().size());
  }

 private:
  void ReadVariances();

  AlignedArray<float> packed_;
  kernels::Memory memory_;
  std::vector<float> variances_;  // variances of parameters when they were last packed; on a device
  Weights view_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_PACKED_WEIGHTS_H_
