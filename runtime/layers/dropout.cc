#include "runtime/layers/dropout.h"

#include <cmath>

namespace wisp {
namespace {

// SplitMix64's output function (Steele, Lea, Flood 2014): a bijection that passes the usual statistical suites.
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

uint32_t DropThreshold(float rate) { return static_cast<uint32_t>(std::lround(rate * 65536.0f)); }

}  // namespace

void DrawKeep(uint64_t seed, uint64_t site, float rate, uint8_t* keep, size_t n) {
  const uint32_t threshold = DropThreshold(rate);
  const uint64_t key = Mix(seed + 0x9e3779b97f4a7c15ull * (site + 1));
  for (size_t i = 0; i < n; i += 4) {
    const uint64_t bits = Mix(key + 0x9e3779b97f4a7c15ull * (i / 4));
    for (size_t lane = 0; lane < 4 && i + lane < n; ++lane) {
      keep[i + lane] = static_cast<uint32_t>((bits >> (16 * lane)) & 0xffff) >= threshold ? 1 : 0;
    }
  }
}

float KeepScale(float rate) { return 65536.0f / (65536.0f - static_cast<float>(DropThreshold(rate))); }

void Dropout::Forward(const RecordContext& context, float rate, float* x, size_t width) const {
  if (context.dropout == nullptr || rate <= 0) return;
  const Segments& records = context.records;
  for (size_t b = 0; b < records.num_records; ++b)
    Draw(context, rate, b, records.begin(b) * width, records.size(b) * width);
  context.ops().apply_keep(
      {.x = x, .keep = Mask(context, rate, 0), .y = x, .n = records.rows * width, .scale = KeepScale(rate)});
}

const float* Dropout::Backward(const RecordContext& context, float rate, const float* dy, float* dx,
                               size_t width) const {
  const uint8_t* keep = Mask(context, rate, 0);
  if (keep == nullptr) return dy;
  context.ops().apply_keep({.x = dy, .keep = keep, .y = dx, .n = context.rows() * width, .scale = KeepScale(rate)});
  return dx;
}

const uint8_t* Dropout::Draw(const RecordContext& context, float rate, size_t b, size_t first, size_t n) const {
  if (context.dropout == nullptr || rate <= 0) return nullptr;
  uint8_t* keep = context.backward(keep_) + first;
  DrawKeep(context.options_of(b).dropout_seed, site_, rate, keep, n);
  return keep;
}

const uint8_t* Dropout::Mask(const RecordContext& context, float rate, size_t first) const {
  return context.dropout == nullptr || rate <= 0 ? nullptr : context.backward(keep_) + first;
}

}  // namespace wisp
