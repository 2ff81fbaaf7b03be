// Samples privately from a model that was trained without a guarantee. Every sampled item is a mechanism of its own,
// charged to the ledger before a random number for it is drawn (docs/algorithms.md, section 7; Majmudar et al. 2022).
//
// Protected: the records that the scored weights were trained on. Not protected: the prompt (the history given now),
// the support, the number of items asked for, the time of stopping (which may depend on sampled items only), and
// duration (distinct_samples.h). Released: the sampled items in the order they were sampled; never scores,
// probabilities or a ranking by them.
//
//   WISP_ASSIGN_OR_RETURN(PrivateSampler sampler, PrivateSampler::Create({.mode = DecodingMode::kUniform,
//       .num_items = n, .lambda = 1e-3, .ledger = &ledger, .run = "recommendations", .samples_per_charge = 100}));
//   WISP_RETURN_IF_ERROR(session.Score(history, scores));
//   WISP_ASSIGN_OR_RETURN(auto items, sampler.Sample({.scores = scores, .excluded = history, .count = 10}));
//
// k distinct items are k samples without replacement from what remains of the support, with q and u renormalised over
// it. The total number of samples is no parameter: it is what the ledger's limit (epsilon, delta) pays for, over all
// queries.
//
// base-anchored: softmax((b + clip(f - b, -c, c)) / tau). b are the scores of a PUBLIC model, the one that was shipped;
// the caller asserts that it is public. f are the scores of the fine-tuned model. A constant added to all f is not
// removed, so it uses up the clip. A caller may shift f for free, for example by its mean over the items, because any
// function of f may be clipped.
//
// Do not use it for weights with a guarantee (decoding_need.h): those may be sampled, ranked and shown freely.
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_PRIVATE_SAMPLING_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_PRIVATE_SAMPLING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/private_sampling/decoding_need.h"
#include "runtime/private_sampling/sample_cost.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

enum class DecodingMode {
  kUniform,       // lambda q + (1 - lambda) uniform over the support
  kNonUniform,    // lambda q + (1 - lambda) times a public distribution
  kBaseAnchored,  // falls back to a public model, not to noise; epsilon does not depend on the support
  kAggregate,     // falls back to a public context; moved by the clipped sum over private ones (context_sum.h)
  kPlain,         // q itself, not charged: only where `need` is kFree
};
// True if the mode clips how far private scores may move from public ones.
inline bool HasClip(DecodingMode mode) {
  return mode == DecodingMode::kBaseAnchored || mode == DecodingMode::kAggregate;
}

// The requests that a caller may make. Private decoding refuses all but the first value, with the reason.
enum class Selection { kSample, kArgMax, kBeamSearch };
enum class AfterMixing { kNothing, kTemperature, kTopK, kNucleus };
enum class SampleOutput { kItems, kProbabilities };
enum class SupportOrigin { kPublic, kPrivateModel };

// The support that a sample is charged for.
enum class ChargeFor {
  // The support that it is sampled from: cheapest for short lists of candidates. When samples are charged one at a time
  // under a limit, every new support asks the accountant again: 30 to 70 ms a sample at 1e4 items (2 cores,
  // 2026-11-21), against 0.01 ms in a block.
  kSupportLeft,
  // All items, which covers every sample. Each charge is then the same mechanism whatever was sampled before. So
  // composition needs no argument about adaptively chosen parameters, and blocks are never cut short.
  kWholeCatalogue,
};

struct PrivateSamplerOptions {
  DecodingMode mode = DecodingMode::kUniform;
  uint32_t num_items = 0;      // items are 0 .. num_items - 1; public
  double lambda = 0;           // mixing: the share of q, 0 <= lambda < 1; see LambdaForEpsilon
  std::vector<double> mixing;  // kNonUniform: u, num_items positive numbers, normalised here; PUBLIC
  // kNonUniform without `mixing`: each request has its own distribution, in which no item of the support may be less
  // likely than this. Every sample is charged with this value, so the charge is fixed though distributions vary.
  double min_probability = 0;
  double clip = 0;         // base-anchored and aggregate: c > 0, in logits
  double temperature = 1;  // of the softmax: of q before mixing; base-anchored: tau
  uint32_t top_k = 0;      // of q, before mixing; 0: all
  double nucleus = 1;      // of q, before mixing: 0 < share <= 1; 1: all
  uint32_t contexts = 0;   // kAggregate: B, 1 to kMostContexts, a public number
  DecodingNeed need = {};  // FindNeed(the scored model)

  privacy::Ledger* ledger = nullptr;  // of the training data; must outlive the sampler; may be null for kPlain
  std::string run;
  // Samples that are charged together. What was charged is spent, sampled or not. A sample that a block does not cover
  // (a larger support) opens a new block, and the rest of the old one is lost.
  uint32_t samples_per_charge = 1;
  ChargeFor charge_for = ChargeFor::kSupportLeft;
  std::optional<uint64_t> reproducible_seed = std::nullopt;  // if set, samples repeat and there is NO guarantee

  Selection selection = Selection::kSample;
  AfterMixing after_mixing = AfterMixing::kNothing;
  SampleOutput output = SampleOutput::kItems;
};

// Spans are read only during the call.
struct SampleRequest {
  std::span<const float> scores;  // [num_items], from the private model; any value is accepted
  // [num_items]. Base-anchored: from the public model; aggregate: from the public context. An item with score -inf is
  // not in the support.
  std::span<const float> base_scores = {};
  // [num_items], aggregate, in place of `scores`: the sum of AddClipped over contexts
  std::span<const int64_t> sums = {};
  // [num_items], if the sampler has a min_probability: u, PUBLIC, positive over the support. Only for one sample.
  std::span<const double> mixing = {};
  std::span<const int32_t> candidates = {};  // the support, a public list; empty: the whole catalogue
  std::span<const int32_t> excluded = {};    // removed from the support, such as the items of the prompt; public too
  size_t count = 1;
  SupportOrigin support_origin = SupportOrigin::kPublic;
  // The most samples that may still follow, including these: a new block is no larger. 0: unknown.
  uint32_t at_most = 0;
};

// The cost of one sample from at most this many items, whatever the model says; kNothing for kPlain.
SampleCost MaxSampleCost(const PrivateSamplerOptions& options, uint64_t support);

// Only one thread at a time may use it. In a forked process a sample that is charged is refused: parent and child would
// both sample on what one of them paid for.
class PrivateSampler {
 public:
  // kPrivacyRefused: the options void the guarantee or have none. kInvalidArgument: a number is out of range. kIo:
  // there are no secure random numbers.
  static Result<PrivateSampler> Create(PrivateSamplerOptions options);

  // Returns `count` distinct items in the order sampled; fewer if the support is smaller. All samples are charged
  // before the first random number. After any error no item is returned and no random number was drawn; charges made
  // until then stay (kPrivacyRefused: the limit). Errors depend on public values and on the ledger, never on `scores`.
  Result<std::vector<int32_t>> Sample(const SampleRequest& request);

  // The charge of each of `count` samples from a support of these items.
  std::vector<SampleCost> ComputeCosts(std::span<const int32_t> support, size_t count) const;

  // Samples that this sampler has paid for, made or not.
  uint64_t samples_charged() const { return samples_charged_; }
  // Samples that were paid for and are not made yet.
  uint64_t samples_left_in_block() const { return block_left_; }
  // RandomStream::position().
  uint64_t random_position() const { return random_.position(); }

 private:
  PrivateSampler(PrivateSamplerOptions options, privacy::RandomStream random);
  Status CheckRequest(const SampleRequest& request) const;
  Status CheckReach(std::span<const float> base_scores) const;
  std::vector<int32_t> ChooseSupport(const SampleRequest& request) const;
  Status CheckMixture(const SampleRequest& request, std::span<const int32_t> support) const;
  Status Pay(std::span<const SampleCost> costs, uint32_t at_most);
  std::vector<int32_t> SampleDistinct(const SampleRequest& request, std::vector<int32_t> support);
  std::vector<int32_t> SampleAnchored(const SampleRequest& request, std::vector<int32_t> left);

  PrivateSamplerOptions options_;
  privacy::RandomStream random_;
  std::vector<double> u_;       // IntegerWeights of options_.mixing
  SampleCost whole_catalogue_;  // cost of a sample from all items
  SampleCost block_;            // the cost that the remaining samples were paid at
  uint64_t block_left_ = 0;
  uint64_t samples_charged_ = 0;
  Origin origin_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_PRIVATE_SAMPLING_H_
