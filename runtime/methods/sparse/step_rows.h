// The rows of the item table that a step sums, noises and updates: all of them (ordinary and phantom training with a
// sampled softmax), a fixed set (FEST), the rows that the contribution map selects each step (AdaFEST), or those within
// a fixed set (AdaFEST+). A sampled softmax's negatives always belong to it, because they are sampled without the data.
#ifndef WISP_RUNTIME_METHODS_SPARSE_STEP_ROWS_H_
#define WISP_RUNTIME_METHODS_SPARSE_STEP_ROWS_H_

#include <optional>
#include <span>
#include <vector>

#include "runtime/gradients/row_set.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/methods/sparse/contribution_map.h"
#include "runtime/train/gradient_method.h"
#include "runtime/train/options.h"

namespace wisp {

class StepRows {
 public:
  // Numbers of rows for which memory is reserved.
  struct Counts {
    Counts(const Architecture& architecture, const TrainingOptions& options);
    size_t places;     // rows that may be trained, without negatives
    size_t negatives;  // negatives of a step
    size_t most;       // most rows of a step, whatever is selected
    size_t known;      // rows reserved before the first step: all, unless rows are selected at every step
  };

  StepRows(const Architecture& architecture, const TrainingOptions& options);

  // Chooses the rows of a step, ascending; `noise` is for the map. If rows do not differ between steps, this need not
  // be called.
  void Choose(const StepBatch& batch, privacy::RandomStream& noise);
  bool selects() const { return map_.has_value(); }                                      // by the batch's records
  bool differ() const { return map_.has_value() || (fixed_ && counts_.negatives > 0); }  // between steps
  std::span<const int32_t> rows() const { return fixed_ && !differ() ? fixed_->rows() : rows_; }
  // The rows that any step may change; empty: all.
  std::span<const int32_t> fixed() const;
  const Counts& counts() const { return counts_; }

  size_t size_bytes() const;
  // PlanBytes: size_bytes() of an object with these arguments before the first step. GrowthAtMost: its largest growth
  // if rows are selected, for `touched` rows that records touch, of which `selected` are selected.
  static size_t PlanBytes(const Architecture& architecture, const TrainingOptions& options);
  static size_t GrowthAtMost(const Architecture& architecture, const TrainingOptions& options, size_t touched,
                             size_t selected);

 private:
  Counts counts_;
  std::optional<RowSet> fixed_;  // FEST, AdaFEST+
  std::optional<ContributionMap> map_;
  std::vector<int32_t> rows_;
};

ContributionMapOptions MapOptions(const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_SPARSE_STEP_ROWS_H_
