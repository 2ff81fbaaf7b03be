// The common interface of all gradient methods: take a record's factors, bound the record's norm, add it to a sum.
//
//   gradients->BeginRecord(record.inputs);
//   graph.Backward(context, record, *gradients);
//   RecordOutcome outcome = gradients->FinishRecord(replay);
//
// On the host, records are taken one after another (RecordGradients). On a device a call costs more than a record's
// share of the work, so records that pass together are taken together (BatchGradients). One object for each worker.
// Nothing is allocated after construction.
#ifndef WISP_RUNTIME_GRADIENTS_RECORD_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_RECORD_GRADIENTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/clipping.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/layers/factors.h"
#include "runtime/layers/record.h"

namespace wisp {

struct RecordOutcome {
  double norm = 0;     // ||g_i||; 0 if no norm was computed (ClipKind::kNone)
  double factor = 0;   // c_i
  bool finite = true;  // false: the norm was not finite, and nothing was added
  bool within = true;  // false: after rounding the clipped gradient exceeded its bound, and it was subtracted again
};

// Emits the Outer and Vector factors of the head a second time, for the current record.
class HeadReplay {
 public:
  virtual ~HeadReplay() = default;
  virtual void Replay(FactorSink& sink) = 0;
};

class RecordGradients : public FactorSink {
 public:
  // `input_ids` are the record's items, in the order in which the item table's Rows factor will name them.
  virtual void BeginRecord(std::span<const int32_t> input_ids) = 0;
  // Computes the norm and adds the clipped gradient.
  virtual RecordOutcome FinishRecord(HeadReplay& replay) = 0;
  virtual size_t scratch_bytes() const = 0;
};

// A method that takes all records of a pass together: every factor covers all of them. A factor's data stays valid
// until FinishRecords has returned. The exception is dy of a block of the head, which stays valid until the next factor
// comes.
class BatchGradients : public FactorSink {
 public:
  // The parameters of a method. What it refers to must outlive the method.
  struct Setup {
    const std::vector<ParameterSpec>& parameters;
    const TrainedSet& trained;  // the sum covers these parameters
    size_t max_records;
    bool norms_head_rows = false;  // the head's factors have a RowNorm
  };

  // Takes the options of each of the next records. They stay valid until FinishRecords has returned.
  virtual void TakeOptions(const kernels::RecordOptions* /*options_B*/) {}
  // Announces the records whose factors come next, in their order. `records` stay valid until FinishRecords has
  // returned.
  virtual void BeginRecords(Batch records) = 0;
  // Computes each record's norm and adds its clipped gradient. Returns outcomes in the order of the records, valid
  // until the next call.
  virtual std::span<const RecordOutcome> FinishRecords() = 0;
  // Erases what a device's memory holds of the records.
  virtual void Forget() {}
  virtual size_t scratch_bytes() const = 0;
};

// One worker's method: one record at a time, or batches.
class Gradients {
 public:
  Gradients(RecordGradients& gradients) : one_by_one_(&gradients) {}
  Gradients(BatchGradients& gradients) : at_once_(&gradients) {}

  // Exactly one of the two is null.
  RecordGradients* one_by_one() const { return one_by_one_; }
  BatchGradients* at_once() const { return at_once_; }
  size_t scratch_bytes() const {
    return one_by_one_ != nullptr ? one_by_one_->scratch_bytes() : at_once_->scratch_bytes();
  }

 private:
  RecordGradients* one_by_one_ = nullptr;
  BatchGradients* at_once_ = nullptr;
};

// A worker's method, with its owner.
class OwnedGradients {
 public:
  explicit OwnedGradients(std::unique_ptr<RecordGradients> gradients) : one_by_one_(std::move(gradients)) {}
  explicit OwnedGradients(std::unique_ptr<BatchGradients> gradients) : at_once_(std::move(gradients)) {}
  Gradients get() const { return one_by_one_ ? Gradients(*one_by_one_) : Gradients(*at_once_); }
  void Forget() {
    if (at_once_) at_once_->Forget();
  }

 private:
  std::unique_ptr<RecordGradients> one_by_one_;
  std::unique_ptr<BatchGradients> at_once_;
};

// The outcome of a record with this norm, before it is added.
inline RecordOutcome MakeOutcome(const ClipRule& clip, double norm) {
  return {.norm = norm, .factor = clip.Factor(norm), .finite = std::isfinite(norm)};
}

// Finishes a record: computes the clip factor from the norm, adds the gradient, and checks what was really added.
// `add(factor, sign)` adds sign * factor * g to `sum` and returns the sum of squares that it added.
template <class Add>
RecordOutcome ClipAndAdd(const ClipRule& clip, double norm, const GradientSum& sum, Add&& add) {
  RecordOutcome outcome = MakeOutcome(clip, norm);
  if (!outcome.finite) return outcome;
  const double squares = add(static_cast<float>(outcome.factor), 1);
  // Check the bound on what was really added, not on what the norm promised.
  if (!(squares <= sum.MaxSumSquares())) {
    add(static_cast<float>(outcome.factor), -1);
    outcome.within = false;
    outcome.factor = 0;
  }
  return outcome;
}

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_RECORD_GRADIENTS_H_
