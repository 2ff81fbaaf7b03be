// Samples the next token from the scores of all: temperature, truncation to the most likely tokens, repetition penalty.
//
//   TokenSampler sampler({.temperature = 0.8, .top_p = 0.95, .seed = 7});
//   const int32_t token = sampler.Sample(scores, history);
//
// The steps have the order of the package transformers: repetition, temperature, top_k, top_p, min_p. Not private: for
// sampling that is charged see runtime/private_sampling.
#ifndef WISP_RUNTIME_TEXT_TOKEN_SAMPLER_H_
#define WISP_RUNTIME_TEXT_TOKEN_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"

namespace wisp {

struct SamplingOptions {
  double temperature = 1;         // scores are divided by it; 0: takes the most likely token
  uint32_t top_k = 0;             // keeps this many of the most likely; 0: all
  double top_p = 1;               // keeps the fewest most likely with this probability together (Holtzman et al. 2020)
  double min_p = 0;               // keeps those with at least this share of the most likely one's probability
  double repetition_penalty = 1;  // tokens that occurred: scores above 0 are divided by it, others multiplied
  uint64_t seed = 1;              // equal seeds, scores and histories give equal tokens
};

// kInvalidArgument: describes the first option that is out of range.
Status Validate(const SamplingOptions& options);

class TokenSampler {
 public:
  // The options must be valid.
  explicit TokenSampler(const SamplingOptions& options) : options_(options), state_(options.seed) {}

  // Samples a token and overwrites `scores`. No score may be NaN, and at least one must be finite. `history` has the
  // tokens that occurred, each below scores.size(). Not thread-safe.
  int32_t Sample(std::span<float> scores, std::span<const int32_t> history);

 private:
  struct Candidate {
    float score;
    int32_t token;
  };
  void Penalise(std::span<float> scores, std::span<const int32_t> history);
  // Makes candidates_ those that top_k and top_p leave, in no fixed order, with softmax weights relative to the most
  // likely one. Returns the sum of these weights.
  double Narrow(std::span<const float> scores);
  double Uniform();  // in [0, 1)

  SamplingOptions options_;
  uint64_t state_;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> seen_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TEXT_TOKEN_SAMPLER_H_
