// For programs and tests of this build: asks Highway's own library, and lets the environment restrict the instruction
// sets, so that one processor can measure and test the kernels of others. Products use kernels/stand_in/.
//
//   WISP_TARGETS=AVX2    finds only the sets up to the one with this name. Names are Highway's: AVX3, AVX2, SSE4.
//                        AVX2+VNNI finds the products of 8-bit integers too, which AVX2 alone hides.
#include "kernels/simd/processor.h"

#include "hwy/targets.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace wisp::kernels {
namespace {

// It runs before the program starts, because Highway keeps the sets that it is first asked for.
struct Limit {
  Limit() {
    const char* wanted = std::getenv("WISP_TARGETS");
    if (wanted == nullptr || *wanted == 0) return;
    const int64_t supported = hwy::SupportedTargets();
    bool is_found = false;
    std::string allowed;
    for (int64_t left = supported & (HWY_TARGETS); left != 0; left &= left - 1) {
      const int64_t target = left & -left;
      const std::string name = hwy::TargetName(target);
      const bool with_vnni = target == HWY_AVX2 && wanted == name + "+VNNI";
      allowed += (allowed.empty() ? "" : ", ") + name + (target == HWY_AVX2 ? ", AVX2+VNNI" : "");
      if (wanted != name && !with_vnni) continue;
      is_found = true;
      // A lower bit is a better target: this keeps the wanted one and all worse ones.
      hwy::SetSupportedTargetsForTest(supported & ~(target - 1));
      if (target == HWY_AVX2 && !with_vnni) hidden = kHiddenVnni;
    }
    // Processors other than x86 have one set, whatever is wanted (kernels/simd/processor.cc).
    if (is_found || !HWY_ARCH_X86) return;
    const std::string sentence =
        std::string("WISP_TARGETS is '") + wanted + "', allowed on this processor are " + allowed;
    std::fputs((sentence + "\n").c_str(), stderr);
    std::_Exit(2);
  }
  int64_t hidden = 0;
} limit;

}  // namespace

int64_t FoundTargets() { return hwy::SupportedTargets() | limit.hidden; }

}  // namespace wisp::kernels
