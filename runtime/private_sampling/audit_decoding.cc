// Built for speed: loops over every outcome and every sample of an audit.
#include "runtime/private_sampling/audit_decoding.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "runtime/private_sampling/sample_cost.h"
#include "runtime/private_sampling/sample_law.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/audit/audit_exact.h"

namespace wisp {
namespace {

// Larger than the rounding error of sums over a few hundred outcomes.
constexpr double kRounding = 1e-9;
constexpr float kBeyondDoubt = 1000;  // a gap between scores that rounds to certainty: exp(-1000) is 0
constexpr size_t kMildModels = 8;
// The sampler runs on the pair that is worst at this delta. At delta 0 the decisive outcome may be too rare to be
// observed.
constexpr double kSeenDelta = 0.02;

using Model = std::vector<float>;
using Law = std::vector<double>;

Status CheckOptions(const DecodingAuditOptions& o) {
  if (o.num_items < 2 || o.num_items > kMostAuditedItems) {
    return InvalidArgument("the audited support has ", o.num_items, " items, allowed are 2 to ", kMostAuditedItems);
  }
  if (o.samples < 1 || o.samples > o.num_items) {
    return InvalidArgument("samples is ", o.samples, ", allowed are 1 to the support's ", o.num_items);
  }
  if (o.mode == DecodingMode::kPlain) return InvalidArgument("plain sampling makes no claim that could be audited");
  if (!(o.delta >= 0 && o.delta < 1)) return InvalidArgument("delta is ", o.delta, ", allowed is 0 <= delta < 1");
  if (o.claimed_epsilon) WISP_RETURN_IF_ERROR(privacy::CheckClaimedEpsilon(*o.claimed_epsilon));
  if (o.mode == DecodingMode::kBaseAnchored) {
    if (!(o.clip > 0 && std::isfinite(o.clip) && o.temperature > 0 && std::isfinite(o.temperature))) {
      return InvalidArgument("anchored decoding needs a clip and a temperature above 0");
    }
    if (!o.base_scores.empty() && o.base_scores.size() != o.num_items)
      return InvalidArgument("there must be one base score per item");
    for (float b : o.base_scores) {
      if (!(std::abs(b) <= 100)) return InvalidArgument("a base score is ", b, ", allowed are -100 to 100");
    }
    return OkStatus();
  }
  if (!(o.lambda >= 0 && o.lambda < 1)) return InvalidArgument("lambda is ", o.lambda, ", allowed is 0 <= lambda < 1");
  if (o.mode == DecodingMode::kUniform) return OkStatus();
  if (o.mixing.size() != o.num_items) return InvalidArgument("there must be one mixing probability per item");
  for (double u : o.mixing) {
    if (!(u > 0 && std::isfinite(u)))
      return InvalidArgument("a mixing probability is ", u, ", allowed are positive numbers");
  }
  return OkStatus();
}

class Enumeration {
 public:
  explicit Enumeration(const DecodingAuditOptions& o) : o_(o), base_(o.base_scores), u_(o.num_items, 1.0) {
    if (base_.empty()) {
      base_.assign(o.num_items, -8.0f);
      base_[0] = 0;
    }
    if (o.mode == DecodingMode::kNonUniform) u_ = IntegerWeights(o.mixing);
  }

  const std::vector<float>& base() const { return base_; }

  std::vector<Model> Models() const {
    const size_t n = o_.num_items;
    std::vector<Model> models;
    if (o_.mode == DecodingMode::kBaseAnchored) {
      for (uint32_t signs = 0; signs < 1u << n; ++signs) {
        Model f = base_;
        for (size_t j = 0; j < n; ++j) f[j] += (signs >> j & 1 ? 2.0f : -2.0f) * static_cast<float>(o_.clip);
        models.push_back(f);
      }
    } else {
      std::vector<float> rank(n);
      std::iota(rank.begin(), rank.end(), 0.0f);
      do {
        Model f(n);
        for (size_t j = 0; j < n; ++j) f[j] = -kBeyondDoubt * rank[j];
        models.push_back(f);
      } while (std::next_permutation(rank.begin(), rank.end()));
    }
    auto random = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kInitialisation);
    for (size_t i = 0; i < kMildModels; ++i) {
      Model f = o_.mode == DecodingMode::kBaseAnchored ? base_ : Model(n, 0.0f);
      for (float& x : f) x += static_cast<float>(random.Normal());
      models.push_back(f);
    }
    return models;
  }

  // The probability of each item in the next sample; 0 for items in `sampled`.
  Law Next(const Model& f, std::span<const uint32_t> sampled) const {
    std::vector<int32_t> left;
    for (uint32_t j = 0; j < o_.num_items; ++j) {
      if (std::find(sampled.begin(), sampled.end(), j) == sampled.end()) left.push_back(static_cast<int32_t>(j));
    }
    std::vector<double> w;
    if (o_.mode == DecodingMode::kBaseAnchored) {
      AnchoredWeights(f, base_, left, {.clip = o_.clip, .temperature = o_.temperature}, w);
    } else {
      SoftmaxWeights(f, left, {.temperature = o_.temperature}, w);
    }
    const double all = std::accumulate(w.begin(), w.end(), 0.0);
    double u = 0;
    for (int32_t item : left) u += u_[static_cast<size_t>(item)];
    const double lambda = o_.mode == DecodingMode::kBaseAnchored ? 1 : all > 0 ? o_.lambda : 0;
    Law law(o_.num_items, 0.0);
    for (size_t i = 0; i < left.size(); ++i) {
      const size_t item = static_cast<size_t>(left[i]);
      law[item] = (lambda > 0 ? lambda * w[i] / all : 0) + (1 - lambda) * u_[item] / u;
    }
    return law;
  }

  // The probability of every ordered tuple. No remaining item has probability 0, so entry i is the same tuple for every
  // model.
  Result<Law> Tuples(const Model& f) const {
    const privacy::NextSample next = [&](std::span<const uint32_t> sampled) -> Result<Law> { return Next(f, sampled); };
    WISP_ASSIGN_OR_RETURN(privacy::DistributionPair pair, privacy::OrderedSamples(o_.samples, next, next));
    return std::move(pair.p);
  }

  std::vector<SampleCost> Costs() const {
    std::vector<SampleCost> costs;
    std::vector<double> sorted = u_;
    std::sort(sorted.begin(), sorted.end());
    for (uint32_t t = 0; t < o_.samples; ++t) {
      const uint64_t left = o_.num_items - t;
      costs.push_back(o_.mode == DecodingMode::kUniform      ? UniformSampleCost(left, o_.lambda)
                      : o_.mode == DecodingMode::kNonUniform ? NonUniformSampleCost(sorted, t, o_.lambda)
                                                             : AnchoredSampleCost(o_.clip, o_.temperature, left));
    }
    return costs;
  }

  // log P / P' of a tuple that the sampler has sampled.
  double LogRatio(const Model& f, const Model& g, std::span<const int32_t> tuple) const {
    std::vector<uint32_t> sampled;
    double loss = 0;
    for (int32_t item : tuple) {
      loss += std::log(Next(f, sampled)[static_cast<size_t>(item)] / Next(g, sampled)[static_cast<size_t>(item)]);
      sampled.push_back(static_cast<uint32_t>(item));
    }
    return loss;
  }

 private:
  const DecodingAuditOptions& o_;
  std::vector<float> base_;
  std::vector<double> u_;
};

// A lower bound on epsilon from the sampler's own samples under both models. The statistic is the log ratio, which
// separates the models best.
Result<double> Sampled(const DecodingAuditOptions& o, const Enumeration& all, const Model& f, const Model& g) {
  WISP_ASSIGN_OR_RETURN(
      PrivateSampler sampler,
      PrivateSampler::Create({.mode = o.mode,
                              .num_items = o.num_items,
                              .lambda = o.lambda,
                              .mixing = o.mixing,
                              .clip = o.clip,
                              .temperature = o.temperature,
                              .ledger = o.ledger,
                              .run = "audit of decoding",
                              .samples_per_charge = static_cast<uint32_t>(2 * o.observations * o.samples),
                              .charge_for = ChargeFor::kWholeCatalogue,
                              .reproducible_seed = o.reproducible_seed}));
  std::vector<double> seen[2];
  for (size_t which = 0; which < 2; ++which) {
    for (uint64_t i = 0; i < o.observations; ++i) {
      SampleRequest request{.scores = which == 0 ? f : g, .count = o.samples};
      if (o.mode == DecodingMode::kBaseAnchored) request.base_scores = all.base();
      WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> items, sampler.Sample(request));
      seen[which].push_back(all.LogRatio(f, g, items));
    }
  }
  WISP_ASSIGN_OR_RETURN(
      const privacy::CanaryBound bound,
      privacy::CanaryEpsilon({.with = seen[0], .without = seen[1]}, {.delta = 0, .confidence = o.confidence}));
  return bound.epsilon;
}

// Sets the epsilon that is charged for all samples, at delta 0 and at o.delta.
Status Claim(const DecodingAuditOptions& o, std::span<const SampleCost> costs, DecodingAuditResult& result) {
  std::vector<privacy::Mechanism> mechanisms;
  for (const SampleCost& cost : costs) {
    result.claimed += ComputeEpsilon(cost);
    if (cost.kind == SampleCost::Kind::kNothing) continue;
    WISP_ASSIGN_OR_RETURN(privacy::Mechanism mechanism, ToMechanism(cost, 1, privacy::Adjacency::kAddRemove));
    mechanisms.push_back(mechanism);
  }
  if (o.claimed_epsilon) result.claimed = *o.claimed_epsilon;
  if (o.delta == 0) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(o.delta));
  WISP_ASSIGN_OR_RETURN(result.claimed_at_delta, privacy::PldEpsilon(mechanisms, delta));
  if (o.claimed_epsilon) result.claimed_at_delta = std::min(*result.claimed_at_delta, *o.claimed_epsilon);
  return OkStatus();
}

}  // namespace

Result<DecodingAuditResult> AuditDecoding(const DecodingAuditOptions& o) {
  WISP_RETURN_IF_ERROR(CheckOptions(o));
  const Enumeration all(o);
  const std::vector<Model> models = all.Models();
  std::vector<Law> laws;
  for (const Model& f : models) {
    WISP_ASSIGN_OR_RETURN(Law law, all.Tuples(f));
    laws.push_back(std::move(law));
  }
  DecodingAuditResult result{.models = models.size()};
  if (o.delta > 0) result.exact_at_delta = 0;
  std::pair<size_t, size_t> plain = {0, 0};  // the pair that is easiest to tell apart by samples
  double plainest = 0;
  for (size_t i = 0; i < laws.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      WISP_ASSIGN_OR_RETURN(const double epsilon, privacy::MaxLogRatio(laws[i], laws[j]));
      result.exact = std::max(result.exact, epsilon);
      if (o.observations > 0 && epsilon > plainest) {
        WISP_ASSIGN_OR_RETURN(const double seen, privacy::ExactEpsilon(laws[i], laws[j], kSeenDelta));
        if (seen > plainest) plainest = seen, plain = {i, j};
      }
      // A pair's epsilon at a delta is at most its epsilon at delta 0. So only pairs that may be the worst need the
      // sort.
      if (o.delta == 0 || epsilon <= *result.exact_at_delta) continue;
      WISP_ASSIGN_OR_RETURN(const double at_delta, privacy::ExactEpsilon(laws[i], laws[j], o.delta));
      result.exact_at_delta = std::max(*result.exact_at_delta, at_delta);
    }
  }
  WISP_RETURN_IF_ERROR(Claim(o, all.Costs(), result));
  if (o.observations > 0) {
    WISP_ASSIGN_OR_RETURN(result.sampled, Sampled(o, all, models[plain.first], models[plain.second]));
  }
  result.refuted = result.exact > result.claimed + kRounding ||
                   (result.sampled && *result.sampled > result.claimed + kRounding) ||
                   (result.exact_at_delta && *result.exact_at_delta > *result.claimed_at_delta + kRounding);
  return result;
}

}  // namespace wisp
