// The sink of DP-FEST and DP-AdaFEST (docs/algorithms.md, section 5). The gradient of one table is kept as rows,
// masked, then clipped.
//
// Table rows outside a given set get no gradient, neither from the input use nor from the output use. They are removed
// before the norm, so what is clipped is what is added. With a full softmax, the columns of dZ that belong to the set
// are gathered from each block. With a sampled softmax, only rows of negatives and targets exist. All other parameters
// are dense and formed as in PhantomGradients.
//
// The sum holds the dense parameters first, at SparseLayout::dense, then one row of `d` numbers for each slot of the
// set.
#ifndef WISP_RUNTIME_METHODS_SPARSE_SPARSE_GRADIENTS_H_
#define WISP_RUNTIME_METHODS_SPARSE_SPARSE_GRADIENTS_H_

#include <span>
#include <vector>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/record_gradients.h"
#include "runtime/gradients/row_set.h"

namespace wisp {

// The offsets in the sum. The table is the first parameter, as in every tied recommender, and it is trained.
class SparseLayout {
 public:
  SparseLayout(const std::vector<ParameterSpec>& parameters, const TrainedSet& trained)
      : trained_(&trained),
        base_(AlignedSize(parameters[0].size())),
        dense_size_(trained.size() - base_),
        d_(parameters[0].cols) {}
  size_t dense(size_t parameter) const { return trained_->offset(parameter) - base_; }
  size_t dense_size() const { return dense_size_; }
  size_t slot(size_t slot) const { return dense_size_ + slot * d_; }
  size_t size(size_t num_slots) const { return dense_size_ + num_slots * d_; }
  size_t d() const { return d_; }

 private:
  const TrainedSet* trained_;
  size_t base_, dense_size_, d_;
};

class SparseGradients : public RecordGradients {
 public:
  struct Setup {
    const std::vector<ParameterSpec>& parameters;
    const TrainedSet& trained;
    size_t max_rows;  // positions of the longest record
    size_t worker;
    // Sizes to allocate for: the most table rows that one record names, whatever the set; and the columns of a head's
    // block. `gathers` says that some of these may lie outside the set.
    size_t max_record_rows = 0, block_columns = 0;
    bool norms_head_rows = false;  // the head's factors have a RowNorm
    bool gathers = true;
  };
  // `rows` is the set. It may change between steps but not while a record is open. It must be ascending with a full
  // softmax. `ops`, `rows` and `sum` (at least SparseLayout::size(rows.size())) must outlive this object.
  SparseGradients(const kernels::Device& device, const Setup& setup, const RowSet& rows, const ClipRule& clip,
                  GradientSum& sum);

  // Replaces the memory by space for sets of up to `rows` rows. No record may be open. Records on such sets allocate
  // nothing.
  void ReserveCapacity(size_t rows);
  // Bytes of an object with space for `rows` rows. Allocates nothing.
  static size_t PlanBytes(const Setup& setup, size_t rows);

  void BeginRecord(std::span<const int32_t> input_ids) override;
  bool Wants(size_t parameter) const override { return setup_.trained.contains(parameter); }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  RecordOutcome FinishRecord(HeadReplay& replay) override;
  size_t scratch_bytes() const override;

 private:
  void TableOuter(const OuterFactor& factor);
  void TableRows(const RowsFactor& factor);
  // Appends one row to the record and returns its index.
  size_t Append(size_t slot);
  void NormBackward(const OuterFactor& factor, float* dw);
  double Accumulate(float factor, int32_t sign);

  const kernels::OpTable* ops_;
  SparseLayout layout_;
  const RowSet* set_;
  ClipRule clip_;
  GradientSum* sum_;
  // The number of elements of each list for a given number of rows.
  struct Room {
    size_t record_rows, columns, picked, index, normed;
  };
  static Room RoomFor(const Setup& setup, size_t rows);

  Setup setup_;
  AlignedArray<float> dense_;           // formed gradients
  std::vector<float> rows_, columns_;   // the record's table rows; gathered columns of dZ
  std::vector<float> normed_;           // for rows that pass a norm: their gradient after it
  std::vector<uint32_t> slots_;         // of each row in rows_
  std::vector<int32_t> picked_;         // columns of a block that are in the set
  std::vector<int32_t> index_of_slot_;  // the index of a slot's row in rows_; -1: it has none yet
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_SPARSE_SPARSE_GRADIENTS_H_
