// Recommending from a model that was trained without a guarantee, privately: every item drawn is a mechanism of its
// own, charged to the ledger before a random number of it is drawn (docs/algorithms.md, section 7; Majmudar et al.
// 2022).
//
// What is protected: the records the scored weights were trained on. What is not: the prompt (the history given now),
// the support, the number of items asked for, when one stops (which may depend on drawn items only), and time
// (draw_law.h). Released are the drawn items, in the order they were drawn; never scores, probabilities or a ranking by
// them.
//
//   WISP_ASSIGN_OR_RETURN(PrivateSampler sampler, PrivateSampler::Create({.mode = DecodingMode::kUniform,
//       .num_items = n, .lambda = 1e-3, .ledger = &ledger, .run = "recommendations", .draws_per_charge = 100}));
//   WISP_RETURN_IF_ERROR(session.Score(history, scores));
//   WISP_ASSIGN_OR_RETURN(auto items, sampler.Draw({.scores = scores, .excluded = history, .count = 10}));
//
// k distinct items are k draws without replacement from what is left of the support, q and u renormalised over it. The
// lifetime number of draws is not a parameter: it is whatever the ledger's limit (epsilon, delta) pays for, over all
// queries.
//
// base-anchored: softmax((b + clip(f - b, -c, c)) / tau), b the scores of a PUBLIC model (the one that was shipped;
// that it is public is the caller's word), f of the fine-tuned one. A constant added to all f is not taken out: it eats
// into the clip. As any function of f may be clipped, a caller may shift f as it likes beforehand, by its own mean over
// the items say, for free.
//
// What it is not: for weights with a guarantee (decoding_need.h): those may be sampled, ranked and shown freely.
#ifndef WISP_RUNTIME_DECODING_PRIVATE_SAMPLING_H_
#define WISP_RUNTIME_DECODING_PRIVATE_SAMPLING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/decoding/decoding_need.h"
#include "runtime/decoding/draw_cost.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

enum class DecodingMode {
  kUniform,       // lambda q + (1 - lambda) uniform over the support
  kNonUniform,    // the same with a public distribution
  kBaseAnchored,  // falls back to a public model, not to noise; epsilon does not depend on the support
  kAggregate,     // falls back to a public context; moved by the clipped sum over private ones (context_sum.h)
  kPlain,         // q itself, not charged: only where `need` is kFree
};
// Whether the mode clips how far the private scores may move from public ones.
inline bool HasClip(DecodingMode mode) {
  return mode == DecodingMode::kBaseAnchored || mode == DecodingMode::kAggregate;
}

// What a caller may wish for; with private decoding all but the first of each is refused, with the reason.
enum class Selection { kSample, kArgMax, kBeamSearch };
enum class AfterMixing { kNothing, kTemperature, kTopK, kNucleus };
enum class DrawOutput { kItems, kProbabilities };
enum class SupportOrigin { kPublic, kPrivateModel };

// With which support a draw is charged.
enum class ChargeFor {
  // The one it is drawn from: cheapest for short candidate lists. Charged one at a time under a limit, every draw with
  // another support asks the accountant again: 30 to 70 ms a draw at 1e4 items (2 cores, 2026-11-21) against 0.01 ms in
  // a block.
  kSupportLeft,
  // All items, which covers every draw: each charge is then the same mechanism whatever was drawn before, so
  // composing them needs no argument about parameters that were chosen adaptively, and blocks are never cut short.
  kWholeCatalogue,
};

struct PrivateSamplerOptions {
  DecodingMode mode = DecodingMode::kUniform;
  uint32_t num_items = 0;      // of the catalogue, public; items are 0 .. num_items - 1
  double lambda = 0;           // mixing: the share of q, 0 <= lambda < 1. LambdaForEpsilon gives one
  std::vector<double> mixing;  // kNonUniform: u, num_items positive numbers, normalised here; PUBLIC
  // kNonUniform without `mixing`: each request brings its own, and over its support none may be less likely in it than
  // this. Every draw is charged with it, so what is charged is fixed though distributions are not.
  double min_probability = 0;
  double clip = 0;         // base-anchored and aggregate: c > 0, in logits
  double temperature = 1;  // of the softmax: of q before mixing, or tau of base-anchored
  uint32_t top_k = 0;      // of q, before mixing; 0: all
  double nucleus = 1;      // of q, before mixing: 0 < share <= 1; 1: all
  uint32_t contexts = 0;   // kAggregate: B, 1 to kMostContexts, a public number
  DecodingNeed need = {};  // NeedOf(the scored model)

  privacy::Ledger* ledger = nullptr;  // of the training data; must outlive the sampler; not needed for kPlain
  std::string run;
  // Draws charged at a time. What was charged is spent, drawn or not. A draw that a block does not cover (a larger
  // support) opens another, and what was left of the old one is lost.
  uint32_t draws_per_charge = 1;
  ChargeFor charge_for = ChargeFor::kSupportLeft;
  std::optional<uint64_t> reproducible_seed = std::nullopt;  // set: draws repeat and there is NO guarantee

  Selection selection = Selection::kSample;
  AfterMixing after_mixing = AfterMixing::kNothing;
  DrawOutput output = DrawOutput::kItems;
};

// Spans are read during the call only.
struct DrawRequest {
  std::span<const float> scores;  // [num_items], from the private model; any values: none of them is an error
  // [num_items], base-anchored: from the public model, aggregate: of the public context; -inf takes an item out of the
  // support.
  std::span<const float> base_scores = {};
  std::span<const int64_t> sums = {};  // [num_items], aggregate, in the place of `scores`: AddClipped of each context
  // [num_items], where the sampler has a min_probability: u, PUBLIC; positive over the support. One draw.
  std::span<const double> mixing = {};
  std::span<const int32_t> candidates = {};  // the support, a public list; empty: the whole catalogue
  std::span<const int32_t> excluded = {};    // taken out of it, the items of the prompt say: public too
  size_t count = 1;
  SupportOrigin support_origin = SupportOrigin::kPublic;
  // So many draws may follow, these among them: a block that begins now is no larger. 0: nobody knows.
  uint32_t at_most = 0;
};

// The cost of one draw from so many items at most, whatever the model says; kNothing for kPlain.
DrawCost DearestDraw(const PrivateSamplerOptions& options, uint64_t support);

// Used by one thread at a time. In a process that was forked off a draw that costs is refused: parent and child would
// both draw on what one of them paid for.
class PrivateSampler {
 public:
  // kPrivacyRefused: what would void the guarantee, or has none. kInvalidArgument: numbers out of range. kIo: no secure
  // random numbers.
  static Result<PrivateSampler> Create(PrivateSamplerOptions options);

  // `count` distinct items in the order drawn, fewer when the support is smaller. All draws are charged before the
  // first random number. Whatever the error: no item, no random number; charges made until then stay (kPrivacyRefused:
  // the limit). Errors depend on public values and on the ledger, never on `scores`.
  Result<std::vector<int32_t>> Draw(const DrawRequest& request);

  // What `count` draws from a support of these items would be charged for, one by one.
  std::vector<DrawCost> CostsOf(std::span<const int32_t> support, size_t count) const;

  // Draws paid for by this sampler, made or not.
  uint64_t draws_charged() const { return draws_charged_; }
  // Draws paid for and not made.
  uint64_t draws_left_in_block() const { return block_left_; }
  // RandomStream::position().
  uint64_t random_position() const { return random_.position(); }

 private:
  PrivateSampler(PrivateSamplerOptions options, privacy::RandomStream random);
  Status CheckRequest(const DrawRequest& request) const;
  Status CheckReach(std::span<const float> base_scores) const;
  std::vector<int32_t> SupportOf(const DrawRequest& request) const;
  Status CheckMixture(const DrawRequest& request, std::span<const int32_t> support) const;
  Status Pay(std::span<const DrawCost> costs, uint32_t at_most);
  std::vector<int32_t> DrawDistinct(const DrawRequest& request, std::vector<int32_t> support);
  std::vector<int32_t> DrawAnchored(const DrawRequest& request, std::vector<int32_t> left);

  PrivateSamplerOptions options_;
  privacy::RandomStream random_;
  std::vector<double> u_;     // IntegerWeights of options_.mixing
  DrawCost whole_catalogue_;  // a draw from all items
  DrawCost block_;            // what the draws left were paid as
  uint64_t block_left_ = 0;
  uint64_t draws_charged_ = 0;
  Origin origin_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_PRIVATE_SAMPLING_H_
