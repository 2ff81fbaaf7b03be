// Built for speed: a loop over every token's score.
#include "runtime/text/token_sampler.h"

#include <algorithm>
#include <cmath>

namespace wisp {
namespace {

Status CheckRange(const char* name, double value, double low, double high) {
  if (value >= low && value <= high) return OkStatus();
  return InvalidArgument(name, " is ", value, ", allowed are ", low, " to ", high);
}

}  // namespace

Status Validate(const SamplingOptions& o) {
  WISP_RETURN_IF_ERROR(CheckRange("temperature", o.temperature, 0, 100));
  WISP_RETURN_IF_ERROR(CheckRange("top_p", o.top_p, 1e-6, 1));
  WISP_RETURN_IF_ERROR(CheckRange("min_p", o.min_p, 0, 1));
  return CheckRange("repetition_penalty", o.repetition_penalty, 0.1, 10);
}

// SplitMix64 (Steele, Lea, Flood 2014).
double TokenSampler::Uniform() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// Penalises each token once, however often it occurs.
void TokenSampler::Penalise(std::span<float> scores, std::span<const int32_t> history) {
  if (options_.repetition_penalty == 1) return;
  seen_.assign(history.begin(), history.end());
  std::sort(seen_.begin(), seen_.end());
  seen_.erase(std::unique(seen_.begin(), seen_.end()), seen_.end());
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  for (const int32_t token : seen_) {
    float& score = scores[static_cast<size_t>(token)];
    score = score > 0 ? score / penalty : score * penalty;
  }
}

double TokenSampler::Narrow(std::span<const float> scores) {
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.token < b.token;
  };
  candidates_.resize(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) candidates_[i] = {scores[i], static_cast<int32_t>(i)};
  if (options_.top_k > 0 && options_.top_k < candidates_.size()) {
    const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(options_.top_k);
    std::nth_element(candidates_.begin(), end, candidates_.end(), likelier);
    candidates_.erase(end, candidates_.end());
  }
  const float largest = std::min_element(candidates_.begin(), candidates_.end(), likelier)->score;
  double total = 0;
  for (Candidate& c : candidates_) {
    c.score = static_cast<float>(std::exp(static_cast<double>(c.score - largest) / options_.temperature));
    total += static_cast<double>(c.score);
  }
  if (options_.top_p >= 1) return total;
  // Takes the most likely ones off a heap, one by one: they are far fewer than all.
  const auto less_likely = [&](const Candidate& a, const Candidate& b) { return likelier(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
  double kept = 0;
  size_t count = 0;
  while (count < candidates_.size() && kept < options_.top_p * total) {
    const auto end = candidates_.end() - static_cast<std::ptrdiff_t>(count);
    std::pop_heap(candidates_.begin(), end, less_likely);
    kept += static_cast<double>((end - 1)->score);
    ++count;
  }
  candidates_.erase(candidates_.begin(), candidates_.end() - static_cast<std::ptrdiff_t>(count));
  return kept;
}

int32_t TokenSampler::Sample(std::span<float> scores, std::span<const int32_t> history) {
  Penalise(scores, history);
  if (options_.temperature == 0)
    return static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  double total = Narrow(scores);
  if (options_.min_p > 0) {
    // The most likely token has score 1.
    std::erase_if(candidates_, [&](const Candidate& c) { return static_cast<double>(c.score) < options_.min_p; });
    total = 0;
    for (const Candidate& c : candidates_) total += static_cast<double>(c.score);
  }
  double left = Uniform() * total;
  for (const Candidate& c : candidates_) {
    left -= static_cast<double>(c.score);
    if (left < 0) return c.token;
  }
  return candidates_.back().token;
}

}  // namespace wisp
