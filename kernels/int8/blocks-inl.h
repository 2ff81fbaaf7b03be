// The inner loop of products with matrices of blocks: some rows of x, one panel. Included by each kernel behind
// tile-inl.h, inside its own namespace; no guard, no includes. Beside what tile-inl.h names, a kernel defines:
//
//   kBlockFormat              how it reads x
//   StartAt<bits>(i)          sums that begin at i, or at 0 where TotalFrom adds it, or nothing is to be added
//   TotalFrom(sums, i)        kLanes finished sums
//   Offset<bits, high>(p)     kLanes groups of weights at p, without their offset taken away, in an OffsetWeights
//   DotOffset(sums, x, w)     as Dot
//   LoadScales(p)             kLanes halves as floats
//   Fuse(a, b, c)             a * b + c
//
// Each element of y has one accumulator: a row's result does not depend on its neighbours.

// Bytes from what a tile is multiplied by to what is fetched ahead: a page, where the processor ends its own
// fetching. Panels lie one behind the other. A token of GPT-2's shape took 4.3 ms in place of 5.1 in 8 bits and 3.1 in
// place of 4.6 in 4; half as far and twice as far won less (AMD EPYC with AVX-512, November 2026).
inline constexpr size_t kPrefetchedAhead = 4096;
// Lone rows fetch, and tiles of six rows and more. Where rows are many, the tallest tiles read a panel before others,
// and the lower ones find it in the cache. A token of 16 texts took 13 % less with 8 bits and 9 % less with 4; one of 4
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
    // Before the integers of a panel lie its scales: without this as many bytes would not be asked for.
    if constexpr (kPrefetches<kRows>) __builtin_prefetch(reinterpret_cast<const uint8_t*>(scales) + kPrefetchedAhead);
    Sums sums[kRows][kVectors];
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) sums[r][v] = StartAt<kBits>(t.x[r].start[block]);
    }
    const size_t first = block * kBlockColumns * BytesOf(kBlockFormat);
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
        const auto* q = reinterpret_cast<const uint8_t*>(t.x[r].q) + first + group * kGroup * BytesOf(kBlockFormat);
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

// kVectors at a time: all of a panel's where registers allow, as that reads memory in one stream.
template <PanelBits kBits, size_t kRows, size_t kVectors>
WISP_INT8_TARGET __attribute__((noinline)) void MultiplyBlockTile(const BlockTileArgs& t) {
  for (size_t vector = 0; vector < kPanelRows / kLanes; vector += kVectors)
    MultiplyVectors<kBits, kRows, kVectors>(t, vector);
}
