// Replaces Highway's library in products: finds which instruction sets the processor has and whose registers the system
// saves. Processors other than x86 have what the compiler targets.
//
// Highway's library would measure a timer at every program start, which takes longer than the rest of the start
// (docs/performance.md). An app that links Highway keeps its answers, because nothing here uses Highway's names.
#include "kernels/simd/processor.h"

#include "hwy/targets.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

#include <cstdint>
#include <initializer_list>

namespace wisp::kernels {
#if HWY_ARCH_X86
namespace {

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
  bool HasAll(unsigned Leaf::*word, std::initializer_list<int> bits) const {
    for (int bit : bits) {
      if ((this->*word >> bit & 1) == 0) return false;
    }
    return true;
  }
};

Leaf Ask(unsigned leaf) {
  Leaf answer;
  __get_cpuid_count(leaf, 0, &answer.a, &answer.b, &answer.c, &answer.d);
  return answer;
}

// XCR0: the registers that the system saves when it switches between programs.
unsigned SavedRegisters() {
  unsigned low = 0, high = 0;
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));  // XGETBV
  return low;
}

}  // namespace

// Bits are those of Intel's manual, volume 2, CPUID.
int64_t FoundTargets() {
  const Leaf basic = Ask(1), more = Ask(7), extended = Ask(0x80000001u);
  // SSE3, PCLMULQDQ, SSSE3, SSE4.1, SSE4.2, AES: Highway's SSE4.
  if (!basic.HasAll(&Leaf::c, {0, 1, 9, 19, 20, 25})) return HWY_SCALAR;
  int64_t targets = HWY_SCALAR | HWY_SSE4;
  // FMA, OSXSAVE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT.
  if (!basic.HasAll(&Leaf::c, {12, 27, 28, 29}) || !more.HasAll(&Leaf::b, {3, 5, 8}) ||
      !extended.HasAll(&Leaf::c, {5}) || (SavedRegisters() & 0x6) != 0x6)
    return targets;
  targets |= HWY_AVX2;
  // AVX-512 F, DQ, BW, VL; masks and both halves of the registers.
  if (more.HasAll(&Leaf::b, {16, 17, 30, 31}) && (SavedRegisters() & 0xe6) == 0xe6) targets |= HWY_AVX3;
  return targets;
}
#else
int64_t FoundTargets() { return HWY_STATIC_TARGET; }
#endif
}  // namespace wisp::kernels
