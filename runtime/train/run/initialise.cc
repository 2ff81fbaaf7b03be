#include "runtime/train/run/initialise.h"

#include <algorithm>
#include <cmath>

namespace wisp {
namespace {

bool IsGain(ParameterRole role) {
  return role == ParameterRole::kEmbeddingNormGain || role == ParameterRole::kAttentionNormGain ||
         role == ParameterRole::kFeedForwardNormGain || role == ParameterRole::kFinalNormGain;
}

bool IsDown(ParameterRole role) {
  return role == ParameterRole::kQkvDown || role == ParameterRole::kAttentionOutDown ||
         role == ParameterRole::kFeedForwardInDown || role == ParameterRole::kFeedForwardOutDown;
}
// Up-matrices of an adapter start at zero, so it changes nothing at first.
bool IsUp(ParameterRole role) {
  return role == ParameterRole::kQkvUp || role == ParameterRole::kAttentionOutUp ||
         role == ParameterRole::kFeedForwardInUp || role == ParameterRole::kFeedForwardOutUp;
}

void Fill(std::span<float> values, double bound, privacy::RandomStream& random) {
  for (float& w : values) w = static_cast<float>(bound * (2 * random.UniformDouble() - 1));
}

// Each product stacked in a matrix is initialised as a matrix of its own.
void FillMatrix(const Architecture& a, const ParameterSpec& p, double gain, privacy::RandomStream& random,
                std::span<float> values) {
  const auto bound = [&](size_t rows) { return gain * std::sqrt(6.0 / static_cast<double>(rows + p.cols)); };
  if (IsDown(p.role)) return Fill(values, 1 / std::sqrt(static_cast<double>(p.cols)), random);
  if (p.role == ParameterRole::kFeedForwardInWeight)
    return Fill(values, bound(a.blocks[p.block].feed_forward.inner_width), random);
  if (p.role != ParameterRole::kQkvWeight) return Fill(values, bound(p.rows), random);
  const AttentionSpec& attention = a.blocks[p.block].attention;
  const size_t of_queries = size_t{attention.queries_width()} * p.cols;
  Fill(values.first(of_queries), bound(attention.queries_width()), random);
  Fill(values.subspan(of_queries), bound(attention.keys_width()), random);
}

bool IsDrawn(const ParameterSpec& p) {
  if (p.shape == ParameterShape::kTable) return true;
  return p.shape == ParameterShape::kMatrix && p.role != ParameterRole::kClassWeight && !IsUp(p.role);
}

// Draws and drops the numbers of a parameter that is not needed, so that those behind it stay the same.
void Skip(const ParameterSpec& p, privacy::RandomStream& random) {
  for (size_t i = 0; i < p.size() && IsDrawn(p); ++i)
    p.shape == ParameterShape::kTable ? random.Normal() : random.UniformDouble();
}

}  // namespace

void InitialiseWeights(const Architecture& architecture, const InitialisationOptions& options,
                       privacy::RandomStream& random, std::span<float> weights, size_t first) {
  std::fill(weights.begin(), weights.end(), 0.0f);
  for (const ParameterSpec& p : ListParameters(architecture)) {
    if (p.offset < first) {
      Skip(p, random);
      continue;
    }
    const std::span<float> values = weights.subspan(p.offset - first, p.size());
    if (p.shape == ParameterShape::kTable) {
      const bool positions = p.role == ParameterRole::kPositionTable || p.role == ParameterRole::kTypeTable;
      const float deviation = positions ? options.position_deviation : options.table_deviation;
      for (float& w : values) w = deviation * static_cast<float>(random.Normal());
    } else if (IsDrawn(p)) {
      FillMatrix(architecture, p, options.matrix_gain, random, values);
    } else if (IsGain(p.role)) {
      std::fill(values.begin(), values.end(), 1.0f);
    }
  }
}

}  // namespace wisp
