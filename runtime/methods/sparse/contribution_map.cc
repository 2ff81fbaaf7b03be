// Built for speed: loops over every row that a step touches.
#include "runtime/methods/sparse/contribution_map.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/core/capacity.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/train/popularity.h"

namespace wisp {
namespace {

constexpr double kMapSteps = 1073741824.0;  // C1 is 2^30 steps
constexpr double kMostNoise = 0x1p19;

Status Check(const char* field, double value, double most) {
  if (value > 0 && value <= most) return OkStatus();
  return InvalidArgument("contribution map: ", field, " is ", value, ", allowed is above 0 and up to ", most);
}

int64_t ThresholdInSteps(const ContributionMapOptions& o) {
  return static_cast<int64_t>(std::ceil(o.threshold / o.clipping_norm * kMapSteps));
}
uint64_t SigmaInSteps(const ContributionMapOptions& o) {
  return static_cast<uint64_t>(std::ceil(o.noise_multiplier * kMapSteps));
}

}  // namespace

Status Validate(const ContributionMapOptions& o) {
  WISP_RETURN_IF_ERROR(Check("clipping norm", o.clipping_norm, 1e6));
  WISP_RETURN_IF_ERROR(Check("noise multiplier", o.noise_multiplier, kMostNoise));
  return Check("threshold", o.threshold, kMostThresholdDeviations * o.noise_multiplier * o.clipping_norm);
}

// The probability that noise alone reaches the threshold, both in whole steps of the grid. The discrete noise equals
// round(N(0, sigma^2)) up to the accounted slack.
double ContributionMap::FalseRowChance(const ContributionMapOptions& o) {
  return privacy::UpperTail((static_cast<double>(ThresholdInSteps(o)) - 0.5) / static_cast<double>(SigmaInSteps(o)));
}

ContributionMap::ContributionMap(uint32_t num_rows, const ContributionMapOptions& o, const RowSet* allowed,
                                 size_t max_length)
    : places_(allowed != nullptr ? allowed->size() : num_rows),
      clipping_norm_(o.clipping_norm),
      allowed_(allowed),
      sigma_(SigmaInSteps(o)),
      threshold_(ThresholdInSteps(o)),
      touched_(num_rows) {
  const double p = FalseRowChance(o);
  gaps_.emplace(p);
  false_rows_ = p * static_cast<double>(places_);
  distinct_.reserve(kNamesPerPosition * max_length);
}

// Reserves memory for all rows that the batch can touch, so that counting in a step allocates nothing.
void ContributionMap::ReserveCapacity(std::span<const Record* const> batch) {
  size_t names = 0;
  for (const Record* record : batch) names += record->inputs.size() + record->targets.size();
  const size_t room = GrownCapacity(room_, std::min(names, places_), places_);
  if (room == room_) return;
  room_ = room;
  touched_.Reserve(room);
  ReallocateEmpty(counts_, room);
  ReallocateEmpty(ascending_, room);
}

void ContributionMap::Keep(int32_t row, std::vector<int32_t>& survivors) const {
  wisp::ReserveCapacity(survivors, survivors.size() + 1, places_);
  survivors.push_back(row);
}

void ContributionMap::Count(const Record& record) {
  DistinctItems(record, distinct_);
  if (allowed_ != nullptr) std::erase_if(distinct_, [this](int32_t row) { return allowed_->slot(row) < 0; });
  if (distinct_.empty()) return;
  const double share = std::min(1 / clipping_norm_, 1 / std::sqrt(static_cast<double>(distinct_.size())));
  const auto steps = static_cast<int64_t>(std::floor(kMapSteps * share * (1 - 1e-15)));
  for (int32_t row : distinct_) {
    const size_t slot = touched_.Insert(row);
    if (slot == counts_.size()) counts_.push_back(0);
    counts_[slot] += steps;
  }
}

void ContributionMap::Select(std::span<const Record* const> batch, privacy::RandomStream& noise,
                             std::vector<int32_t>& survivors) {
  survivors.clear();
  touched_.Clear();
  counts_.clear();
  ReserveCapacity(batch);
  for (const Record* record : batch) Count(*record);
  privacy::AddDiscreteGaussian(noise, sigma_, counts_);
  for (size_t slot = 0; slot < counts_.size(); ++slot) {
    if (counts_[slot] >= threshold_) Keep(touched_.rows()[slot], survivors);
  }
  SelectUntouched(noise, survivors);
  std::sort(survivors.begin(), survivors.end());
}

// Selects among the untouched rows, numbered 0, 1, 2, ... in ascending order without the touched ones: trial i is the
// i-th of them.
void ContributionMap::SelectUntouched(privacy::RandomStream& noise, std::vector<int32_t>& survivors) {
  ascending_.clear();
  // Ranks of the touched rows among all selectable rows.
  for (int32_t row : touched_.rows()) ascending_.push_back(allowed_ == nullptr ? row : allowed_->slot(row));
  std::sort(ascending_.begin(), ascending_.end());
  const uint64_t trials = places_ - ascending_.size();
  size_t passed = 0;  // touched places before the current one
  for (uint64_t i = gaps_->Next(noise); i < trials; i += 1 + gaps_->Next(noise)) {
    while (passed < ascending_.size() && static_cast<uint64_t>(ascending_[passed]) <= i + passed) ++passed;
    const uint64_t place = i + passed;
    Keep(allowed_ == nullptr ? static_cast<int32_t>(place) : allowed_->rows()[place], survivors);
  }
}

}  // namespace wisp
