// The reference for the ops that form each record's gradient: a part of reference.h.
#ifndef WISP_KERNELS_REFERENCE_FORMED_H_
#define WISP_KERNELS_REFERENCE_FORMED_H_

#include <cmath>

#include "kernels/kernels.h"

namespace wisp::kernels::reference {

template <class T>
void RecordWeightGradients(const RecordWeightGradientsArgs<T>& a) {
  for (size_t b = 0; b < a.records.num_records; ++b) {
    for (size_t i = 0; i < a.n * a.k; ++i) {
      T sum(0);
      for (size_t r = a.records.begin(b); r < a.records.begin(b) + a.records.size(b); ++r) {
        sum = sum + a.dy_RN[r * a.lddy + i / a.k] * a.x_RK[r * a.ldx + i % a.k];
      }
      a.dw_BNK[b * a.stride + i] = a.dw_BNK[b * a.stride + i] + sum;
    }
  }
}

template <class T>
void RecordScatterAdd(const RecordScatterAddArgs<T>& a) {
  for (size_t b = 0; b < a.records.num_records; ++b) {
    for (size_t r = a.records.begin(b); r < a.records.begin(b) + a.records.size(b); ++r) {
      if (a.ids_R[r] < 0) continue;
      T* row = a.table_BMD + b * a.stride + static_cast<size_t>(a.ids_R[r]) * a.d;
      for (size_t i = 0; i < a.d; ++i) row[i] = row[i] + a.scale * a.dx_RD[r * a.lddx + i];
    }
  }
}

template <class T>
void AddRows(const AddRowsArgs<T>& a) {
  for (size_t b = 0; b < a.rows; ++b) {
    for (size_t i = 0; i < a.n; ++i) a.y_BN[b * a.ldy + i] = a.y_BN[b * a.ldy + i] + a.x_BN[b * a.ldx + i];
  }
}

inline void SquaresOfRows(const SquaresOfRowsArgs<>& a) {
  for (size_t b = 0; b < a.rows; ++b) {
    a.squares_B[b] = 0;
    for (size_t i = 0; i < a.n; ++i) a.squares_B[b] += std::pow(static_cast<double>(a.x_BN[b * a.ldx + i]), 2);
  }
}

inline void AccumulateRowsOnGrid(const AccumulateRowsOnGridArgs<>& a) {
  for (size_t b = 0; b < a.rows; ++b) {
    a.squares_B[b] = 0;
    if (a.scale_B[b] == 0) continue;
    for (size_t i = 0; i < a.n; ++i) {
      const auto steps = static_cast<int64_t>(std::nearbyint(a.x_BN[b * a.ldx + i] * a.scale_B[b]));
      a.sum[i] += a.sign * steps;
      a.squares_B[b] += static_cast<double>(steps) * static_cast<double>(steps);
    }
  }
}

inline void AccumulateSlotsOnGrid(const AccumulateSlotsOnGridArgs<>& a) {
  for (size_t b = 0; b < a.rows; ++b) {
    a.squares_B[b] = 0;
    for (size_t j = 0; j < a.slots && a.scale_B[b] != 0; ++j) {
      const int32_t slot = a.slot_BJ[b * a.slots + j];
      if (slot < 0) continue;
      for (size_t i = 0; i < a.d; ++i) {
        const auto steps = static_cast<int64_t>(std::nearbyint(a.x_BJD[b * a.stride + j * a.d + i] * a.scale_B[b]));
        a.sum[static_cast<size_t>(slot) * a.d + i] += a.sign * steps;
        a.squares_B[b] += static_cast<double>(steps) * static_cast<double>(steps);
      }
    }
  }
}

}  // namespace wisp::kernels::reference

#endif  // WISP_KERNELS_REFERENCE_FORMED_H_
