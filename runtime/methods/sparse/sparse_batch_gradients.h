// DP-FEST, DP-AdaFEST and sampled softmax on a device: SparseGradients for all records that pass together.
//
// Table rows outside the step's set get no gradient; they are removed before the norm. A record's row of RecordRows
// holds its dense parameters, then the block, then rows of its own:
//   - the block: the first rows of the set, the same for every record. With a full softmax this is the whole set,
//     ascending; with a sampled softmax, the negatives.
//   - own rows, with a sampled softmax only: targets and inputs in the set that are not negatives, each once. Each
//     record states to which rows of the sum they belong.
// The host knows the records' items and so the row of each. Ops get these row numbers in place of items.
#ifndef WISP_RUNTIME_METHODS_SPARSE_SPARSE_BATCH_GRADIENTS_H_
#define WISP_RUNTIME_METHODS_SPARSE_SPARSE_BATCH_GRADIENTS_H_

#include <span>
#include <vector>

#include "runtime/gradients/record_rows.h"
#include "runtime/gradients/row_set.h"
#include "runtime/methods/sparse/sparse_gradients.h"

namespace wisp {

class SparseBatchGradients final : public BatchGradients {
 public:
  struct SparseSetup {
    Setup batch;
    size_t max_length;     // positions of one record
    size_t max_rows;       // positions of all records in a pass
    size_t most_set_rows;  // the largest set of any step
    size_t num_negatives;  // 0: full softmax
  };
  // `rows` is the set, in the order of the sum, the block first. It changes only between steps, and BeginStep must
  // follow. `device`, `rows` and `sum` must outlive this object.
  SparseBatchGradients(const kernels::Device& device, const SparseSetup& setup, const RowSet& rows,
                       const ClipRule& clip, GridGradientSum& sum);

  // Call it when the set has changed.
  void BeginStep();
  // The set's rows in their order, in the device's memory.
  const uint32_t* set_rows() const { return set_rows_.data(); }

  void BeginRecords(Batch records) override;
  bool Wants(size_t parameter) const override { return setup_.batch.trained.contains(parameter); }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  std::span<const RecordOutcome> FinishRecords() override;
  void Forget() override;

  size_t scratch_bytes() const override;
  // Returns scratch_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const SparseSetup& setup);
  // Floats of the longest row of one record. Memory is allocated for a gradient of this many.
  static size_t MostRowFloats(const SparseSetup& setup);

 private:
  // Table rows that a record has space for beside the block.
  static size_t OwnRows(const SparseSetup& setup);
  static size_t MaxBlockRows(const SparseSetup& setup);
  size_t block_rows() const { return is_sampled() ? setup_.num_negatives : set_->size(); }
  bool is_sampled() const { return setup_.num_negatives > 0; }
  size_t FormOwnRows(const Record& record, size_t first, size_t b);
  int32_t GetRow(int32_t item, size_t b);
  void TableOuter(const OuterFactor& factor);
  OuterFactor RestrictToSet(const OuterFactor& factor, size_t first, size_t columns);

  kernels::Device device_;
  const kernels::OpTable* ops_;
  SparseSetup setup_;
  SparseLayout layout_;
  const RowSet* set_;
  RecordRows rows_;
  // In the device's memory: the set, the row numbers of each position, and the place of own rows in the sum.
  AlignedArray<uint32_t> set_rows_;
  AlignedArray<int32_t> inputs_, targets_, slots_;
  AlignedArray<float> columns_;                             // a block of the head: the columns that belong to the set
  AlignedArray<float> normed_, normed_rows_, normed_rstd_;  // for factors with a RowNorm
  // Host copies of these, before they are copied to the device.
  std::vector<int32_t> host_inputs_, host_targets_, host_slots_;
  // for the record being entered: the index of a slot among its own rows; -1: not among them
  std::vector<int32_t> place_of_slot_;
  std::vector<int32_t> own_slots_;  // the slots of its own rows, in the order of insertion
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_SPARSE_SPARSE_BATCH_GRADIENTS_H_
