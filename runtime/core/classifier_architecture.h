// The shape of a sequence classifier as data: the encoder's Architecture and what stands on it.
//
// Shared by runtime/model (which checks a file's tensors against it) and runtime/layers (which runs it: classifier.h).
#ifndef WISP_RUNTIME_CORE_CLASSIFIER_ARCHITECTURE_H_
#define WISP_RUNTIME_CORE_CLASSIFIER_ARCHITECTURE_H_

#include <cstdint>
#include <vector>

#include "runtime/core/architecture.h"

namespace wisp {

inline constexpr uint32_t kMaxClasses = 1u << 16;

// The encoder is an Architecture whose next-item head is absent: tied table, no output bias. Classifiers usually attend
// to all positions (Attend::kAll); causal attention leaves the first position with itself alone and is refused.
struct ClassifierArchitecture {
  Architecture encoder;
  uint32_t num_classes = 2;
  bool operator==(const ClassifierArchitecture&) const = default;
};

// A sentence for the first field that is out of range or has no meaning here.
Status Validate(const ClassifierArchitecture& architecture);

// The encoder's parameters at the encoder's own offsets (so its weights are a prefix of the flat buffer), then
// "pooler.weight" [D, D], "pooler.bias", "head.weight" [num_classes, D], "head.bias".
std::vector<ParameterSpec> ParametersOf(const ClassifierArchitecture& architecture);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_CLASSIFIER_ARCHITECTURE_H_
