// The product of a single row of x with integer blocks, for several panels at once. A kernel whose vectors are as wide
// as a panel includes it after blocks-inl.h; no guard, no includes.
static_assert(kLanes == kPanelRows);

// Each panel is a separate stream. The processor prefetches by itself, except at a panel's beginning. These first lines
// are prefetched while the previous panels are multiplied. Such a loop, with 768 columns and weights from memory, read
// 20.5 GB/s instead of 17.3 with 8 bits, and 19.0 instead of 11.4 with 4 (one thread of an AMD EPYC, Zen 4, whose other
// thread was busy, November 2026).
inline constexpr size_t kLine = 64, kLinesAsked = 12;  // lines of a panel's scales, and as many of its integers

template <size_t kPanels>
WISP_INT8_TARGET __attribute__((always_inline)) inline void PrefetchNext(const BlockTileArgs& t, size_t block) {
  for (size_t line = block; line < 2 * kLinesAsked; line += t.blocks) {
    const uint8_t* at = line < kLinesAsked ? reinterpret_cast<const uint8_t*>(t.scales) + line * kLine
                                           : t.panel + (line - kLinesAsked) * kLine;
#pragma GCC unroll 4
    for (size_t p = kPanels; p < 2 * kPanels; ++p) __builtin_prefetch(at + p * t.panel_bytes);
  }
}

template <PanelBits kBits, size_t kPanels>
WISP_INT8_TARGET __attribute__((noinline)) void MultiplyLoneRow(const BlockTileArgs& t) {
  constexpr size_t kGroupBytes = kPanelRows * kGroup, kHalves = kBits == PanelBits::kFour ? 2 : 1;
  const BlockRow& x = *t.x;
  const uint8_t* w = t.panel;
  const auto* scales = reinterpret_cast<const uint8_t*>(t.scales);
  Floats y[kPanels];
#pragma GCC unroll 4
  for (size_t p = 0; p < kPanels; ++p) y[p] = SetFloats(0.0f);
  for (size_t block = 0; block < t.blocks; ++block) {
    PrefetchNext<kPanels>(t, block);
    Sums sums[kPanels];
#pragma GCC unroll 4
    for (size_t p = 0; p < kPanels; ++p) sums[p] = StartAt<kBits>(x.start[block]);
#pragma GCC unroll 8
    for (size_t group = 0; group < kBlockColumns / kGroup; ++group) {
      const auto* q = reinterpret_cast<const uint8_t*>(x.q) + block * kBlockColumns * GetBytes(kBlockFormat);
      const Inputs inputs = Broadcast(q + group * kGroup * GetBytes(kBlockFormat));
#pragma GCC unroll 4
      for (size_t p = 0; p < kPanels; ++p) {
        const uint8_t* at = w + p * t.panel_bytes + group / kHalves * kGroupBytes;
        sums[p] = DotOffset(sums[p], inputs, group % 2 == 0 ? Offset<kBits, false>(at) : Offset<kBits, true>(at));
      }
    }
#pragma GCC unroll 4
    for (size_t p = 0; p < kPanels; ++p) {
      const Floats scale = LoadScales(reinterpret_cast<const Half*>(scales + p * t.panel_bytes));
      const Floats total = ToFloats(TotalFrom(sums[p], x.start[block]));
      y[p] = Fuse(Multiply(total, scale), SetFloats(x.scale[block]), y[p]);
    }
    w += kBlockColumns / kGroup / kHalves * kGroupBytes;
    scales += kPanelRows * sizeof(Half);
  }
#pragma GCC unroll 4
  for (size_t p = 0; p < kPanels; ++p) StoreFloats(y[p], t.y + p * kPanelRows, kLanes);
}
