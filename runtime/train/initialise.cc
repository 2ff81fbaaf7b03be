#include "runtime/train/initialise.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace wisp {

void InitialiseWeights(const Architecture& architecture, const InitialisationOptions& options,
                       privacy::RandomStream& random, std::span<float> weights) {
  std::fill(weights.begin(), weights.end(), 0.0f);
  for (const ParameterSpec& p : ParametersOf(architecture)) {
    const std::span<float> values = weights.subspan(p.offset, p.size());
    if (p.role == ParameterRole::kTable) {
      const float deviation = p.name == "position_embedding" ? options.position_deviation : options.table_deviation;
      for (float& w : values) w = deviation * static_cast<float>(random.Normal());
    } else if (p.role == ParameterRole::kMatrix) {
      // The three products in "qkv" are matrices of their own: [D, D] each.
      const bool stacked = std::string_view(p.name).ends_with(".qkv.weight");
      const double n = stacked ? p.rows / 3 : p.rows;
      const double bound = options.matrix_gain * std::sqrt(6.0 / (n + p.cols));
      for (float& w : values) w = static_cast<float>(bound * (2 * random.UniformDouble() - 1));
    } else if (std::string_view(p.name).ends_with(".gain")) {
      std::fill(values.begin(), values.end(), 1.0f);
    }
  }
}

}  // namespace wisp
