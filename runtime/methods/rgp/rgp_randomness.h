// The public randomness of RGP's carriers. Each step has its own, whatever was drawn before.
#ifndef WISP_RUNTIME_METHODS_RGP_RGP_RANDOMNESS_H_
#define WISP_RUNTIME_METHODS_RGP_RGP_RANDOMNESS_H_

#include <cstdint>
#include <functional>

#include "runtime/privacy/noise/random.h"

namespace wisp {

class RgpRandomness {
 public:
  explicit RgpRandomness(uint64_t seed)
      : random_(privacy::RandomStream::Reproducible(seed, privacy::StreamPurpose::kCarriers)) {}

  // Returns a source of standard normal numbers for a step, valid until the next call.
  std::function<float()> OfStep(uint64_t step) {
    (void)random_.Seek(step * kWordsPerStep);  // cannot fail: a reproducible stream can always seek
    return [this] { return static_cast<float>(random_.Normal()); };
  }

 private:
  static constexpr uint64_t kWordsPerStep = uint64_t{1} << 40;  // far more than any step draws
  privacy::RandomStream random_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_RGP_RGP_RANDOMNESS_H_
