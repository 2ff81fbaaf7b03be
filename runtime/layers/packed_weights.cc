#include "runtime/layers/packed_weights.h"

namespace wisp {

PackedWeights::PackedWeights(const GraphBase& graph, const ParameterSource& source, Packing packing)
    : packed_(graph.pack_plan().size(), graph.device().memory),
      memory_(graph.device().memory),
      view_{&graph.ops(), &graph.pack_plan(), &graph.parameters(), source, packed_.data()} {
  const std::vector<float> constants = view_.plan->constants().Values();
  memory_.copy_in(packed_.data() + view_.plan->constants_offset(), constants.data(), constants.size() * sizeof(float));
  if (const auto parameter = view_.plan->parameter_variance_parameter()) {
    if (!memory_.is_host()) variances_.resize((*view_.parameters)[*parameter].size());
    view_.variance_P = memory_.is_host() ? view_.at(*parameter) : variances_.data();
  }
  if (packing == Packing::kNow) Pack(0, 1);
}

PackedWeights::~PackedWeights() { view_.plan->Release(*view_.ops, packed_.data()); }

void PackedWeights::Pack(size_t part, size_t num_parts, std::span<const uint8_t> changed) {
  view_.plan->Pack(*view_.ops, memory_, view_.source, packed_.data(), {part, num_parts, changed});
  if (part == 0) ReadVariances();
}

// Ops take the variances as numbers in host memory.
void PackedWeights::ReadVariances() {
  if (variances_.empty()) return;
  memory_.copy_out(variances_.data(), view_.at(*view_.plan->parameter_variance_parameter()),
                   variances_.size() * sizeof(float));
}

}  // namespace wisp
