// DP-FEST, DP-AdaFEST and sampled softmax on a device: SparseGradients of all records that pass at once.
//
// Rows of the table outside of the step's set get nothing, and are taken away before the norm. What a record has, in a
// row of RecordRows: its dense parameters, the block, and then rows that are its own.
//   - the block: the first rows of the set, the same for every record. With a full softmax all of the set, ascending;
//     with a sampled one the negatives.
//   - rows of its own, with a sampled softmax: targets and inputs in the set that are no negatives, each once. Where in
//     the sum they belong is said with them, for each record.
// The host knows the records' items, and so which row each belongs to: ops get these numbers in place of items.
#ifndef WISP_RUNTIME_GRADIENTS_SPARSE_BATCH_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_SPARSE_BATCH_GRADIENTS_H_

#include <span>
#include <vector>

#include "runtime/gradients/record_rows.h"
#include "runtime/gradients/row_set.h"
#include "runtime/gradients/sparse_gradients.h"

namespace wisp {

class SparseBatchGradients final : public BatchGradients {
 public:
  struct SparseSetup {
    Setup batch;
    size_t max_length;     // positions of a record
    size_t max_rows;       // positions of all that pass at once
    size_t most_set_rows;  // of any step's set
    size_t num_negatives;  // 0: full softmax
  };
  // `rows`: the set, in the order of the sum: the block first. It changes between steps alone, and then BeginStep says
  // so. `device`, `rows` and `sum` must outlive this object.
  SparseBatchGradients(const kernels::Device& device, const SparseSetup& setup, const RowSet& rows,
                       const ClipRule& clip, GridGradientSum& sum);

  // The set is another one now.
  void BeginStep();
  // Its rows in their order, in the device's memory.
  const uint32_t* set_rows() const { return set_rows_.data(); }

  void BeginRecords(Batch records) override;
  bool Wants(size_t parameter) const override { return setup_.batch.trained.contains(parameter); }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  std::span<const RecordOutcome> FinishRecords() override;
  // Nothing of any record stays in memory.
  void Forget();

  size_t scratch_bytes() const override;
  // What scratch_bytes of such an object will be; allocates none of it.
  static size_t PlanBytes(const SparseSetup& setup);
  // Floats of the longest row of one record: of that many gradients is the room made.
  static size_t MostRowFloats(const SparseSetup& setup);

 private:
  // Rows of the table that a record has room for, beside the block.
  static size_t OwnRows(const SparseSetup& setup);
  static size_t MostBlockRowsOf(const SparseSetup& setup);
  size_t block_rows() const { return is_sampled() ? setup_.num_negatives : set_->size(); }
  bool is_sampled() const { return setup_.num_negatives > 0; }
  size_t FormOwnRows(const Record& record, size_t first, size_t b);
  int32_t RowOf(int32_t item, size_t b);
  void TableOuter(const OuterFactor& factor);
  OuterFactor OfTheSet(const OuterFactor& factor, size_t first, size_t columns);

  kernels::Device device_;
  const kernels::OpTable* ops_;
  SparseSetup setup_;
  SparseLayout layout_;
  const RowSet* set_;
  RecordRows rows_;
  // On the device: the set, its rows' places of each position, rows of their own in the sum.
  AlignedArray<uint32_t> set_rows_;
  AlignedArray<int32_t> inputs_, targets_, slots_;
  AlignedArray<float> columns_;                             // of a block of the head, those that belong to the set
  AlignedArray<float> normed_, normed_rows_, normed_rstd_;  // of factors with a RowNorm
  // The same on the host, on their way.
  std::vector<int32_t> host_inputs_, host_targets_, host_slots_;
  std::vector<int32_t> place_of_slot_;  // of a record that is entered: where a slot is among its own rows, -1: not yet
  std::vector<int32_t> own_slots_;      // of it, in the order of their coming
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_SPARSE_BATCH_GRADIENTS_H_
