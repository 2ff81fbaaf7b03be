// Parameters by the names that files have, so that a test's statement about one also holds for the file.
#ifndef WISP_TESTS_UNIT_LAYERS_PARAMETER_NAMES_H_
#define WISP_TESTS_UNIT_LAYERS_PARAMETER_NAMES_H_

#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/core/architecture.h"

namespace wisp::test {

// Returns the number of parameters if no parameter has that name.
inline size_t FindIndex(const std::vector<ParameterSpec>& parameters, std::string_view name) {
  const auto found =
      std::find_if(parameters.begin(), parameters.end(), [name](const ParameterSpec& p) { return p.name == name; });
  return static_cast<size_t>(found - parameters.begin());
}

inline constexpr char kItemVariance[] = "item_embedding.variance";
inline constexpr char kParameterVariance[] = "parameter_variance";

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_LAYERS_PARAMETER_NAMES_H_
