// Built for speed: noise for every coordinate of a step.
#include "runtime/privacy/noise/noise_process.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/core/fork.h"
#include "runtime/privacy/noise/correlated_noise.h"
#include "runtime/privacy/noise/discrete_gaussian.h"

namespace wisp::privacy {
namespace {

// Independent noise in each step.
class GaussianNoise final : public NoiseProcess {
 public:
  explicit GaussianNoise(const NoiseOptions& options) : options_(options) {}

  void Add(uint64_t step, const ExactGrid& grid, uint64_t, std::span<int64_t> sum, RandomStream& noise) override {
    AddDiscreteGaussian(noise, options_.GetSigma(step, grid), sum);
  }

 private:
  NoiseOptions options_;
};

// The noise of step s is z_s - r(lambda z_(s-1)), rounded, with z_(-1) = 0 (correlated_noise.h). z_(s-1) is not kept:
// it is drawn again, from the key of its step, which lies in memory until the next step and is never saved. A process
// that resumes has no such key, and begins anew, as in a first step.
class CorrelatedNoise final : public NoiseProcess {
 public:
  explicit CorrelatedNoise(const NoiseOptions& options) : options_(options), taken_back_(options.lambda) {}

  void Begin(RandomStream& noise) override {
    const uint32_t forks = num_forks.load(std::memory_order_relaxed);
    // A forked child takes nothing back of what its parent drew.
    before_ = forks == forks_ ? now_ : std::nullopt;
    forks_ = forks;
    now_ = noise.NextKey();
  }

  void Add(uint64_t step, const ExactGrid& grid, uint64_t first, std::span<int64_t> sum, RandomStream&) override {
    const uint64_t sigma = options_.GetSigma(step, grid);
    Scratch scratch = Take();
    scratch.stream.Become(*now_, first);
    AddDiscreteGaussian(scratch.stream, sigma, sum);
    if (before_) {
      scratch.before.assign(sum.size(), 0);
      scratch.stream.Become(*before_, first);
      AddDiscreteGaussian(scratch.stream, sigma, scratch.before);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] -= taken_back_.Of(scratch.before[i]);
      scratch.before.assign(sum.size(), 0);
    }
    Give(std::move(scratch));
  }

 private:
  // One thread's stream and numbers, kept from one range to the next.
  struct Scratch {
    RandomStream stream = RandomStream::Reproducible(0, StreamPurpose::kNoise);
    std::vector<int64_t> before;
  };
  Scratch Take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return {};
    Scratch scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }
  void Give(Scratch scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

  NoiseOptions options_;
  PartTakenBack taken_back_;
  uint32_t forks_ = num_forks.load(std::memory_order_relaxed);
  std::optional<RandomStream::Key> before_, now_;
  std::mutex mutex_;
  std::vector<Scratch> free_;
};

}  // namespace

double NoiseOptions::GetRatio(uint64_t step) const {
  double ratio = 1;
  for (const Level& level : levels) {
    if (level.first_step > step) break;
    ratio = level.ratio;
  }
  return ratio;
}

uint64_t NoiseOptions::GetSigma(uint64_t step, const ExactGrid& grid) const {
  const CorrelatedRun run{PartTakenBack(lambda).lambda(), grid.num_coordinates(), num_steps};
  return grid.sigma_in_steps(GetMultiplier(step), CorrelatedRoundingShift(run));
}

std::unique_ptr<NoiseProcess> MakeNoiseProcess(const NoiseOptions& options) {
  if (options.lambda > 0) return std::make_unique<CorrelatedNoise>(options);
  return std::make_unique<GaussianNoise>(options);
}

}  // namespace wisp::privacy
