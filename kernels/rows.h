// Arguments of the ops that look rows up and move them: embedding, float16 tables, copies by index, dropout masks.
//
// A part of the op table's contract. kernels/kernels.h includes this file and states what holds for all ops.
#ifndef WISP_KERNELS_ROWS_H_
#define WISP_KERNELS_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/half.h"
#include "kernels/records.h"

namespace wisp::kernels {

enum class Store { kAssign, kAdd };

// ---- Embedding. ids < 0 are padding. --------------------------------------------------------------------------------
// y[t] = scale * table[ids[t]] + positions[t]; or + positions[position[t]] if position_T is given. A padding row is all
// zero. `positions_TD` may be null.
template <class T = float>
struct EmbedForwardArgs {
  const T* table_MD;
  const T* positions_TD;  // the row for t = 0, already offset by the caller; with position_T the whole table
  const int32_t* ids_T;
  T* y_TD;
  size_t rows, d;
  T scale;
  const int32_t* position_T = nullptr;
};

// table[ids[t]] += scale * dx[t], in the order of t. Padding rows are skipped.
template <class T = float>
struct ScatterAddArgs {
  const T* dx_TD;
  size_t lddx;
  const int32_t* ids_T;
  T* table_MD;
  size_t ldtable;
  size_t rows, d;
  T scale;
};

// ---- Float16 tables (kernels/half.h) with finite numbers, read in place. For inference. -----------------------------
// y (=|+=) a * x. Max error 4 ulp of the sum of magnitudes.
struct ScaleHalfArgs {
  const Half* x;
  float* y;
  size_t n;
  float a;
  Store store;
};

// y = W x + bias for one x: the scores of a catalogue. `bias_N` may be null. Max error as for products. An element of y
// does not depend on other rows.
struct MultiplyHalfArgs {
  const Half* w_NK;
  size_t ldw;
  const float* x_K;
  const float* bias_N;
  float* y_N;
  size_t n, k;
};

// embed_forward with float16 tables. At least one of the two tables is float16; give one pointer for each table; the
// positions may be absent. The product with `scale` is rounded before the position is added.
struct EmbedHalfArgs {
  const float* table_MD;
  const Half* half_table_MD;
  const float* positions_TD;  // the row for t = 0, as in embed_forward
  const Half* half_positions_TD;
  const int32_t* ids_T;
  float* y_TD;
  size_t rows, d;
  float scale;
};

// Re-Attention, one value for all numbers of a row: y[t] = min(scale^2 variance[ids[t]] + position_variance,
// kMaxVariance). A padding row is all zero. Max error 4 ulp.
template <class T = float>
struct EmbedVarianceArgs {
  const T* variance_M;
  const int32_t* ids_T;
  T* y_TD;
  size_t rows, d;
  T scale, position_variance;
};

// position_R[r] = the position of row r in its record; -1 for padding. A record's last row is at position `end` - 1. If
// `end` is 0, its first row is at position 0.
struct PositionIdsArgs {
  const int32_t* ids_R;
  int32_t* position_R;
  Segments records;
  size_t end;
};

// ---- Moving. Exact. -------------------------------------------------------------------------------------------------
// Sets every byte of y to 0, for numbers of any type.
struct ClearArgs {
  void* y;
  size_t bytes;
};

// y[to[r]] = x[from[r]]; a null list means row r itself. Rows that `to` does not name stay; it must name no row twice.
template <class T = float>
struct CopyRowsArgs {
  const T* x_RD;
  size_t ldx;
  const uint32_t* from_R;
  T* y_RD;
  size_t ldy;
  const uint32_t* to_R;
  size_t rows, d;
};

// y[r, j] = x[r, column[j] - first] if 0 <= column[j] - first < n. Other elements stay.
template <class T = float>
struct GatherColumnsArgs {
  const T* x_RN;
  size_t ldx;
  const int32_t* column_J;
  int32_t first;
  T* y_RJ;
  size_t ldy;
  size_t rows, n, columns;
};

// ---- Dropout masks. Exact: every table gives the same bits, which depend on seed, site and place only. --------------
// Row r of record b has the `width` numbers of keep from r * width on. The i-th number of the record is 0 if the i-th
// 16-bit word of its stream is below `threshold`, otherwise 1. Word i is bits 16 (i mod 4) and up of
//     Mix(Mix(seed_b + c (site + 1)) + c floor(i / 4)),  c = 0x9e3779b97f4a7c15, modulo 2^64.
// Mix is SplitMix64's output function (Steele, Lea, Flood 2014). This is no source of privacy.
struct DrawKeepArgs {
  uint8_t* keep_RW;
  Segments records;
  const RecordOptions* options_B;  // null: the defaults of RecordOptions
  size_t width;
  uint64_t site;
  uint32_t threshold;  // 0 to 65536
};

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_ROWS_H_
