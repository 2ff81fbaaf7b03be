// What several records release, written out on a device: a row for each, which is bounded as a whole and added to the
// exact sum. The end of every method that takes records at once.
//
//   rows.Begin(batch.size(), layout.size());
//   FormOuterOfRecords(ops, factor, rows.at(offset), rows.stride());   // whatever belongs into the rows
//   std::span<const RecordOutcome> outcomes = rows.Finish();
//
// What a record adds depends on nothing but its row: not on the records that pass with it.
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
  // Rows of at most `row_size` floats. `device` and `sum` must outlive this object. The device has the ops of
  // kernels/formed.h.
  RecordRows(const kernels::Device& device, size_t max_records, size_t row_size, const ClipRule& clip,
             GridGradientSum& sum);

  // Rows of so many floats, all zero.
  void Begin(size_t num_records, size_t row_size);
  float* at(size_t offset) const { return rows_.data() + offset; }  // of the first record
  size_t stride() const { return row_size_; }                       // floats from a record's row to the next one's
  size_t num_records() const { return num_records_; }

  // Bounds each row and adds it to the sum's first coordinates. With `slots` the last slots * d floats of a row, which
  // has no more than these and what lies before them, go where they say. Valid until the next call.
  std::span<const RecordOutcome> Finish(const GridGradientSum::Slots& slots = {});
  // Nothing of any record stays in memory.
  void Forget();

  size_t size_bytes() const;
  // What size_bytes of such an object will be; allocates none of it.
  static size_t PlanBytes(size_t max_records, size_t row_size);

 private:
  void Add(const GridGradientSum::Slots& slots, int32_t sign);
  void TakeBack(const GridGradientSum::Slots& slots);

  const kernels::OpTable* ops_;
  ClipRule clip_;
  GridGradientSum* sum_;
  AlignedArray<float> rows_;
  size_t num_records_ = 0, row_size_ = 0, most_used_ = 0;  // floats since Forget
  std::vector<RecordOutcome> outcomes_;
  std::vector<float> steps_B_;                      // clip factors, in steps of the sum's grid
  std::vector<double> squares_B_, slot_squares_B_;  // of norms, then of what was added
};

// Each record's gradient of a factor, added to what starts at `at` in the first record's row. `stride`: floats from a
// record's row to the next one's. A factor with a RowNorm needs `scratch`, of FormOuterScratch(n, k) floats.
void FormOuterOfRecords(const kernels::OpTable& ops, const OuterFactor& factor, float* at, size_t stride,
                        float* scratch);
void FormRowsOfRecords(const kernels::OpTable& ops, const RowsFactor& factor, float* at, size_t stride);
void FormVectorOfRecords(const kernels::OpTable& ops, const VectorFactor& factor, size_t num_records, float* at,
                         size_t stride);

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_RECORD_ROWS_H_
