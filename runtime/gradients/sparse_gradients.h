// The sink of DP-FEST and DP-AdaFEST (docs/algorithms.md, section 5): the gradient of one table is kept by rows,
// masked, then clipped.
//
// Rows of the table outside a given set get nothing, from its input use and from its output use alike, and they are
// taken away before the norm: what is clipped is what is added. With a full softmax the columns of dZ that belong to
// the set are gathered from each block; with a sampled softmax only the negatives' and the targets' rows exist. All
// other parameters are dense and formed as in PhantomGradients.
//
// The sum: dense parameters first, at SparseLayout::dense, then one row of `d` numbers for each slot of the
// set.
#ifndef WISP_RUNTIME_GRADIENTS_SPARSE_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_SPARSE_GRADIENTS_H_

#include <span>
#include <vector>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/record_gradients.h"
#include "runtime/gradients/row_set.h"

namespace wisp {

// Where things lie in the sum. The table is the first parameter, as in every tied recommender, and it is trained.
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
    // What room is made for: rows of the table that a record names at most, whatever the set; the columns of a head's
    // block, and whether some of them may lie outside of the set.
    size_t max_record_rows = 0, block_columns = 0;
    bool norms_head_rows = false;  // the head's factors have a RowNorm
    bool gathers = true;
  };
  // `rows`: the set, which may change between steps but not while a record is open; ascending when the head is a full
  // softmax. `ops`, `rows` and `sum` (of SparseLayout::size(rows.size()) at least) must outlive this object.
  SparseGradients(const kernels::Device& device, const Setup& setup, const RowSet& rows, const ClipRule& clip,
                  GradientSum& sum);

  // Room for sets of up to `rows` rows, in place of what there is; no record is open. Records on such sets allocate
  // nothing.
  void MakeRoom(size_t rows);
  // What an object with room for so many rows holds; allocates none of it.
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
  // Room for one more row of the record, in the order of their coming; returns its index.
  size_t Append(size_t slot);
  void NormBackward(const OuterFactor& factor, float* dw);
  double Accumulate(float factor, int32_t sign);

  const kernels::OpTable* ops_;
  SparseLayout layout_;
  const RowSet* set_;
  ClipRule clip_;
  GradientSum* sum_;
  // The elements of each list with room for so many rows.
  struct Room {
    size_t record_rows, columns, picked, index, normed;
  };
  static Room RoomFor(const Setup& setup, size_t rows);

  Setup setup_;
  AlignedArray<float> dense_;           // formed gradients
  std::vector<float> rows_, columns_;   // the record's rows of the table; gathered columns of dZ
  std::vector<float> normed_;           // of rows that pass a norm: their gradient behind it
  std::vector<uint32_t> slots_;         // of rows_
  std::vector<int32_t> picked_;         // columns of a block that are in the set
  std::vector<int32_t> index_of_slot_;  // where a slot lies in rows_, -1: not yet
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_SPARSE_GRADIENTS_H_
