// How the next token is drawn from the scores of all: temperature, the most likely ones alone, fewer repetitions.
//
//   TokenSampler sampler({.temperature = 0.8, .top_p = 0.95, .seed = 7});
//   const int32_t token = sampler.Draw(scores, history);
//
// The order is that of the package transformers: repetition, temperature, top_k, top_p, min_p. What it is not: private.
// Draws that are charged: runtime/decoding.
#ifndef WISP_RUNTIME_INFERENCE_TOKEN_SAMPLER_H_
#define WISP_RUNTIME_INFERENCE_TOKEN_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"

namespace wisp {

struct SamplingOptions {
  double temperature = 1;  // scores are divided by it; 0: the most likely token is taken
  uint32_t top_k = 0;      // so many of the most likely ones; 0: all
  double top_p = 1;        // the fewest most likely ones with so much probability together (Holtzman et al. 2020)
  double min_p = 0;        // those with at least so much of the most likely one's probability
  double repetition_penalty = 1;  // tokens that are there already: scores above 0 are divided by it, others multiplied
  uint64_t seed = 1;              // the same seed, scores and history give the same tokens
};

// kInvalidArgument: the first option that is out of range.
Status Validate(const SamplingOptions& options);

class TokenSampler {
 public:
  // The options must be valid.
  explicit TokenSampler(const SamplingOptions& options) : options_(options), state_(options.seed) {}

  // A token of the scores, which are changed; none is NaN, and one at least is finite. `history`: tokens that are there
  // already, each below scores.size(). Not thread-safe.
  int32_t Draw(std::span<float> scores, std::span<const int32_t> history);

 private:
  struct Candidate {
    float score;
    int32_t token;
  };
  void Penalise(std::span<float> scores, std::span<const int32_t> history);
  // The candidates that top_k and top_p leave, the most likely one first; and what all of them have together.
  double Narrow(std::span<const float> scores);
  double Uniform();  // from 0, below 1

  SamplingOptions options_;
  uint64_t state_;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> seen_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_TOKEN_SAMPLER_H_
