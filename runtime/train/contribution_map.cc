#include "runtime/train/contribution_map.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/privacy/discrete_gaussian.h"
#include "runtime/train/popularity.h"

namespace wisp {
namespace {

constexpr double kSteps = 1073741824.0;  // 2^30 steps stand for C1
constexpr double kMostNoise = 0x1p19;

Status Check(const char* field, double value, double most) {
  if (value > 0 && value <= most) return OkStatus();
  return InvalidArgument(std::string("contribution map: ") + field + " is " + std::to_string(value) + ", allowed is above 0 and up to " + std::to_string(most));
}

}  // namespace

Status Validate(const ContributionMapOptions& o) {
  WISP_RETURN_IF_ERROR(Check("clipping norm", o.clipping_norm, 1e6));
  WISP_RETURN_IF_ERROR(Check("noise multiplier", o.noise_multiplier, kMostNoise));
  return Check("threshold", o.threshold, kMostThresholdDeviations * o.noise_multiplier * o.clipping_norm);
}

ContributionMap::ContributionMap(uint32_t num_rows, const ContributionMapOptions& o, const RowSet* allowed)
    : num_rows_(num_rows),
      clipping_norm_(o.clipping_norm),
      allowed_(allowed),
      sigma_(static_cast<uint64_t>(std::ceil(o.noise_multiplier * kSteps))),
      threshold_(static_cast<int64_t>(std::ceil(o.threshold / o.clipping_norm * kSteps))),
      touched_(num_rows) {
  // The chance that goes with the noise and the threshold as they are drawn and compared: that of round(N(0, sigma^2)), which
  // the discrete noise is as good as, to reach a whole number of steps.
  const double p = privacy::UpperTail((static_cast<double>(threshold_) - 0.5) / static_cast<double>(sigma_));
  gaps_.emplace(p);
  false_rows_ = p * static_cast<double>(allowed != nullptr ? allowed->size() : num_rows);
}

void ContributionMap::Count(const Record& record) {
  DistinctItems(record, distinct_);
  if (allowed_ != nullptr) std::erase_if(distinct_, [this](int32_t row) { return allowed_->slot(row) < 0; });
  if (distinct_.empty()) return;
  const double share = std::min(1 / clipping_norm_, 1 / std::sqrt(static_cast<double>(distinct_.size())));
  const auto steps = static_cast<int64_t>(std::floor(kSteps * share * (1 - 1e-15)));
  for (int32_t row : distinct_) {
    const size_t slot = touched_.Insert(row);
    if (slot == counts_.size()) counts_.push_back(0);
    counts_[slot] += steps;
  }
}

void ContributionMap::Select(std::span<const Record* const> batch, privacy::RandomStream& noise, std::vector<int32_t>& survivors) {
  survivors.clear();
  touched_.Clear();
  counts_.clear();
  for (const Record* record : batch) Count(*record);
  privacy::AddDiscreteGaussian(noise, sigma_, counts_);
  for (size_t slot = 0; slot < counts_.size(); ++slot) {
    if (counts_[slot] >= threshold_) survivors.push_back(touched_.rows()[slot]);
  }
  SelectUntouched(noise, survivors);
  std::sort(survivors.begin(), survivors.end());
}

// The untouched rows, counted 0, 1, 2, ... in ascending order without the touched ones: trial i is the i-th of them.
void ContributionMap::SelectUntouched(privacy::RandomStream& noise, std::vector<int32_t>& survivors) {
  ascending_.clear();
  for (int32_t row : touched_.rows()) ascending_.push_back(allowed_ == nullptr ? row : allowed_->slot(row));  // places among all
  std::sort(ascending_.begin(), ascending_.end());
  const uint64_t places = allowed_ == nullptr ? num_rows_ : allowed_->size(), trials = places - ascending_.size();
  size_t passed = 0;  // touched places before the current one
  for (uint64_t i = gaps_->Next(noise); i < trials; i += 1 + gaps_->Next(noise)) {
    while (passed < ascending_.size() && static_cast<uint64_t>(ascending_[passed]) <= i + passed) ++passed;
    const uint64_t place = i + passed;
    survivors.push_back(allowed_ == nullptr ? static_cast<int32_t>(place) : allowed_->rows()[place]);
  }
}

}  // namespace wisp
