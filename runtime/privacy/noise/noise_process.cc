// Built for speed: noise for every coordinate of a step.
#include "runtime/privacy/noise/noise_process.h"

#include "runtime/privacy/noise/discrete_gaussian.h"

namespace wisp::privacy {
namespace {

// Independent noise of one size in each step.
class GaussianNoise final : public NoiseProcess {
 public:
  explicit GaussianNoise(const NoiseOptions& options) : options_(options) {}

  void Add(uint64_t, const ExactGrid& grid, uint64_t, std::span<int64_t> sum, RandomStream& noise) const override {
    AddDiscreteGaussian(noise, grid.sigma_in_steps(options_.multiplier), sum);
  }

 private:
  NoiseOptions options_;
};

}  // namespace

std::unique_ptr<NoiseProcess> MakeNoiseProcess(const NoiseOptions& options) {
  return std::make_unique<GaussianNoise>(options);
}

}  // namespace wisp::privacy
