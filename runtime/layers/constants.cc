#include "runtime/layers/constants.h"

#include <algorithm>
#include <cmath>

namespace wisp {

Constants::Constants(const Architecture& a)
    : max_length_(a.max_length), width_(a.width), temperature_(a.head.unit_length ? 1.0f : a.head.temperature) {
  for (const BlockSpec& spec : a.blocks) {
    const auto same = std::find_if(blocks_.begin(), blocks_.end(),
                                   [&](const Block& block) { return block.attention == spec.attention; });
    if (same != blocks_.end()) {
      blocks_.push_back(Block(*same));
      continue;
    }
    Block block{.rotary = spec.attention.rotary,
                .attention = spec.attention,
                .num_slopes = AttentionSlopes(spec.attention).size()};
    block.cos = Take(2 * rotary_size(block.rotary));
    block.slopes = Take(block.num_slopes);
    blocks_.push_back(block);
  }
  if (has_gains()) gains_ = Take(2 * AlignedSize(width_));
}

size_t Constants::Take(size_t count) {
  const size_t first = size_;
  size_ += AlignedSize(count);
  return first;
}

// Angles are computed in double: position * base^(-2 i / width).
void Constants::FillRotary(const Block& block, float* values) const {
  const RotarySpec& spec = block.rotary;
  float *cos = values + block.cos, *sin = cos + rotary_size(spec);
  for (uint32_t i = 0; i < spec.width / 2; ++i) {
    const double step = std::pow(static_cast<double>(spec.base), -2.0 * i / spec.width);
    for (size_t p = 0; p < max_length_; ++p) {
      cos[p * (spec.width / 2) + i] = static_cast<float>(std::cos(static_cast<double>(p) * step));
      sin[p * (spec.width / 2) + i] = static_cast<float>(std::sin(static_cast<double>(p) * step));
    }
  }
}

std::vector<float> Constants::Values() const {
  std::vector<float> values(size_);
  for (const Block& block : blocks_) {
    FillRotary(block, values.data());
    const std::vector<float> slopes = AttentionSlopes(block.attention);
    std::copy(slopes.begin(), slopes.end(), values.begin() + static_cast<std::ptrdiff_t>(block.slopes));
  }
  if (!has_gains()) return values;
  const float root = std::sqrt(static_cast<float>(width_));
  std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(unit_gain()), width_, 1 / root);
  std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(head_gain()), width_, 1 / (root * temperature_));
  return values;
}

}  // namespace wisp
