// The utility of private samples: the probability that the next item is the one sampled, and its perplexity over many
// users.
//
//   Perplexity sum;
//   for each test user: sum.Add(ItemProbability({.mode = DecodingMode::kUniform, .lambda = lambda}, {scores}, support,
//       target));
//   sum.Value();   // exp(mean of -log probability): the support's size for lambda 0, the model's own for kPlain
//
// This is the law of PrivateSampler's first sample: over the support without the history, with q and u renormalised
// over it.
//
// These figures are not private. They are computed from private scores and held-out items. Use them for experiments on
// public data, and never show them to anyone from whom the records must be protected.
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_DECODING_QUALITY_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_DECODING_QUALITY_H_

#include <cstdint>
#include <span>

#include "runtime/private_sampling/private_sampling.h"

namespace wisp {

struct ItemLaw {
  DecodingMode mode = DecodingMode::kPlain;  // not kNonUniform
  double lambda = 0;                         // kUniform
  double clip = 0;                           // kBaseAnchored
  double temperature = 1;
};

// Scores of all items [num_items]. kBaseAnchored centres them on the base's scores, as PrivateRecommender does.
struct ItemScores {
  std::span<const float> model;
  std::span<const float> base = {};  // kBaseAnchored only
};

// The probability that the first sample from `support` (distinct items, at least one) is `target`; 0 if `target` is not
// in it.
double ItemProbability(const ItemLaw& law, const ItemScores& scores, std::span<const int32_t> support, int32_t target);

class Perplexity {
 public:
  void Add(double probability);
  // Infinite if one probability was 0. NaN if nothing was added.
  double Value() const;
  uint64_t count() const { return count_; }

 private:
  double surprise_ = 0;
  uint64_t count_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_DECODING_QUALITY_H_
