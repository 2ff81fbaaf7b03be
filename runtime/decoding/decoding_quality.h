// What private draws are worth: the probability that the next item is the one drawn, and its perplexity over many
// users.
//
//   Perplexity sum;
//   for each test user: sum.Add(ItemProbability({.mode = DecodingMode::kUniform, .lambda = lambda}, {scores}, support,
//       target));
//   sum.Value();   // exp(mean of -log probability): the support's size for lambda 0, the model's own for kPlain
//
// The law is the one that PrivateSampler makes its first draw from: over the support that is left when the history was
// taken out, with q and u renormalised over it.
//
// What it is not: private. These figures are computed from the private scores and from held-out items: they are for
// experiments on public data and are never shown to anyone whose records must be protected.
#ifndef WISP_RUNTIME_DECODING_DECODING_QUALITY_H_
#define WISP_RUNTIME_DECODING_DECODING_QUALITY_H_

#include <cstdint>
#include <span>

#include "runtime/decoding/private_sampling.h"

namespace wisp {

struct ItemLaw {
  DecodingMode mode = DecodingMode::kPlain;  // not kNonUniform
  double lambda = 0;                         // kUniform
  double clip = 0;                           // kBaseAnchored
  double temperature = 1;
};

// Of all items [num_items]. kBaseAnchored centres the scores on the base's, as PrivateRecommender does.
struct ItemScores {
  std::span<const float> model;
  std::span<const float> base = {};  // kBaseAnchored only
};

// That the first draw from `support` (distinct items, at least one) is `target`; 0 where it is not in the support.
double ItemProbability(const ItemLaw& law, const ItemScores& scores, std::span<const int32_t> support, int32_t target);

class Perplexity {
 public:
  void Add(double probability);
  // Infinite as soon as one probability was 0; NaN without any.
  double Value() const;
  uint64_t count() const { return count_; }

 private:
  double surprise_ = 0;
  uint64_t count_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_DECODING_QUALITY_H_
