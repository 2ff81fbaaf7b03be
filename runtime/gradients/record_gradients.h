// What every gradient method has in common: it takes one record's factors, bounds the record's norm, adds it to a sum.
//
//   gradients->BeginRecord(record.inputs);
//   graph.Backward(context, record, *gradients);
//   RecordOutcome outcome = gradients->FinishRecord(replay);
//
// One object per worker; records one after the other. No allocation after construction.
#ifndef WISP_RUNTIME_GRADIENTS_RECORD_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_RECORD_GRADIENTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/gradients/clipping.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/layers/factors.h"

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

// The end of a record: the clip factor from the norm, the addition, and the check of what was really added.
// `add(factor, sign)` adds sign * factor * g to `sum` and returns the sum of squares of what it added.
template <class Add>
RecordOutcome ClipAndAdd(const ClipRule& clip, double norm, const GradientSum& sum, Add&& add) {
  RecordOutcome outcome{.norm = norm, .factor = clip.Factor(norm), .finite = std::isfinite(norm)};
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
