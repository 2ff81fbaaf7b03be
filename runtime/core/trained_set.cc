#include "runtime/core/trained_set.h"

#include <algorithm>

namespace wisp {

TrainedSet::TrainedSet(const std::vector<ParameterSpec>& parameters,
                       const std::function<bool(const ParameterSpec&)>& trains)
    : offsets_(parameters.size(), kNone) {
  parameters_.reserve(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!trains(parameters[i])) continue;
    offsets_[i] = size_;
    parameters_.push_back(static_cast<uint32_t>(i));
    size_ += AlignedSize(parameters[i].size());
    num_coordinates_ += parameters[i].size();
  }
}

void TrainedSet::Gather(const std::vector<ParameterSpec>& parameters, std::span<const float> flat, std::span<float> out,
                        size_t first) const {
  for (uint32_t i : parameters_) {
    const ParameterSpec& p = parameters[i];
    std::copy_n(flat.data() + (p.offset - first), p.size(), out.data() + offsets_[i]);
  }
}

void TrainedSet::Scatter(const std::vector<ParameterSpec>& parameters, std::span<const float> in, std::span<float> flat,
                         size_t first) const {
  for (uint32_t i : parameters_) {
    const ParameterSpec& p = parameters[i];
    std::copy_n(in.data() + offsets_[i], p.size(), flat.data() + (p.offset - first));
  }
}

}  // namespace wisp
