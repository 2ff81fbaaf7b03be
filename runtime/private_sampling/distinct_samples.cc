// Built for speed: loops over the catalogue for every sample.
#include "runtime/private_sampling/distinct_samples.h"

#include <algorithm>
#include <bit>

namespace wisp {
namespace {

using privacy::RandomStream;
using Wide = unsigned __int128;

// Uniform on {0, ..., n - 1} without bias: draws enough bits for n - 1, and draws again while the result is not below
// n. Needs at most two tries on average.
Wide UniformBelowWide(RandomStream& random, Wide n) {
  const uint64_t high = static_cast<uint64_t>((n - 1) >> 64);
  if (high == 0 && static_cast<uint64_t>(n) != 0) return random.UniformBelow(static_cast<uint64_t>(n));
  const uint64_t mask = high == 0 ? 0 : ~uint64_t{0} >> std::countl_zero(high);
  for (;;) {
    const Wide word = static_cast<Wide>(random.NextU64() & mask) << 64 | random.NextU64();
    if (word < n) return word;
  }
}

// Converts a double that is an integer from 0 to 2^127 exactly, by shifting its mantissa.
Wide ToInteger(double integer) {
  if (integer == 0) return 0;
  const uint64_t bits = std::bit_cast<uint64_t>(integer);
  const uint64_t mantissa = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  const int shift = static_cast<int>(bits >> 52) - 1075;
  return shift >= 0 ? static_cast<Wide>(mantissa) << shift : static_cast<Wide>(mantissa >> -shift);
}

// The exact sum of up to 32 integers of up to 2^96. Each is split in two: h = w / 2^48, rounded to an integer by adding
// and subtracting 1.5 * 2^52, and l = w - 2^48 h. Both parts are integers in double: the sum of 16 h <= 2^48 stays
// within 2^52, of 16 |l| <= 2^47 within 2^51. The compiler's conversion of each weight, a library call, would be the
// slowest part of a sample among 3,416 items.
Wide SumIntegers(const double* weights, size_t n) {
  constexpr double kRound = 0x1.8p52, kDown = 0x1p-48, kUp = 0x1p48;
  double high[2] = {0, 0}, low[2] = {0, 0};
  size_t i = 0;
  for (; i + 2 <= n; i += 2) {
    for (size_t k = 0; k < 2; ++k) {
      const double h = (weights[i + k] * kDown + kRound) - kRound;
      high[k] += h;
      low[k] += weights[i + k] - h * kUp;
    }
  }
  Wide sum = i < n ? ToInteger(weights[i]) : 0;
  for (size_t k = 0; k < 2; ++k)
    sum += static_cast<Wide>(static_cast<int64_t>(high[k])) * (Wide{1} << 48) +
           static_cast<Wide>(static_cast<int64_t>(low[k]));
  return sum;
}

}  // namespace

void ExactLaw::Assign(std::span<const double> integer_weights) {
  weights_.assign(integer_weights.begin(), integer_weights.end());
  sums_.clear();
  total_ = 0;
  for (size_t i = 0; i < weights_.size(); i += kBlock) {
    sums_.push_back(SumIntegers(weights_.data() + i, std::min(kBlock, weights_.size() - i)));
    total_ += sums_.back();
  }
}

size_t ExactLaw::Sample(RandomStream& random) const {
  Wide point = UniformBelowWide(random, total_);
  size_t i = 0;
  for (; point >= sums_[i / kBlock]; i += kBlock) point -= sums_[i / kBlock];
  for (Wide weight = ToInteger(weights_[i]); point >= weight; weight = ToInteger(weights_[++i])) point -= weight;
  return i;
}

void ExactLaw::Remove(size_t index) {
  const Wide weight = ToInteger(weights_[index]);
  total_ -= weight;
  sums_[index / kBlock] -= weight;
  weights_[index] = 0;
}

void ApproximateLaw::Assign(std::span<const double> weights) {
  weights_.assign(weights.begin(), weights.end());
  sums_.resize((weights.size() + kBlock - 1) / kBlock);
  for (size_t b = 0; b < sums_.size(); ++b) sums_[b] = GetSum(b);
}

double ApproximateLaw::GetSum(size_t block) const {
  double sum = 0;
  const size_t end = std::min(weights_.size(), (block + 1) * kBlock);
  for (size_t i = block * kBlock; i < end; ++i) sum += weights_[i];
  return sum;
}

// If rounding carries the point past the end, takes the last weight above 0.
size_t ApproximateLaw::Sample(RandomStream& random) const {
  double total = 0;
  for (double sum : sums_) total += sum;
  double point = random.UniformDouble() * total;
  size_t block = sums_.size();
  for (size_t b = 0; b < sums_.size(); ++b) {
    if (!(sums_[b] > 0)) continue;
    if (block < sums_.size()) point -= sums_[block];
    block = b;
    if (point < sums_[b]) break;
  }
  size_t last = size();
  const size_t end = std::min(size(), (block + 1) * kBlock);
  for (size_t i = block * kBlock; i < end; ++i) {
    if (!(weights_[i] > 0)) continue;
    last = i;
    if (point < weights_[i]) break;
    point -= weights_[i];
  }
  return last;
}

void ApproximateLaw::Remove(size_t index) {
  weights_[index] = 0;
  sums_[index / kBlock] = GetSum(index / kBlock);
}

void MixedLaw::Assign(double lambda, std::span<const double> q, std::span<const double> u) {
  lambda_ = lambda;
  q_.Assign(q);
  uniform_ = u.empty();
  if (!uniform_) u_.Assign(u);
  removed_.assign(q.size(), 0);
}

// Uniform over the remaining indices: samples from all indices until it finds one that was not removed.
size_t MixedLaw::SamplePublic(RandomStream& random) const {
  if (!uniform_) return u_.Sample(random);
  for (;;) {
    const size_t index = random.UniformBelow(removed_.size());
    if (removed_[index] == 0) return index;
  }
}

size_t MixedLaw::Sample(RandomStream& random) const {
  if (random.Bernoulli(lambda_)) {
    const size_t index = q_.Sample(random);
    if (index < q_.size()) return index;
  }
  return SamplePublic(random);
}

void MixedLaw::Remove(size_t index) {
  q_.Remove(index);
  if (!uniform_) u_.Remove(index);
  removed_[index] = 1;
}

}  // namespace wisp
