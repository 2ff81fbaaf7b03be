#include "runtime/train/run/untrained_items.h"

#include <algorithm>

namespace wisp {
namespace {

bool HasPassedOnce(const JobResult& result) {
  const TrainingOptions& o = result.options;
  const double records = IsPrivate(o) ? o.num_records_public : static_cast<double>(result.num_records);
  return static_cast<double>(result.num_steps) * o.expected_batch >= records;
}

// True if the item's row differs from `before` in any table that the run held.
bool HasMoved(const std::vector<ParameterSpec>& parameters, std::span<const float> before, const JobResult& result,
              size_t item) {
  return std::any_of(parameters.begin(), parameters.end(), [&](const ParameterSpec& p) {
    if (p.role != ParameterRole::kItemTable && p.role != ParameterRole::kOutputTable) return false;
    const size_t at = p.offset + item * p.cols;
    if (at < result.first_weight) return false;
    const auto row = std::span(result.weights).subspan(at - result.first_weight, p.cols);
    return !std::equal(row.begin(), row.end(), before.begin() + static_cast<std::ptrdiff_t>(at));
  });
}

}  // namespace

std::vector<int32_t> StillUntrained(const ModelFile& base, const Architecture& trained, const JobResult& result) {
  std::vector<int32_t> untrained(base.untrained().begin(), base.untrained().end());
  if (untrained.empty() || trained.adapter || !HasPassedOnce(result)) return untrained;
  std::vector<float> room;
  const std::span<const float> before = base.AllWeights(room);
  const std::vector<ParameterSpec> parameters = ListParameters(base.architecture());
  std::erase_if(untrained,
                [&](int32_t item) { return HasMoved(parameters, before, result, static_cast<size_t>(item)); });
  return untrained;
}

}  // namespace wisp
