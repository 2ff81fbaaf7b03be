#include "runtime/methods/sparse/step_rows.h"

#include <algorithm>
#include <numeric>

#include "runtime/core/capacity.h"
#include "runtime/train/privacy_plan.h"

namespace wisp {

StepRows::Counts::Counts(const Architecture& a, const TrainingOptions& o)
    : places(NamesRows(o.method) ? o.sparse.rows.size() : a.num_items),
      negatives(o.num_negatives),
      most(std::min<size_t>(a.num_items, places + negatives)),
      known(IsAdaptive(o.method) ? 0 : most) {}

StepRows::StepRows(const Architecture& a, const TrainingOptions& o) : counts_(a, o) {
  if (NamesRows(o.method)) {
    fixed_.emplace(a.num_items);
    fixed_->Reserve(o.sparse.rows.size());
    for (int32_t row : o.sparse.rows) fixed_->Insert(row);
  }
  if (IsAdaptive(o.method)) map_.emplace(a.num_items, MapOptions(o), fixed_ ? &*fixed_ : nullptr, a.max_length);
  if (map_) return;
  if (!fixed_) {
    rows_.resize(a.num_items);
    std::iota(rows_.begin(), rows_.end(), 0);
  } else if (differ()) {
    ReallocateEmpty(rows_, counts_.places + counts_.negatives);
  }
}

void StepRows::Choose(const StepBatch& batch, privacy::RandomStream& noise) {
  if (!differ()) return;
  if (map_) {
    map_->Select(batch.records, noise, rows_);
    ReserveCapacity(rows_, rows_.size() + batch.negatives.size(), counts_.places + counts_.negatives);
  } else {
    rows_.assign(fixed_->rows().begin(), fixed_->rows().end());
  }
  rows_.insert(rows_.end(), batch.negatives.begin(), batch.negatives.end());
  std::sort(rows_.begin(), rows_.end());
  rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
}

// Any row may become a negative, so only a run without negatives has fixed rows.
std::span<const int32_t> StepRows::fixed() const {
  if (fixed_ && counts_.negatives == 0) return fixed_->rows();
  return {};
}

size_t StepRows::size_bytes() const {
  return (map_ ? map_->size_bytes() : 0) + (fixed_ ? fixed_->size_bytes() : 0) + rows_.capacity() * sizeof(int32_t);
}

size_t StepRows::PlanBytes(const Architecture& a, const TrainingOptions& o) {
  const Counts counts(a, o);
  const size_t fixed = NamesRows(o.method) ? RowSet::PlanBytes(a.num_items, counts.places) : 0;
  if (IsAdaptive(o.method)) return fixed + ContributionMap::PlanBytes(a.num_items, a.max_length, 0);
  if (!NamesRows(o.method)) return a.num_items * sizeof(int32_t);
  return fixed + (o.num_negatives > 0 ? (counts.places + counts.negatives) * sizeof(int32_t) : 0);
}

size_t StepRows::GrowthAtMost(const Architecture& a, const TrainingOptions& o, size_t touched, size_t selected) {
  const Counts counts(a, o);
  return MostCapacity(selected + counts.negatives, counts.places + counts.negatives) * sizeof(int32_t) +
         ContributionMap::PlanBytes(a.num_items, a.max_length, MostCapacity(touched, counts.places)) -
         ContributionMap::PlanBytes(a.num_items, a.max_length, 0);
}

ContributionMapOptions MapOptions(const TrainingOptions& o) {
  return {.clipping_norm = o.sparse.map_clipping_norm,
          .threshold = o.sparse.map_threshold,
          .noise_multiplier = SplitNoise(o.privacy.noise_multiplier, o.sparse.map_noise_ratio).map};
}

}  // namespace wisp
