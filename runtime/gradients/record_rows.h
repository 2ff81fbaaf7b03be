// The releases of several records on a device. Each record has one row, which is bounded as a whole and added to the
// exact sum. Every method that takes records together ends with this step.
//
//   rows.Begin(batch.size(), layout.size());
//   FormRecordOuters(ops, factor, rows.at(offset), rows.stride());   // fills the rows
//   std::span<const RecordOutcome> outcomes = rows.Finish();
//
// A record's contribution depends only on its row, not on the records that pass with it.
#ifndef WISP_RUNTIME_GRADIENTS_RECORD_ROWS_H_
#define WISP_RUNTIME_GRADIENTS_RECORD_ROWS_H_

#include <span>
#include <vector>

#include "runtime/gradients/clipping.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/gradients/record_gradients.h"

namespace wisp {

class RecordRows {
 public:
  // Each row has at most `row_size` floats. `device` and `sum` must outlive this object. The device must have the ops
  // of kernels/formed.h.
  RecordRows(const kernels::Device& device, size_t max_records, size_t row_size, const ClipRule& clip,
             GridGradientSum& sum);

  // Starts with `num_records` rows of `row_size` floats, all zero.
  void Begin(size_t num_records, size_t row_size);
  float* at(size_t offset) const { return rows_.data() + offset; }  // in the row of the first record
  size_t stride() const { return row_size_; }                       // floats from one record's row to the next
  size_t num_records() const { return num_records_; }

  // Bounds each row and adds it to the first coordinates of the sum. With `slots`, the last slots * d floats of each
  // row go to the coordinates that the slots name. Outcomes are valid until the next call.
  std::span<const RecordOutcome> Finish(const GridGradientSum::Slots& slots = {});
  // Erases all records' data from memory.
  void Forget();

  size_t size_bytes() const;
  // Returns size_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(size_t max_records, size_t row_size);

 private:
  void Add(const GridGradientSum::Slots& slots, int32_t sign);
  void TakeBack(const GridGradientSum::Slots& slots);

  const kernels::OpTable* ops_;
  ClipRule clip_;
  GridGradientSum* sum_;
  AlignedArray<float> rows_;
  size_t num_records_ = 0, row_size_ = 0, most_used_ = 0;  // most_used_: the most floats in use since Forget
  std::vector<RecordOutcome> outcomes_;
  std::vector<float> steps_B_;                      // clip factors, in steps of the sum's grid
  std::vector<double> squares_B_, slot_squares_B_;  // of the norms, later of what was added
};

// Adds each record's gradient of a factor to its row, beginning at `at` in the first record's row. `stride`: floats
// from one record's row to the next. A factor with a RowNorm needs `scratch` of FormOuterScratch(n, k) floats.
void FormRecordOuters(const kernels::OpTable& ops, const OuterFactor& factor, float* at, size_t stride, float* scratch);
void FormRecordRows(const kernels::OpTable& ops, const RowsFactor& factor, float* at, size_t stride);
void FormRecordVectors(const kernels::OpTable& ops, const VectorFactor& factor, size_t num_records, float* at,
                       size_t stride);

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_RECORD_ROWS_H_
