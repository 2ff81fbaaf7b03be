// Preloaded, it makes the program find only the instruction sets up to the one that WISP_TARGETS names (in Highway's
// names). "list" names those that this processor has and the program is built for.
#include <hwy/targets.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int64_t kBuiltFor = HWY_AVX3 | HWY_AVX2 | HWY_SSE4 | HWY_NEON;

struct Choice {
  Choice() {
    const char* wanted = std::getenv("WISP_TARGETS");
    if (wanted == nullptr) return;
    const int64_t supported = hwy::SupportedTargets();
    for (int64_t left = supported & kBuiltFor; left != 0; left &= left - 1) {
      const int64_t target = left & -left;
      if (std::strcmp(wanted, "list") == 0) std::fprintf(stderr, "target: %s\n", hwy::TargetName(target));
      // A lower bit is a better target: this keeps the wanted one and all worse ones.
      if (std::strcmp(wanted, hwy::TargetName(target)) == 0) hwy::SetSupportedTargetsForTest(supported & ~(target - 1));
    }
  }
} choice;

}  // namespace
