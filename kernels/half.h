// Half-precision numbers (IEEE 754 binary16), the format of models' float16 tables: two bytes, converted to float32 as
// they are read.
//
// 11 bits of precision; magnitudes from 2^-24 to 65504. Every float16 is exactly a float32.
#ifndef WISP_KERNELS_HALF_H_
#define WISP_KERNELS_HALF_H_

#include <bit>
#include <cstdint>

namespace wisp::kernels {

struct Half {
  uint16_t bits;
};
static_assert(sizeof(Half) == 2);

inline constexpr float kLargestHalf = 65504.0f;

constexpr bool IsFinite(Half h) { return (h.bits & 0x7c00) != 0x7c00; }

constexpr float ToFloat(Half h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16, exponent = h.bits >> 10 & 31,
                 fraction = h.bits & 1023;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

// Rounds to nearest, ties to even. The result is infinite from 65520 on; NaN stays NaN.
constexpr Half ToHalf(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
  uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00;
  } else if (magnitude >= std::bit_cast<uint32_t>(65520.0f)) {
    half = 0x7c00;
  } else if (magnitude < std::bit_cast<uint32_t>(0x1p-14f)) {
    // Above 0.5 a float's last place is 2^-24, the step of the smallest float16 numbers: the addition rounds.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  } else {
    half = ((magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13) - (112u << 10);
  }
  return {static_cast<uint16_t>(sign | half)};
}

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_HALF_H_
