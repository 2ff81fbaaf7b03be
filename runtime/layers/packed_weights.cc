#include "runtime/layers/packed_weights.h"

namespace wisp {

PackedWeights::PackedWeights(const GraphBase& graph, const ParameterSource& source, Packing packing)
    : packed_(graph.pack_plan().size(), graph.device().memory),
      view_{&graph.ops(), &graph.pack_plan(), &graph.parameters(), source, packed_.data()} {
  const std::vector<float> constants = view_.plan->constants().Values();
  graph.device().memory.copy_in(packed_.data() + view_.plan->constants_offset(), constants.data(),
                                constants.size() * sizeof(float));
  if (packing == Packing::kNow) Pack(0, 1);
}

PackedWeights::~PackedWeights() { view_.plan->Release(*view_.ops, packed_.data()); }

void PackedWeights::Pack(size_t part, size_t num_parts) {
  view_.plan->Pack(*view_.ops, view_.source, packed_.data(), part, num_parts);
}

}  // namespace wisp
