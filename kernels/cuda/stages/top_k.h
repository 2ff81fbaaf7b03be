// The best of many scores. A warp reduces a list to its k best; then the lists of several warps are reduced to one,
// until one list is left. All keys of a row are different, so the result does not depend on the order.
#ifndef WISP_KERNELS_CUDA_STAGES_TOP_K_H_
#define WISP_KERNELS_CUDA_STAGES_TOP_K_H_

#include "kernels/cuda/stage.h"

namespace wisp::kernels::cuda {

inline constexpr unsigned kLaneKeys = 16, kWarpKeys = kLaneKeys * kWarp;
static_assert(2 * kMostTopK <= kWarpKeys);  // a step merges at least two lists

// One step. A list is a word that says if a score is not finite, followed by k keys, best first. Key 0 means no key.
struct TopKStep {
  const float* score_RN;  // for all steps: original scores are returned
  const uint32_t* excluded_RW;
  const uint64_t* from;  // [rows, num_from] lists; null in the first step, whose lists are kWarpKeys scores each
  uint64_t* to;          // [rows, num_to] lists; null in the last step, whose one list is the result
  Scored* best_RK;
  TopKSummary* summary_R;
  uint32_t rows, n, k, num_from, num_to, of_one;  // lists before and after; lists merged into one
};

// A better score has a larger key; among equal scores the smaller column has. Never 0.
__device__ inline uint64_t MakeKey(float score, uint32_t column) {
  const float normal = score + 0.0f;  // -0 becomes 0
  uint32_t bits;
#ifdef __CUDACC__
  bits = __float_as_uint(normal);
#else
  bits = static_cast<uint32_t>(emulate::ToBits(normal));
#endif
  const uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | ~column;
}
__device__ inline uint32_t GetColumn(uint64_t key) { return ~static_cast<uint32_t>(key); }

struct TopKStage {
  using Args = TopKStep;
  static constexpr StageKind kKind = StageKind::kTopK;

  // The key of a score in a row. Sets `strange` if the score is not finite.
  static __device__ uint64_t FirstKey(const Args& a, uint32_t row, uint32_t column, bool& strange) {
    if (column >= a.n) return 0;
    const size_t words = (size_t{a.n} + 31) / 32;
    if ((a.excluded_RW[row * words + column / 32] >> (column % 32) & 1) != 0) return 0;
    const float score = a.score_RN[size_t{row} * a.n + column];
    if (score - score == 0) return MakeKey(score, column);
    strange = true;
    return 0;
  }
  static __device__ uint64_t LaterKey(const Args& a, uint32_t row, uint32_t first_list, uint32_t i) {
    if (a.k == 0) return 0;
    const uint32_t list = first_list + i / a.k;
    if (i / a.k >= a.of_one || list >= a.num_from) return 0;
    return a.from[(size_t{row} * a.num_from + list) * (a.k + 1) + 1 + i % a.k];
  }

  static __device__ void Put(const Args& a, uint32_t row, uint32_t list, uint32_t rank, uint64_t key) {
    if (a.to != nullptr) {
      a.to[(size_t{row} * a.num_to + list) * (a.k + 1) + 1 + rank] = key;
      return;
    }
    const uint32_t column = GetColumn(key);
    Scored& best = a.best_RK[size_t{row} * a.k + rank];
    best.item = key == 0 ? -1 : static_cast<int32_t>(column);
    best.score = key == 0 ? 0.0f : a.score_RN[size_t{row} * a.n + column];
  }

  static __device__ void Run(const Args& a, const BlockPlace& block) {
    const size_t tasks = size_t{a.rows} * a.num_to;
    for (size_t task = GetThread(block) / kWarp; task < tasks; task += CountThreads(block) / kWarp) {
      const auto [row, list] = SplitBy(task, a.num_to);
      RunList(a, static_cast<uint32_t>(row), static_cast<uint32_t>(list));
    }
  }

  static __device__ void RunList(const Args& a, uint32_t row, uint32_t list) {
    uint64_t keys[kLaneKeys];
    bool strange = false;
    WISP_UNROLL for (unsigned s = 0; s < kLaneKeys; ++s) {
      const uint32_t i = s * kWarp + Lane();
      keys[s] =
          a.from == nullptr ? FirstKey(a, row, list * kWarpKeys + i, strange) : LaterKey(a, row, list * a.of_one, i);
    }
    for (uint32_t l = Lane(); a.from != nullptr && l < a.of_one && list * a.of_one + l < a.num_from; l += kWarp) {
      if (a.from[(size_t{row} * a.num_from + list * a.of_one + l) * (a.k + 1)] != 0) strange = true;
    }
    const bool any_strange = __ballot_sync(kWholeWarp, strange) != 0;
    uint32_t count = 0;
    uint64_t own = Largest(keys);
    for (uint32_t rank = 0; rank < a.k; ++rank) {
      const uint64_t largest = WarpMax(own);
      if (own == largest && largest != 0) {
        WISP_UNROLL for (unsigned s = 0; s < kLaneKeys; ++s) keys[s] = keys[s] == largest ? 0 : keys[s];
        own = Largest(keys);
      }
      if (Lane() == 0) Put(a, row, list, rank, largest);
      count += largest != 0 ? 1 : 0;
    }
    if (Lane() != 0) return;
    if (a.to != nullptr) {
      a.to[(size_t{row} * a.num_to + list) * (a.k + 1)] = any_strange ? 1 : 0;
    } else {
      a.summary_R[row].count = count;
      a.summary_R[row].not_finite = any_strange ? 1 : 0;
    }
  }

  static __device__ uint64_t Largest(const uint64_t (&keys)[kLaneKeys]) {
    uint64_t largest = 0;
    WISP_UNROLL for (unsigned s = 0; s < kLaneKeys; ++s) largest = largest < keys[s] ? keys[s] : largest;
    return largest;
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_TOP_K_H_
