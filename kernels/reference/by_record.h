// Applies an op for one record to the rows of several records.
//
//   RecordByRecord(args, ColumnSumOneRecord);     // for the reference and for SIMD tables
#ifndef WISP_KERNELS_REFERENCE_BY_RECORD_H_
#define WISP_KERNELS_REFERENCE_BY_RECORD_H_

#include <cstddef>

#include "kernels/kernels.h"

namespace wisp::kernels::reference {

template <class T>
ColumnSumArgs<T> SliceRecordArgs(const ColumnSumArgs<T>& a, size_t b) {
  ColumnSumArgs<T> own = a;
  own.x_RN += a.records.begin(b) * a.ldx;
  own.out_N += b * a.n;
  return own;
}

// The common parts of the two norms.
template <class Args>
Args NormRecordArgs(const Args& a, size_t b) {
  const size_t begin = a.records.begin(b);
  Args own = a;
  own.dy_RD += begin * a.d;
  own.x_RD += begin * a.d;
  own.dx_RD += begin * a.d;
  own.rstd_R += begin;
  own.dgain_D += b * a.d;
  return own;
}

template <class T>
LayerNormBackwardArgs<T> SliceRecordArgs(const LayerNormBackwardArgs<T>& a, size_t b) {
  LayerNormBackwardArgs<T> own = NormRecordArgs(a, b);
  own.mean_R += a.records.begin(b);
  own.dbias_D += b * a.d;
  return own;
}

template <class T>
RmsNormBackwardArgs<T> SliceRecordArgs(const RmsNormBackwardArgs<T>& a, size_t b) {
  return NormRecordArgs(a, b);
}

// Calls of_one(args of one record) for each record.
template <class Args, class OfOne>
void RecordByRecord(const Args& a, OfOne&& of_one) {
  if (a.records.begin_B == nullptr) return of_one(a);
  for (size_t b = 0; b < a.records.num_records; ++b) {
    Args own = SliceRecordArgs(a, b);
    own.rows = a.records.size(b);
    own.records = {};
    of_one(own);
  }
}

}  // namespace wisp::kernels::reference

#endif  // WISP_KERNELS_REFERENCE_BY_RECORD_H_
