#include "runtime/private_sampling/private_sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/private_sampling/context_sum.h"
#include "runtime/private_sampling/distinct_samples.h"
#include "runtime/private_sampling/sample_law.h"

namespace wisp {
namespace {

using privacy::NoiseKind;
using privacy::RandomStream;
using privacy::StreamPurpose;

bool Mixes(DecodingMode mode) { return mode == DecodingMode::kUniform || mode == DecodingMode::kNonUniform; }

// Refuses requests that no parameter can make private.
Status CheckWishes(const PrivateSamplerOptions& o) {
  if (o.selection != Selection::kSample) {
    return PrivacyRefused(
        "private decoding by arg-max or beam search: the guarantee is that of random samples; a choice of the best has "
        "none");
  }
  if (o.after_mixing != AfterMixing::kNothing) {
    return PrivacyRefused(
        "private decoding with temperature, top-k or nucleus after mixing: they undo the mixing; apply them to q, "
        "before it");
  }
  if (o.output != SampleOutput::kItems) {
    return PrivacyRefused(
        "private decoding that returns probabilities: what is charged for is the sampled items, probabilities show the "
        "model itself");
  }
  if (o.mode == DecodingMode::kPlain) {
    if (o.need.kind == DecodingNeed::Kind::kFree) return OkStatus();
    return PrivacyRefused("plain sampling of weights without a guarantee: ", o.need.reason,
                          "; choose a private mode and a ledger");
  }
  if (o.ledger == nullptr)
    return PrivacyRefused("private decoding needs a ledger: without one the budget spent would be forgotten");
  return OkStatus();
}

Status CheckMixing(const PrivateSamplerOptions& o) {
  if (!(o.lambda >= 0 && o.lambda <= 1)) return InvalidArgument("lambda is ", o.lambda, ", allowed is 0 <= lambda < 1");
  if (o.lambda == 1)
    return PrivacyRefused(
        "private decoding with lambda 1: nothing is mixed in, which leaves no guarantee; allowed is 0 <= lambda < 1");
  if (o.mode == DecodingMode::kNonUniform && o.mixing.empty() && o.min_probability > 0) {
    if (o.min_probability <= 0.5) return OkStatus();
    return InvalidArgument("the smallest probability of what is mixed in is ", o.min_probability,
                           ", allowed are up to 0.5");
  }
  if (o.mode == DecodingMode::kUniform) {
    return o.mixing.empty() ? OkStatus() : InvalidArgument("a mixing distribution was given, but the mode is uniform");
  }
  if (o.mixing.size() != o.num_items) {
    return InvalidArgument("the mixing distribution has ", o.mixing.size(), " entries, the catalogue has ", o.num_items,
                           " items");
  }
  for (size_t i = 0; i < o.mixing.size(); ++i) {
    if (o.mixing[i] > 0 && std::isfinite(o.mixing[i])) continue;
    return PrivacyRefused("the mixing distribution gives item ", i, " ", o.mixing[i],
                          ": every item needs a positive share, or sampling it tells of the records without bound");
  }
  return OkStatus();
}

Status CheckAnchored(const PrivateSamplerOptions& o) {
  if (!(o.clip > 0)) return InvalidArgument("clip is ", o.clip, ", allowed is above 0");
  if (!std::isfinite(o.clip))
    return PrivacyRefused("anchored decoding with an infinite clip: nothing is bounded, which leaves no guarantee");
  if (o.top_k != 0 || o.nucleus != 1) {
    return PrivacyRefused(
        "anchored decoding with top-k or nucleus: truncation by private scores voids it; give candidates chosen "
        "by the public model");
  }
  if (o.clip / o.temperature > kAnchoredMaxReach) {
    return InvalidArgument("clip over temperature is ", o.clip / o.temperature, ", allowed is up to 2^20");
  }
  return OkStatus();
}

Status CheckOptions(const PrivateSamplerOptions& o) {
  WISP_RETURN_IF_ERROR(CheckWishes(o));
  if (o.num_items == 0 || o.num_items > uint32_t{1} << 31) {
    return InvalidArgument("the catalogue has ", o.num_items, " items, allowed are 1 to 2^31");
  }
  if (!(o.temperature > 0 && std::isfinite(o.temperature))) {
    return InvalidArgument("the temperature is ", o.temperature, ", allowed is a positive number");
  }
  if (!(o.nucleus > 0 && o.nucleus <= 1))
    return InvalidArgument("nucleus is ", o.nucleus, ", allowed is above 0 and up to 1");
  if (o.samples_per_charge == 0) return InvalidArgument("samples_per_charge is 0, allowed are 1 and above");
  if (Mixes(o.mode)) return CheckMixing(o);
  if (o.mode == DecodingMode::kAggregate && (o.contexts == 0 || o.contexts > kMostContexts))
    return InvalidArgument("the number of private contexts is ", o.contexts, ", allowed are 1 to ", kMostContexts);
  return HasClip(o.mode) ? CheckAnchored(o) : OkStatus();
}

Status CheckIds(const char* what, std::span<const int32_t> items, uint32_t num_items) {
  for (int32_t id : items) {
    if (id >= 0 && static_cast<uint32_t>(id) < num_items) continue;
    return InvalidArgument(what, " names item ", id, "; the catalogue has items 0 to ", num_items - 1);
  }
  return OkStatus();
}

Status CheckSize(const char* what, size_t size, size_t expected) {
  if (size == expected) return OkStatus();
  return InvalidArgument(what, " are ", size, ", expected are ", expected);
}

// Weights of the anchored or the aggregate law. Returns the best base score.
float ComputeWeights(const PrivateSamplerOptions& o, const SampleRequest& r, std::span<const int32_t> items,
                     std::vector<double>& weights) {
  if (o.mode == DecodingMode::kBaseAnchored)
    return AnchoredWeights(r.scores, r.base_scores, items, {.clip = o.clip, .temperature = o.temperature}, weights);
  return AggregateWeights(r.sums, r.base_scores, items,
                          {.clip = o.clip, .temperature = o.temperature, .contexts = o.contexts}, weights);
}

bool BringsMixture(const PrivateSamplerOptions& o) {
  return o.mode == DecodingMode::kNonUniform && o.min_probability > 0 && o.mixing.empty();
}

}  // namespace

SampleCost MaxSampleCost(const PrivateSamplerOptions& o, uint64_t support) {
  switch (o.mode) {
    case DecodingMode::kUniform:
      return UniformSampleCost(support, o.lambda);
    case DecodingMode::kNonUniform: {
      if (support < 2 || o.lambda == 0) return {};
      if (BringsMixture(o))
        return {.kind = SampleCost::Kind::kNonUniformMixing, .lambda = o.lambda, .min_probability = o.min_probability};
      std::vector<double> sorted = IntegerWeights(o.mixing);
      std::sort(sorted.begin(), sorted.end());
      return NonUniformSampleCost(sorted, 0, o.lambda);
    }
    case DecodingMode::kBaseAnchored:
      return AnchoredSampleCost(o.clip, o.temperature, support);
    case DecodingMode::kAggregate:
      return AggregateSampleCost(
          {.clip = o.clip, .temperature = o.temperature, .contexts = o.contexts, .adjacency = o.ledger->adjacency()});
    case DecodingMode::kPlain:
      break;
  }
  return {};
}

PrivateSampler::PrivateSampler(PrivateSamplerOptions options, RandomStream random)
    : options_(std::move(options)), random_(std::move(random)) {
  if (options_.mode == DecodingMode::kNonUniform && !BringsMixture(options_)) u_ = IntegerWeights(options_.mixing);
}

Result<PrivateSampler> PrivateSampler::Create(PrivateSamplerOptions options) {
  WISP_RETURN_IF_ERROR(CheckOptions(options));
  auto random =
      options.reproducible_seed
          ? Result<RandomStream>(RandomStream::Reproducible(*options.reproducible_seed, StreamPurpose::kDecoding))
          : RandomStream::Secure();
  if (!random.ok()) return random.status();
  PrivateSampler sampler(std::move(options), *std::move(random));
  std::vector<int32_t> all(sampler.options_.num_items);
  std::iota(all.begin(), all.end(), 0);
  sampler.whole_catalogue_ = sampler.ComputeCosts(all, 1)[0];
  return sampler;
}

std::vector<SampleCost> PrivateSampler::ComputeCosts(std::span<const int32_t> support, size_t count) const {
  std::vector<SampleCost> costs(std::min(count, support.size()));
  std::vector<double> sorted;
  if (!u_.empty()) {
    for (int32_t item : support) sorted.push_back(u_[static_cast<size_t>(item)]);
    std::sort(sorted.begin(), sorted.end());
  }
  for (size_t i = 0; i < costs.size(); ++i) {
    costs[i] =
        u_.empty() ? MaxSampleCost(options_, support.size() - i) : NonUniformSampleCost(sorted, i, options_.lambda);
  }
  return costs;
}

Status PrivateSampler::CheckRequest(const SampleRequest& r) const {
  if (r.support_origin != SupportOrigin::kPublic) {
    return PrivacyRefused(
        "private decoding over a support computed from the private model: which items may be sampled would itself tell "
        "of "
        "its records; give a public list, or the public model's best");
  }
  const size_t n = options_.num_items;
  const bool sums = options_.mode == DecodingMode::kAggregate;
  WISP_RETURN_IF_ERROR(CheckSize("the scores", r.scores.size(), sums ? 0 : n));
  WISP_RETURN_IF_ERROR(CheckSize("the sums", r.sums.size(), sums ? n : 0));
  WISP_RETURN_IF_ERROR(CheckSize("the base scores", r.base_scores.size(), HasClip(options_.mode) ? n : 0));
  WISP_RETURN_IF_ERROR(CheckSize("the mixture's numbers", r.mixing.size(), BringsMixture(options_) ? n : 0));
  if (BringsMixture(options_) && r.count != 1)
    return InvalidArgument(r.count, " samples with a mixture of their own, allowed is 1");
  WISP_RETURN_IF_ERROR(CheckIds("the list of candidates", r.candidates, options_.num_items));
  WISP_RETURN_IF_ERROR(CheckIds("the list of excluded items", r.excluded, options_.num_items));
  return CheckReach(r.base_scores);
}

// Divides only if a request might be refused: 3,416 quotients took a sixth of the time that sampling adds.
Status PrivateSampler::CheckReach(std::span<const float> base_scores) const {
  const auto surely =
      static_cast<float>(std::min(0.99 * (kAnchoredMaxReach * options_.temperature - options_.clip), 1e38));
  for (size_t i = 0; i < base_scores.size(); ++i) {
    if (std::abs(base_scores[i]) <= surely) continue;
    const double b = base_scores[i];
    if (std::isinf(b) && b < 0) continue;
    if ((std::abs(b) + options_.clip) / options_.temperature <= kAnchoredMaxReach) continue;
    return InvalidArgument("the base score of item ", i, " is ", b,
                           ", allowed is -inf, or up to 2^20 with the clip, over the temperature");
  }
  return OkStatus();
}

std::vector<int32_t> PrivateSampler::ChooseSupport(const SampleRequest& r) const {
  std::vector<uint8_t> in(options_.num_items, r.candidates.empty() ? 1 : 0);
  for (int32_t id : r.candidates) in[static_cast<size_t>(id)] = 1;
  for (int32_t id : r.excluded) in[static_cast<size_t>(id)] = 0;
  for (size_t i = 0; i < r.base_scores.size(); ++i) in[i] &= std::isinf(r.base_scores[i]) ? 0 : 1;
  std::vector<int32_t> support(in.size());  // written without a branch, because membership is unpredictable
  size_t size = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    support[size] = static_cast<int32_t>(i);
    size += in[i];
  }
  support.resize(size);
  return support;
}

// The charge assumes that no item of the support is less likely than min_probability. Checks this on the integers that
// the sample uses.
Status PrivateSampler::CheckMixture(const SampleRequest& r, std::span<const int32_t> support) const {
  if (support.empty()) return OkStatus();
  std::vector<double> u;
  for (int32_t item : support) u.push_back(r.mixing[static_cast<size_t>(item)]);
  for (double x : u) {
    if (!(x > 0 && std::isfinite(x)))
      return InvalidArgument("the mixture gives an item of the support ", x, ", allowed are positive numbers");
  }
  const std::vector<double> weights = IntegerWeights(u);
  double sum = 0;  // integers with a sum below 2^53
  for (double w : weights) sum += w;
  const double least = *std::min_element(weights.begin(), weights.end()) / sum;
  if (std::nextafter(least, 0) >= options_.min_probability) return OkStatus();
  return InvalidArgument("an item of the support has ", least, " in the mixture, samples are charged for ",
                         options_.min_probability, " at least");
}

// Charges the ledger. Returns OK only if every one of `costs` lies in a block that is on disk.
Status PrivateSampler::Pay(std::span<const SampleCost> costs, uint32_t at_most) {
  const uint32_t samples = std::min(options_.samples_per_charge, at_most == 0 ? UINT32_MAX : at_most);
  for (const SampleCost& cost : costs) {
    if (cost.kind == SampleCost::Kind::kNothing) continue;
    if (origin_.IsForked()) return ForkedError("the ledger of these samples");
    if (block_left_ > 0 && Covers(block_, cost)) {
      --block_left_;
      continue;
    }
    const SampleCost block = options_.charge_for == ChargeFor::kWholeCatalogue ? whole_catalogue_ : cost;
    WISP_ASSIGN_OR_RETURN(const privacy::Mechanism mechanism,
                          ToMechanism(block, samples, options_.ledger->adjacency()));
    block_left_ = 0;
    WISP_RETURN_IF_ERROR(options_.ledger
                             ->Charge({.mechanism = mechanism,
                                       .run = options_.run,
                                       .purpose = "decoding",
                                       .noise = random_.IsSecure() ? NoiseKind::kSecure : NoiseKind::kReproducible})
                             .status());
    block_ = block;
    block_left_ = samples - 1;
    samples_charged_ += samples;
  }
  random_.Freshen();  // two machines restored from one snapshot must draw different numbers
  return OkStatus();
}

Result<std::vector<int32_t>> PrivateSampler::Sample(const SampleRequest& request) {
  WISP_RETURN_IF_ERROR(CheckRequest(request));
  std::vector<int32_t> support = ChooseSupport(request);
  if (BringsMixture(options_)) WISP_RETURN_IF_ERROR(CheckMixture(request, support));
  WISP_RETURN_IF_ERROR(Pay(ComputeCosts(support, request.count), request.at_most));
  return SampleDistinct(request, std::move(support));
}

std::vector<int32_t> PrivateSampler::SampleDistinct(const SampleRequest& r, std::vector<int32_t> support) {
  if (HasClip(options_.mode)) return SampleAnchored(r, std::move(support));
  std::vector<double> q, u;
  const SoftmaxOptions softmax{
      .temperature = options_.temperature, .top_k = options_.top_k, .nucleus = options_.nucleus};
  SoftmaxWeights(r.scores, support, softmax, q);
  if (!u_.empty()) {
    for (int32_t item : support) u.push_back(u_[static_cast<size_t>(item)]);
  }
  if (BringsMixture(options_)) {
    for (int32_t item : support) u.push_back(r.mixing[static_cast<size_t>(item)]);
    if (!u.empty()) u = IntegerWeights(u);
  }
  MixedLaw law;
  law.Assign(options_.mode == DecodingMode::kPlain ? 1 : options_.lambda, q, u);
  std::vector<int32_t> sampled;
  const size_t count = std::min(r.count, support.size());
  sampled.reserve(count);
  while (sampled.size() < count) {
    const size_t index = law.Sample(random_);
    sampled.push_back(support[index]);
    law.Remove(index);
  }
  return sampled;
}

std::vector<int32_t> PrivateSampler::SampleAnchored(const SampleRequest& r, std::vector<int32_t> left) {
  constexpr int32_t kGone = -1;
  std::vector<int32_t> sampled;
  const size_t count = std::min(r.count, left.size());
  sampled.reserve(count);
  std::vector<double> weights;
  ExactLaw law;
  bool stale = true;  // the weights depend on the best remaining base score
  float best_base = 0;
  while (sampled.size() < count) {
    if (stale) {
      std::erase(left, kGone);
      best_base = ComputeWeights(options_, r, left, weights);
      law.Assign(weights);
    }
    const size_t index = law.Sample(random_);
    const int32_t item = std::exchange(left[index], kGone);
    law.Remove(index);
    sampled.push_back(item);
    stale = r.base_scores[static_cast<size_t>(item)] == best_base;
  }
  return sampled;
}

}  // namespace wisp
