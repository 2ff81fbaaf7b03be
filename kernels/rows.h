// Arguments of the ops that look rows up and move them: embedding, halves, copies by index, dropout's masks.
//
// A part of the op table's contract: kernels/kernels.h, which includes this, says what holds for all of them.
#ifndef WISP_KERNELS_ROWS_H_
#define WISP_KERNELS_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/half.h"
#include "kernels/records.h"

namespace wisp::kernels {

enum class Store { kAssign, kAdd };

// ---- Embedding. ids < 0 are padding. --------------------------------------------------------------------------------
// y[t] <- scale * table[ids[t]] + positions[t], or, where position_T is given, positions[position[t]]; a padding row is
// all zero. `positions_TD` may be null.
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

// ---- Tables of halves (kernels/half.h), finite ones, read where they lie. For inference. ----------------------------
// y (=|+=) a * x. Max error 4 ulp of the sum of magnitudes.
struct ScaleHalfArgs {
  const Half* x;
  float* y;
  size_t n;
  float a;
  Store store;
};

// y <- W x + bias of one x: the scores of a catalogue. `bias_N` may be null. Max error as of products. An element of y
// does not depend on the rows beside its own.
struct MultiplyHalfArgs {
  const Half* w_NK;
  size_t ldw;
  const float* x_K;
  const float* bias_N;
  float* y_N;
  size_t n, k;
};

// embed_forward where at least one of the two tables is of halves: of each, one pointer is given, and of positions it
// may be none. The product with `scale` is rounded before the position is added.
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

// Re-Attention, all numbers of a row alike: y[t] <- min(scale^2 variance[ids[t]] + position_variance, kMaxVariance); a
// padding row is all zero. Max error 4 ulp.
template <class T = float>
struct EmbedVarianceArgs {
  const T* variance_M;
  const int32_t* ids_T;
  T* y_TD;
  size_t rows, d;
  T scale, position_variance;
};

// position_R[r] <- the position of row r within its record; -1 for padding. A record's last row stands right before
// `end`, or, with 0, its first row stands at position 0.
struct PositionIdsArgs {
  const int32_t* ids_R;
  int32_t* position_R;
  Segments records;
  size_t end;
};

// ---- Moving. Exact. -------------------------------------------------------------------------------------------------
// Every byte of y becomes 0: numbers of any kind.
struct ClearArgs {
  void* y;
  size_t bytes;
};

// y[to[r]] <- x[from[r]]; null: row r itself. Rows that `to` does not name stay; it names none twice.
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

// y[r, j] <- x[r, column[j] - first] where there is such a column: 0 <= column[j] - first < n. Other elements stay.
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

// ---- Dropout's masks. Exact: the same bits of every table, for each is a function of seed, site and place. ----------
// Row r of record b has the `width` numbers of keep from r * width on. The i-th of the record is 0 where the i-th
// 16-bit word of its stream is below `threshold`, else 1. Word i is bits 16 (i mod 4) and up of
//     Mix(Mix(seed_b + c (site + 1)) + c floor(i / 4)),  c = 0x9e3779b97f4a7c15, modulo 2^64,
// Mix being SplitMix64's output function (Steele, Lea, Flood 2014). Not a source of privacy.
struct DrawKeepArgs {
  uint8_t* keep_RW;
  Segments records;
  const RecordOptions* options_B;  // null: as RecordOptions has them
  size_t width;
  uint64_t site;
  uint32_t threshold;  // 0 to 65536
};

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_ROWS_H_
