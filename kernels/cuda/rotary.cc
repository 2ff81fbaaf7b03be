// Rotary positions: one thread for each pair.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"

namespace wisp::kernels::cuda {
namespace {

void Rotary(const RotaryArgs<>& a) {
  const size_t pairs = a.rotated / 2;
  ForEachOf(a.rows, a.heads * pairs, [a, pairs] __device__(size_t r, size_t i) {
    const size_t p = i % pairs;
    const bool halves = a.pairs == RotaryPairs::kHalves;
    float* x = a.x_RD + r * a.ldx + i / pairs * a.head_width;
    float& first = x[halves ? p : 2 * p];
    float& second = x[halves ? p + pairs : 2 * p + 1];
    const float c = a.cos_TP[(a.first_position + r) * pairs + p], sine = a.sin_TP[(a.first_position + r) * pairs + p];
    const float s = a.rotation == Rotation::kInverse ? -sine : sine, before = first;
    first = before * c - second * s;
    second = before * s + second * c;
  });
}

}  // namespace

void FillRotary(OpTable& table) { table.rotary = Rotary; }

}  // namespace wisp::kernels::cuda
