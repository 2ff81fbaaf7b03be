// The parameters that a run trains, and their offsets in buffers that hold only these: sums of gradients, moments,
// averages, the weights of a checkpoint. Frozen parameters take no space there.
//
//   const TrainedSet trained(parameters, [](const ParameterSpec& p) { return p.trained; });
//   for (size_t i : trained.parameters()) Step(weights + parameters[i].offset, moments + trained.offset(i), ...);
#ifndef WISP_RUNTIME_CORE_TRAINED_SET_H_
#define WISP_RUNTIME_CORE_TRAINED_SET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/core/architecture.h"

namespace wisp {

class TrainedSet {
 public:
  // Contains the parameters for which `trains` holds.
  TrainedSet(const std::vector<ParameterSpec>& parameters, const std::function<bool(const ParameterSpec&)>& trains);

  bool contains(size_t parameter) const { return offsets_[parameter] != kNone; }
  // In floats; the parameter must be contained. Each starts on 64 bytes, in the order of the parameters.
  size_t offset(size_t parameter) const { return offsets_[parameter]; }
  // Indices of the contained parameters, ascending.
  std::span<const uint32_t> parameters() const { return parameters_; }
  // Floats of a buffer for the contained parameters, alignment gaps included; num_coordinates counts without gaps.
  size_t size() const { return size_; }
  uint64_t num_coordinates() const { return num_coordinates_; }

  // Copies the contained parameters out of the flat buffer of all parameters, or out of its part from offset `first`
  // on; and back.
  void Gather(const std::vector<ParameterSpec>& parameters, std::span<const float> flat, std::span<float> out,
              size_t first = 0) const;
  void Scatter(const std::vector<ParameterSpec>& parameters, std::span<const float> in, std::span<float> flat,
               size_t first = 0) const;

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<size_t> offsets_;  // an offset for every parameter
  std::vector<uint32_t> parameters_;
  size_t size_ = 0;
  uint64_t num_coordinates_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_TRAINED_SET_H_
