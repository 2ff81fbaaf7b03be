#include "runtime/train/successions.h"

#include <algorithm>
#include <cmath>

#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/budget.h"
#include "runtime/train/chance.h"
#include "runtime/train/count_grid.h"
#include "runtime/train/list_scorer.h"

namespace wisp {
namespace {

// docs/papers/what-helps.md has what was measured with these.
constexpr double kWeight = 0.75, kPrior = 5;

// One record's share of one pair.
struct Share {
  int32_t from, to;
  int64_t value;
};

// Adds a share for each of the n pairs.
void AddRecord(const Record& record, uint32_t num_items, std::vector<int32_t>& seen, std::vector<Share>& shares) {
  seen.clear();
  const size_t first = shares.size();
  const auto is_item = [&](int32_t id) { return id >= 0 && static_cast<uint32_t>(id) < num_items; };
  const auto is_new = [&](int32_t id) { return std::find(seen.begin(), seen.end(), id) == seen.end(); };
  for (size_t t = 0; t < record.inputs.size(); ++t) {
    const int32_t from = record.inputs[t], to = t < record.targets.size() ? record.targets[t] : -1;
    if (is_item(from) && is_new(from)) seen.push_back(from);
    if (is_item(from) && is_item(to) && is_new(to)) {
      seen.push_back(to);
      shares.push_back({from, to, 0});
    }
  }
  const size_t n = shares.size() - first;
  const int64_t value = CountShare(n);
  for (size_t i = first; i < shares.size(); ++i) shares[i].value = value;
}

std::vector<Share> AllShares(std::span<const Record> records, uint32_t num_items) {
  std::vector<Share> shares;
  std::vector<int32_t> seen;
  for (const Record& record : records) AddRecord(record, num_items, seen, shares);
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.from < b.from; });
  return shares;
}

}  // namespace

Result<privacy::ChargeRequest> SuccessionCharge(const SuccessionOptions& options, uint32_t num_items,
                                                privacy::NoiseKind noise, uint64_t releases) {
  return MakeCharge({.noise_multiplier = options.noise_multiplier,
                     .count = releases,
                     .sigma_in_steps = CountSigma(options.noise_multiplier),
                     .num_coordinates = uint64_t{num_items} * num_items,
                     .run = options.run,
                     .purpose = kSuccessionsPurpose,
                     .noise = noise});
}

Result<std::vector<SuccessionCount>> PrivateSuccessions(std::span<const Record> records, uint32_t num_items,
                                                        const SuccessionOptions& options,
                                                        privacy::RandomStream& noise) {
  if (options.ledger == nullptr)
    return PrivacyRefused("private successions need a ledger: without one the budget spent would be forgotten");
  if (!(options.noise_multiplier > 0 && options.noise_multiplier <= privacy::ExactGrid::kMaxNoiseMultiplier))
    return InvalidArgument("the noise of successions is ", options.noise_multiplier, ", allowed is above 0, up to ",
                           privacy::ExactGrid::kMaxNoiseMultiplier);
  WISP_ASSIGN_OR_RETURN(
      const privacy::ChargeRequest charge,
      SuccessionCharge(options, num_items,
                       noise.IsSecure() ? privacy::NoiseKind::kSecure : privacy::NoiseKind::kReproducible));
  WISP_RETURN_IF_ERROR(options.ledger->Charge(charge).status());
  const std::vector<Share> shares = AllShares(records, num_items);
  const double least = DeviationsByChance(num_items) * options.noise_multiplier;
  std::vector<SuccessionCount> counts;
  std::vector<int64_t> row(num_items);
  auto share = shares.begin();
  for (int32_t from = 0; from < static_cast<int32_t>(num_items); ++from) {
    std::fill(row.begin(), row.end(), int64_t{0});
    for (; share != shares.end() && share->from == from; ++share) row[static_cast<size_t>(share->to)] += share->value;
    privacy::AddDiscreteGaussian(noise, CountSigma(options.noise_multiplier), row);
    for (size_t to = 0; to < row.size(); ++to) {
      const double above = static_cast<double>(row[to]) / kCountSteps - least;
      if (above > 0) counts.push_back({from, static_cast<int32_t>(to), static_cast<float>(above)});
    }
  }
  return counts;
}

std::vector<Succession> ScoreSuccessions(const ModelView& graph, const Weights& weights, const ModelLists& lists,
                                         std::span<const SuccessionCount> counts, double noise_multiplier) {
  ModelLists without = lists;
  without.successions = {};
  ListScorer scorer(graph, weights, without);
  std::span<const float> scores;
  std::vector<Succession> successions;
  int32_t scored = -1;
  double log_sum = 0;
  for (const SuccessionCount& c : counts) {
    if (c.from != scored) {
      scored = c.from;
      scores = scorer.Score({&c.from, 1});
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (const float score : scores) sum += std::exp(score - most);
      log_sum = most + std::log(sum);
    }
    const double probability = std::exp(scores[static_cast<size_t>(c.to)] - log_sum);
    const double rise = kWeight * std::log1p(c.count / (kPrior * noise_multiplier * std::max(probability, 1e-12)));
    if (std::isfinite(rise)) successions.push_back({c.from, c.to, static_cast<float>(rise)});
  }
  return successions;
}

}  // namespace wisp
