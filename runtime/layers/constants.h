// Constants that layers read and that follow from the architecture alone: angles of rotary positions, ALiBi slopes,
// gains of a cosine head. They are written once, after the packed weights, where ops can read them.
#ifndef WISP_RUNTIME_LAYERS_CONSTANTS_H_
#define WISP_RUNTIME_LAYERS_CONSTANTS_H_

#include <cstddef>
#include <vector>

#include "runtime/core/architecture.h"

namespace wisp {

// The offset of each constant, in floats from the first. Equal blocks share their constants.
class Constants {
 public:
  Constants() = default;
  [[gnu::cold]] explicit Constants(const Architecture& architecture);

  size_t size() const { return size_; }  // in floats
  // The values of all constants, to be copied to their place.
  [[gnu::cold]] std::vector<float> Values() const;

  // Rotary positions: the cosines of a block's pairs at each position [L, rotary width / 2], and the sines.
  size_t rotary_cos(size_t block) const { return blocks_[block].cos; }
  size_t rotary_sin(size_t block) const { return blocks_[block].cos + rotary_size(blocks_[block].rotary); }
  bool has_slopes(size_t block) const { return blocks_[block].num_slopes > 0; }
  size_t slopes(size_t block) const { return blocks_[block].slopes; }  // [H]
  // For a cosine head, or an encoder whose results have unit length. An RMS norm with one gain [D] makes rows of unit
  // length; with the other gain, rows of length 1 / temperature.
  bool has_gains() const { return temperature_ > 0; }
  size_t unit_gain() const { return gains_; }
  size_t head_gain() const { return gains_ + AlignedSize(width_); }

 private:
  struct Block {
    RotarySpec rotary;
    AttentionSpec attention;
    size_t num_slopes = 0, cos = 0, slopes = 0;
  };
  size_t rotary_size(const RotarySpec& spec) const { return AlignedSize(max_length_ * spec.width / 2); }
  size_t Take(size_t count);
  void FillRotary(const Block& block, float* values) const;

  std::vector<Block> blocks_;
  size_t max_length_ = 0, width_ = 0, size_ = 0, gains_ = 0;
  float temperature_ = 0;  // 1 for an encoder
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_CONSTANTS_H_
