// The inner loop of int8 products: a tile of sums of y in registers. Each kernel includes it inside its own namespace,
// after it has defined its vectors; no guard, no includes.
//
//   WISP_INT8_TARGET               the attribute that lets a function use the instruction set; may be empty
//   kFormat, kLanes, kTileVectors  how it reads x; channels of a vector; vectors of a panel
//   Sums, Weights, Inputs          sums of kLanes channels as they grow; kLanes groups of weights; one group of x for
//                                  every lane
//   Totals, Floats                 kLanes finished sums; kLanes floats
//   Start(p), LoadWeights(p), Broadcast(p), Dot(sums, inputs, weights), Total(sums), ToFloats(totals)
//   SetFloats(f), LoadFloats(p, count), StoreFloats(v, p, count), Multiply(a, b), Plus(a, b)
//
// Every sum has one accumulator, whatever the tile, and its own scales. So a row's result does not depend on other
// rows.

inline constexpr size_t kPanelWidth = kTileVectors * kLanes;
inline constexpr size_t kVectorBytes = kLanes * kGroup, kScaleBytes = kLanes * sizeof(float);  // bytes of a vector

// Computes y from the totals of a tile. It is not inlined, because each tile would contain an unrolled copy.
WISP_INT8_TARGET __attribute__((noinline)) inline void Finish(const TileArgs& t, const Totals* totals, size_t rows,
                                                              size_t vectors) {
  for (size_t v = 0; v * kLanes < t.cols; ++v) {
    const size_t count = t.cols - v * kLanes < kLanes ? t.cols - v * kLanes : kLanes;
    const uint8_t* panel = t.panel + v / kTileVectors * t.panel_bytes + v % kTileVectors * kScaleBytes;
    const Floats scale = LoadFloats(reinterpret_cast<const float*>(panel), kLanes);
    const Floats bias = t.bias != nullptr ? LoadFloats(t.bias + v * kLanes, count) : SetFloats(0.0f);
    float* y = t.y + v * kLanes;
    for (size_t r = 0; r < rows; ++r, y += t.ldy) {
      Floats value = Plus(Multiply(Multiply(ToFloats(totals[r * vectors + v]), SetFloats(t.scale_R[r])), scale), bias);
      if (t.add) value = Plus(LoadFloats(y, count), value);
      StoreFloats(value, y, count);
    }
  }
}

template <size_t kRows, size_t kPanels>
WISP_INT8_TARGET __attribute__((noinline)) void MultiplyTile(const TileArgs& t) {
  constexpr size_t kVectors = kPanels * kTileVectors;
  const size_t panel_bytes = t.panel_bytes;
  Sums sums[kRows][kVectors];
#pragma GCC unroll 16
  for (size_t v = 0; v < kVectors; ++v) {
    const Sums start =
        Start(t.panel + v / kTileVectors * panel_bytes + (kTileVectors + v % kTileVectors) * kScaleBytes);
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) sums[r][v] = start;
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; v += kLanes < 16 ? 16 / kLanes : 1)
      __builtin_prefetch(t.y + r * t.ldy + v * kLanes, /*write*/ 1);
  }

  const uint8_t* x = t.x;
  const uint8_t* w = t.panel + 2 * kTileVectors * kScaleBytes;
  for (size_t group = t.groups; group != 0; --group) {
    Weights weights[kVectors];
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) {
      const uint8_t* at = w + v / kTileVectors * panel_bytes + v % kTileVectors * kVectorBytes;
      // Prefetches the next panels, which lie after these. For a single row the processor does that by itself. Six
      // blocks of width 384 took 17 % less with 16 rows and 2 % less with 128 (Zen 4, November 2026).
      if constexpr (kRows > 1) {
        if (v * kVectorBytes % 32 == 0) __builtin_prefetch(at + kPanels * panel_bytes, /*read*/ 0, /*second level*/ 2);
      }
      weights[v] = LoadWeights(at);
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      const Inputs inputs = Broadcast(x + r * RowBytes(kFormat));
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) sums[r][v] = Dot(sums[r][v], inputs, weights[v]);
    }
    x += kGroup * GetBytes(kFormat);
    w += kTileVectors * kVectorBytes;
  }

  // Tiles of 12 sums, and the tallest of Arm, compute y from registers if they are whole and assign it, as in most
  // products. After a history of 200, the top 10 took 5 % less (Zen 3, November 2026), and 8 to 10 % fewer instructions
  // on Arm. Those of AVX-512 would grow by 4 KB.
  if constexpr (kRows * kVectors == 12 || (kLanes == 4 && kRows >= 6)) {
    if (t.cols == kVectors * kLanes && !t.add) {
      float* const y = t.y;
      const size_t ldy = t.ldy;
      const float* const scale_R = t.scale_R;
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        const uint8_t* panel = t.panel + v / kTileVectors * panel_bytes + v % kTileVectors * kScaleBytes;
        const Floats scale = LoadFloats(reinterpret_cast<const float*>(panel), kLanes);
        const Floats bias = t.bias != nullptr ? LoadFloats(t.bias + v * kLanes, kLanes) : SetFloats(0.0f);
#pragma GCC unroll 16
        for (size_t r = 0; r < kRows; ++r) {
          const Floats scaled = Multiply(Multiply(ToFloats(Total(sums[r][v])), SetFloats(scale_R[r])), scale);
          StoreFloats(Plus(scaled, bias), y + r * ldy + v * kLanes, kLanes);
        }
      }
      return;
    }
  }

  Totals totals[kRows * kVectors];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) totals[r * kVectors + v] = Total(sums[r][v]);
  }
  Finish(t, totals, kRows, kVectors);
}
