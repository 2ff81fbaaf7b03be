// What every gradient method has in common: it takes records' factors, bounds each record's norm, adds them to a sum.
//
//   gradients->BeginRecord(record.inputs);
//   graph.Backward(context, record, *gradients);
//   RecordOutcome outcome = gradients->FinishRecord(replay);
//
// On the host records are taken one after the other (RecordGradients). On a device, where a call costs more than a
// record's share of it, those that pass together are taken at once (BatchGradients).
// One object per worker. No allocation after construction.
#ifndef WISP_RUNTIME_GRADIENTS_RECORD_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_RECORD_GRADIENTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/clipping.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/layers/factors.h"
#include "runtime/layers/record.h"

namespace wisp {

struct RecordOutcome {
  double norm = 0;     // ||g_i||; 0 where it was not asked for (ClipKind::kNone)
  double factor = 0;   // c_i
  bool finite = true;  // false: the norm was not finite, nothing was added
  bool within = true;  // false: the clipped gradient exceeded its bound after rounding and was taken away again
};

// Emits the head's Outer and Vector factors of the current record once more.
class HeadReplay {
 public:
  virtual ~HeadReplay() = default;
  virtual void Replay(FactorSink& sink) = 0;
};

class RecordGradients : public FactorSink {
 public:
  // `input_ids` are the record's items, in the order in which the Rows factor of the item table will name them.
  virtual void BeginRecord(std::span<const int32_t> input_ids) = 0;
  // Takes the norm and adds the clipped gradient.
  virtual RecordOutcome FinishRecord(HeadReplay& replay) = 0;
  virtual size_t scratch_bytes() const = 0;
};

// The same of all records that pass together: every factor is of all of them. What a factor points at stays until
// FinishRecords has returned, but for dy of a block of the head, which stays until the next factor comes.
class BatchGradients : public FactorSink {
 public:
  // What such an object is made for; what it names must outlive the object.
  struct Setup {
    const std::vector<ParameterSpec>& parameters;
    const TrainedSet& trained;  // the sum spans these
    size_t max_records;
    bool norms_head_rows = false;  // the head's factors have a RowNorm
  };

  // What each of the records that come next has for itself; stays until FinishRecords has returned.
  virtual void TakeOptions(const kernels::RecordOptions* /*options_B*/) {}
  // Those whose factors come next, in their order; `records` stay until FinishRecords has returned.
  virtual void BeginRecords(Batch records) = 0;
  // Takes each record's norm and adds its clipped gradient. In the order of the records; valid until the next call.
  virtual std::span<const RecordOutcome> FinishRecords() = 0;
  virtual size_t scratch_bytes() const = 0;
};

// One worker's method, of either kind.
class Gradients {
 public:
  Gradients(RecordGradients& gradients) : one_by_one_(&gradients) {}
  Gradients(BatchGradients& gradients) : at_once_(&gradients) {}

  // One of the two is null.
  RecordGradients* one_by_one() const { return one_by_one_; }
  BatchGradients* at_once() const { return at_once_; }
  size_t scratch_bytes() const {
    return one_by_one_ != nullptr ? one_by_one_->scratch_bytes() : at_once_->scratch_bytes();
  }

 private:
  RecordGradients* one_by_one_ = nullptr;
  BatchGradients* at_once_ = nullptr;
};

// Of a record of this norm, before it is added.
inline RecordOutcome OutcomeOf(const ClipRule& clip, double norm) {
  return {.norm = norm, .factor = clip.Factor(norm), .finite = std::isfinite(norm)};
}

// The end of a record: the clip factor from the norm, the addition, and the check of what was really added.
// `add(factor, sign)` adds sign * factor * g to `sum` and returns the sum of squares of what it added.
template <class Add>
RecordOutcome ClipAndAdd(const ClipRule& clip, double norm, const GradientSum& sum, Add&& add) {
  RecordOutcome outcome = OutcomeOf(clip, norm);
  if (!outcome.finite) return outcome;
  const double squares = add(static_cast<float>(outcome.factor), 1);
  // The bound is checked on what was really added, not on what the norm promised.
  if (!(squares <= sum.MaxSumSquares())) {
    add(static_cast<float>(outcome.factor), -1);
    outcome.within = false;
    outcome.factor = 0;
  }
  return outcome;
}

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_RECORD_GRADIENTS_H_
