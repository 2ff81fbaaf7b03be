// Which rows of the item table a step sums, noises and steps: all (ordinary and phantom training with a sampled
// softmax), a fixed set (FEST), what the contribution map selects each step (AdaFEST), that within a fixed set
// (AdaFEST+). A sampled softmax's negatives always belong to it, as they are drawn without the data.
#ifndef WISP_RUNTIME_TRAIN_RELEASE_STEP_ROWS_H_
#define WISP_RUNTIME_TRAIN_RELEASE_STEP_ROWS_H_

#include <optional>
#include <span>
#include <vector>

#include "runtime/gradients/row_set.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/options.h"
#include "runtime/train/release/contribution_map.h"
#include "runtime/train/release/step_release.h"

namespace wisp {

class StepRows {
 public:
  // How many rows there are to make room for.
  struct Counts {
    Counts(const Architecture& architecture, const TrainingOptions& options);
    size_t places;     // rows that may be trained, negatives aside
    size_t negatives;  // of a step
    size_t most;       // rows of a step, whatever is selected
    size_t known;      // rows that room is made for before the first step: all, where none are selected step by step
  };

  StepRows(const Architecture& architecture, const TrainingOptions& options);

  // The rows of a step, ascending; `noise` is for the map. Without a call they are those of every step, where steps do
  // not differ.
  void Choose(const StepBatch& batch, privacy::RandomStream& noise);
  bool differ() const { return map_.has_value() || (fixed_ && counts_.negatives > 0); }  // from step to step
  std::span<const int32_t> rows() const { return fixed_ && !differ() ? fixed_->rows() : rows_; }
  // The rows that any step may change; empty: all.
  std::span<const int32_t> fixed() const;
  const Counts& counts() const { return counts_; }

  size_t size_bytes() const;
  // What size_bytes of such an object is before the first step, and what it may grow by where rows are selected: for
  // `touched` rows that records touch, and `selected` of them.
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

#endif  // WISP_RUNTIME_TRAIN_RELEASE_STEP_ROWS_H_
