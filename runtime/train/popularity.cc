#include "runtime/train/popularity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/budget.h"
#include "runtime/train/count_grid.h"

namespace wisp {
namespace {

// Adds a share for each of the n distinct items.
void AddRecord(const Record& record, std::vector<int32_t>& distinct, std::vector<int64_t>& histogram) {
  DistinctItems(record, distinct);
  if (distinct.empty()) return;
  const int64_t share = CountShare(distinct.size());
  for (int32_t id : distinct) histogram[static_cast<size_t>(id)] += share;
}

std::vector<int64_t> Histogram(std::span<const Record> records, uint32_t num_items) {
  std::vector<int64_t> histogram(num_items, 0);
  std::vector<int32_t> distinct;
  for (const Record& record : records) AddRecord(record, distinct, histogram);
  return histogram;
}

std::vector<float> LogShares(const std::vector<int64_t>& histogram, double floor) {
  std::vector<float> bias(histogram.size());
  double mean = 0;
  for (size_t i = 0; i < bias.size(); ++i) {
    const double value = std::log(std::max(static_cast<double>(histogram[i]) / kCountSteps, floor));
    bias[i] = static_cast<float>(value);
    mean += value / static_cast<double>(bias.size());
  }
  for (float& b : bias) b -= static_cast<float>(mean);
  return bias;
}

std::vector<float> Frequencies(const std::vector<int64_t>& histogram, const PopularityOptions& options) {
  std::vector<float> frequencies;
  if (options.num_records_public == 0) return frequencies;
  const double n = options.num_records_public;
  double total = 0;
  for (int64_t h : histogram) total += static_cast<double>(h) / kCountSteps;
  const double mean_sqrt = std::max(1.0, total / n);
  for (int64_t h : histogram) {
    const double share = std::max(static_cast<double>(h) / kCountSteps, options.noise_multiplier) / n;
    frequencies.push_back(static_cast<float>(std::min(1.0, share * mean_sqrt)));
  }
  return frequencies;
}

}  // namespace

void DistinctItems(const Record& record, std::vector<int32_t>& distinct) {
  distinct.clear();
  for (std::span<const int32_t> ids : {record.inputs, record.targets}) {
    for (int32_t id : ids) {
      if (id >= 0) distinct.push_back(id);
    }
  }
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
}

std::vector<int32_t> LargestRows(std::span<const float> scores, size_t k) {
  std::vector<int32_t> rows(scores.size());
  std::iota(rows.begin(), rows.end(), 0);
  k = std::min(k, rows.size());
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end(), [&](int32_t a, int32_t b) {
    const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  rows.resize(k);
  std::sort(rows.begin(), rows.end());
  return rows;
}

Result<privacy::ChargeRequest> PopularityCharge(const PopularityOptions& options, uint32_t num_items,
                                                privacy::NoiseKind noise) {
  return MakeCharge({.noise_multiplier = options.noise_multiplier,
                     .sigma_in_steps = CountSigma(options.noise_multiplier),
                     .num_coordinates = num_items,
                     .run = options.run,
                     .purpose = "item popularity",
                     .noise = noise});
}

Result<Popularity> PrivatePopularity(std::span<const Record> records, uint32_t num_items,
                                     const PopularityOptions& options, privacy::RandomStream& noise) {
  if (options.ledger == nullptr)
    return PrivacyRefused("a private histogram needs a ledger: without one the budget spent would be forgotten");
  WISP_ASSIGN_OR_RETURN(
      const privacy::ChargeRequest charge,
      PopularityCharge(options, num_items,
                       noise.IsSecure() ? privacy::NoiseKind::kSecure : privacy::NoiseKind::kReproducible));
  if (!(options.noise_multiplier <= privacy::ExactGrid::kMaxNoiseMultiplier)) {
    return InvalidArgument("histogram noise is ", options.noise_multiplier, ", allowed is up to ",
                           privacy::ExactGrid::kMaxNoiseMultiplier);
  }
  WISP_RETURN_IF_ERROR(options.ledger->Charge(charge).status());
  std::vector<int64_t> histogram = Histogram(records, num_items);
  privacy::AddDiscreteGaussian(noise, CountSigma(options.noise_multiplier), histogram);
  Popularity popularity{LogShares(histogram, options.noise_multiplier), Frequencies(histogram, options), {}};
  for (int64_t h : histogram) popularity.histogram.push_back(static_cast<float>(static_cast<double>(h) / kCountSteps));
  return popularity;
}

std::vector<float> PopularityBias(std::span<const Record> records, uint32_t num_items) {
  return LogShares(Histogram(records, num_items), 0.1);
}

void SetOutputBias(const Architecture& architecture, std::span<const float> bias, std::span<float> weights) {
  const std::vector<ParameterSpec> parameters = ListParameters(architecture);
  const std::optional<size_t> found = FindParameter(parameters, ParameterRole::kOutputBias);
  if (!found) return;
  std::copy(bias.begin(), bias.end(), weights.begin() + static_cast<std::ptrdiff_t>(parameters[*found].offset));
}

}  // namespace wisp
