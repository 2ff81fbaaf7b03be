// The reference for the ops that look rows up and move them: a part of reference.h.
#ifndef WISP_KERNELS_REFERENCE_ROWS_H_
#define WISP_KERNELS_REFERENCE_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/kernels.h"

namespace wisp::kernels::reference {

template <class T>
void Put(T& to, T value, Store store) {
  to = store == Store::kAdd ? to + value : value;
}

template <class T>
void EmbedForward(const EmbedForwardArgs<T>& a) {
  for (size_t t = 0; t < a.rows; ++t) {
    const size_t position = a.position_T == nullptr ? t : static_cast<size_t>(std::max(a.position_T[t], 0));
    for (size_t i = 0; i < a.d; ++i) {
      T& y = a.y_TD[t * a.d + i];
      y = T(0);
      if (a.ids_T[t] < 0) continue;
      y = a.scale * a.table_MD[static_cast<size_t>(a.ids_T[t]) * a.d + i];
      if (a.positions_TD != nullptr) y = y + a.positions_TD[position * a.d + i];
    }
  }
}

template <class T>
void ScatterAdd(const ScatterAddArgs<T>& a) {
  for (size_t t = 0; t < a.rows; ++t) {
    if (a.ids_T[t] < 0) continue;
    for (size_t i = 0; i < a.d; ++i) {
      T& row = a.table_MD[static_cast<size_t>(a.ids_T[t]) * a.ldtable + i];
      row = row + a.scale * a.dx_TD[t * a.lddx + i];
    }
  }
}

inline void ScaleHalf(const ScaleHalfArgs& a) {
  for (size_t i = 0; i < a.n; ++i) Put(a.y[i], a.a * ToFloat(a.x[i]), a.store);
}

inline void MultiplyHalf(const MultiplyHalfArgs& a) {
  for (size_t j = 0; j < a.n; ++j) {
    float sum = a.bias_N != nullptr ? a.bias_N[j] : 0.0f;
    for (size_t i = 0; i < a.k; ++i) sum += a.x_K[i] * ToFloat(a.w_NK[j * a.ldw + i]);
    a.y_N[j] = sum;
  }
}

inline void EmbedHalf(const EmbedHalfArgs& a) {
  const auto at = [&](const float* floats, const Half* halves, size_t i) {
    return halves != nullptr ? ToFloat(halves[i]) : floats[i];
  };
  const bool has_positions = a.positions_TD != nullptr || a.half_positions_TD != nullptr;
  for (size_t t = 0; t < a.rows; ++t) {
    const size_t row = static_cast<size_t>(std::max(a.ids_T[t], 0)) * a.d;
    for (size_t i = 0; i < a.d; ++i) {
      float& y = a.y_TD[t * a.d + i];
      y = a.ids_T[t] < 0 ? 0.0f : a.scale * at(a.table_MD, a.half_table_MD, row + i);
      if (a.ids_T[t] >= 0 && has_positions) y += at(a.positions_TD, a.half_positions_TD, t * a.d + i);
    }
  }
}

template <class T>
void EmbedVariance(const EmbedVarianceArgs<T>& a) {
  for (size_t t = 0; t < a.rows; ++t) {
    T variance(0);
    if (a.ids_T[t] >= 0) variance = a.scale * a.scale * a.variance_M[a.ids_T[t]] + a.position_variance;
    if (T(kMaxVariance) < variance) variance = T(kMaxVariance);
    for (size_t i = 0; i < a.d; ++i) a.y_TD[t * a.d + i] = variance;
  }
}

inline void PositionIds(const PositionIdsArgs& a) {
  for (size_t b = 0; b < a.records.num_records; ++b) {
    const size_t begin = a.records.begin(b), rows = a.records.size(b), first = a.end == 0 ? 0 : a.end - rows;
    for (size_t t = 0; t < rows; ++t)
      a.position_R[begin + t] = a.ids_R[begin + t] < 0 ? -1 : static_cast<int32_t>(first + t);
  }
}

inline void Clear(const ClearArgs& a) {
  if (a.bytes > 0) std::memset(a.y, 0, a.bytes);
}

template <class T>
void CopyRows(const CopyRowsArgs<T>& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    const size_t from = a.from_R != nullptr ? a.from_R[r] : r, to = a.to_R != nullptr ? a.to_R[r] : r;
    std::copy_n(a.x_RD + from * a.ldx, a.d, a.y_RD + to * a.ldy);
  }
}

template <class T>
void GatherColumns(const GatherColumnsArgs<T>& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t j = 0; j < a.columns; ++j) {
      const int64_t column = int64_t{a.column_J[j]} - a.first;
      if (column >= 0 && column < static_cast<int64_t>(a.n))
        a.y_RJ[r * a.ldy + j] = a.x_RN[r * a.ldx + static_cast<size_t>(column)];
    }
  }
}

constexpr uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

inline void DrawKeep(const DrawKeepArgs& a) {
  for (size_t b = 0; b < a.records.num_records; ++b) {
    const uint64_t seed = MakeOptions(a.options_B, b).dropout_seed;
    const uint64_t key = Mix(seed + 0x9e3779b97f4a7c15ull * (a.site + 1));
    uint8_t* keep = a.keep_RW + a.records.begin(b) * a.width;
    const size_t n = a.records.size(b) * a.width;
    for (size_t i = 0; i < n; i += 4) {
      const uint64_t bits = Mix(key + 0x9e3779b97f4a7c15ull * (i / 4));
      for (size_t lane = 0; lane < 4 && i + lane < n; ++lane)
        keep[i + lane] = static_cast<uint32_t>((bits >> (16 * lane)) & 0xffff) >= a.threshold ? 1 : 0;
    }
  }
}

}  // namespace wisp::kernels::reference

#endif  // WISP_KERNELS_REFERENCE_ROWS_H_
