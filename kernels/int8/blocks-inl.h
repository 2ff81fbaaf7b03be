// The inner loop of products with integer blocks: some rows of x, one panel. Each kernel includes it after tile-inl.h,
// inside its own namespace; no guard, no includes. Beside the names of tile-inl.h, a kernel defines:
//
//   kBlockFormat              how it reads x
//   StartAt<bits>(i)          sums that begin at i; or at 0 if TotalFrom adds i or nothing has to be added
//   TotalFrom(sums, i)        kLanes finished sums
//   Offset<bits, high>(p)     kLanes groups of weights at p, still with their offset, in an OffsetWeights
//   DotOffset(sums, x, w)     like Dot
//   LoadScales(p)             kLanes float16 numbers as floats
//   Fuse(a, b, c)             a * b + c
//
// Each element of y has one accumulator, so a row's result does not depend on other rows.

// How many bytes ahead of the current panel a tile prefetches: a page, because the processor's own prefetching stops at
// page ends. Panels lie one after another. A token of GPT-2's shape took 4.3 ms instead of 5.1 with 8 bits, and 3.1
// instead of 4.6 with 4. Half and twice this distance gained less (AMD EPYC with AVX-512, November 2026).
inline constexpr size_t kPrefetchedAhead = 4096;
// Single rows prefetch, and so do tiles of at least six rows. With many rows, the tallest tiles read a panel first, and
// lower ones find it in the cache. A token of 16 texts took 13 % less with 8 bits and 9 % less with 4; a token of 4
// texts took as long or longer (Zen 4, November 2026).
template <size_t kRows>
inline constexpr bool kPrefetches = kRows == 1 || kRows >= 6;

template <PanelBits kBits, size_t kRows, size_t kVectors>
WISP_INT8_TARGET __attribute__((always_inline)) inline void MultiplyVectors(const BlockTileArgs& t, size_t vector) {
  constexpr size_t kGroupBytes = kPanelRows * kGroup, kHalves = kBits == PanelBits::kFour ? 2 : 1;
  const uint8_t* w = t.panel + vector * kLanes * kGroup;
  const Half* scales = t.scales + vector * kLanes;
  Floats y[kRows][kVectors];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) y[r][v] = SetFloats(0.0f);
  }
  for (size_t block = 0; block < t.blocks; ++block) {
    // A panel's scales lie before its integers; the integers' prefetches would miss that many bytes.
    if constexpr (kPrefetches<kRows>) __builtin_prefetch(reinterpret_cast<const uint8_t*>(scales) + kPrefetchedAhead);
    Sums sums[kRows][kVectors];
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) sums[r][v] = StartAt<kBits>(t.x[r].start[block]);
    }
    const size_t first = block * kBlockColumns * GetBytes(kBlockFormat);
#pragma GCC unroll 8
    for (size_t group = 0; group < kBlockColumns / kGroup; ++group) {
      OffsetWeights weights[kVectors];
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        const uint8_t* at = w + group / kHalves * kGroupBytes + v * kLanes * kGroup;
        if constexpr (kPrefetches<kRows>) __builtin_prefetch(at + kPrefetchedAhead);
        weights[v] = group % 2 == 0 ? Offset<kBits, false>(at) : Offset<kBits, true>(at);
      }
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r) {
        const auto* q = reinterpret_cast<const uint8_t*>(t.x[r].q) + first + group * kGroup * GetBytes(kBlockFormat);
        const Inputs inputs = Broadcast(q);
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) sums[r][v] = DotOffset(sums[r][v], inputs, weights[v]);
      }
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      const Floats scale = LoadScales(scales + v * kLanes);
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r) {
        const Floats total = ToFloats(TotalFrom(sums[r][v], t.x[r].start[block]));
        y[r][v] = Fuse(Multiply(total, scale), SetFloats(t.x[r].scale[block]), y[r][v]);
      }
    }
    w += kBlockColumns / kGroup / kHalves * kGroupBytes;
    scales += kPanelRows;
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) StoreFloats(y[r][v], t.y + r * kPanelRows + (vector + v) * kLanes, kLanes);
  }
}

// kVectors at a time: all of a panel's if registers allow, because that reads memory in one stream.
template <PanelBits kBits, size_t kRows, size_t kVectors>
WISP_INT8_TARGET __attribute__((noinline)) void MultiplyBlockTile(const BlockTileArgs& t) {
  for (size_t vector = 0; vector < kPanelRows / kLanes; vector += kVectors)
    MultiplyVectors<kBits, kRows, kVectors>(t, vector);
}
