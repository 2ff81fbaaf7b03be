// Numbers of few bits, and their multiplication by a warp on tensor cores.
//
// A word is 32 bits: one tf32, two 16-bit floats, or four 8-bit integers that are neighbours along the inner index.
// Counted in words, all of them have the same layout in the registers of a warp (PTX ISA, "matrix fragments for
// mma.m16n8k8" and its wider forms). With g = lane / 4 and t = lane % 4, for a product of 16 rows, 8 columns and 8
// words:
//
//   a[0] row g, word t      a[1] row g + 8, word t      a[2] row g, word t + 4      a[3] row g + 8, word t + 4
//   b[0] column g, word t   b[1] column g, word t + 4
//   c[0] row g, column 2t   c[1] row g, column 2t + 1   c[2] row g + 8, column 2t   c[3] row g + 8, column 2t + 1
//
// Sums are floats or 32-bit integers. An element's terms and their order depend only on its own row and column.
#ifndef WISP_KERNELS_CUDA_TENSOR_CORE_H_
#define WISP_KERNELS_CUDA_TENSOR_CORE_H_

#include <bit>

#include "kernels/cuda/device_code.h"
#include "kernels/cuda/half.h"

namespace wisp::kernels::cuda {

__device__ inline uint32_t GetBits(float x) {
#ifdef __CUDACC__
  return __float_as_uint(x);
#else
  return std::bit_cast<uint32_t>(x);
#endif
}

__device__ inline float BitsToFloat(uint32_t bits) {
#ifdef __CUDACC__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

inline constexpr uint32_t kNotANumber = 0x7fc00000;

// True for infinity and NaN.
__device__ inline bool IsSpecial(uint32_t bits) { return (bits & 0x7f800000) == 0x7f800000; }

__device__ inline uint32_t HalfBitsOf(float x) {
#ifdef __CUDACC__
  return __half_as_ushort(__float2half_rn(x));
#else
  return ToHalf(x).bits;
#endif
}

#ifndef __CUDACC__
// The instruction, emulated by shuffles: each lane sums its four elements from the words that the lanes hold.
template <class Number>
void EmulateMultiply(typename Number::Sum (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  struct Pair {
    uint32_t first, second;
  };
  const unsigned g = Lane() / 4, t = Lane() % 4;
  for (unsigned half = 0; half < 2; ++half) {
    for (unsigned w = 0; w < 4; ++w) {
      const Pair rows = __shfl_sync(kWholeWarp, Pair{a[2 * half], a[2 * half + 1]}, 4 * g + w);
      const uint32_t left = __shfl_sync(kWholeWarp, b[half], 4 * (2 * t) + w);
      const uint32_t right = __shfl_sync(kWholeWarp, b[half], 4 * (2 * t + 1) + w);
      c[0] = Number::AddProducts(c[0], rows.first, left);
      c[1] = Number::AddProducts(c[1], rows.first, right);
      c[2] = Number::AddProducts(c[2], rows.second, left);
      c[3] = Number::AddProducts(c[3], rows.second, right);
    }
  }
}
#endif

// ---- The kinds of numbers. Word converts kPerWord floats to a word; only integers use `factor`. ---------------------

// A float without its last 13 bits: 11 bits of precision, the range of float32.
struct Tf32 {
  static constexpr unsigned kPerWord = 1;
  static constexpr bool kScaled = false;
  using Sum = float;

  // Rounds to nearest, ties away from zero.
  static __device__ uint32_t Word(const float (&x)[1], float) {
    const uint32_t bits = GetBits(x[0]);
    if (IsSpecial(bits)) return (bits & 0x7fffff) != 0 ? kNotANumber : bits;
    return (bits + 0x1000) & 0xffffe000;
  }
  static __device__ void Multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    EmulateMultiply<Tf32>(c, a, b);
#endif
  }
  static __device__ float AddProducts(float sum, uint32_t a, uint32_t b) {
    return fmaf(BitsToFloat(a), BitsToFloat(b), sum);
  }
};

// IEEE 754 binary16: 11 bits of precision, magnitudes up to 65504; larger ones are infinite.
struct Float16 {
  static constexpr unsigned kPerWord = 2;
  static constexpr bool kScaled = false;
  using Sum = float;

  static __device__ uint32_t Word(const float (&x)[2], float) { return HalfBitsOf(x[0]) | HalfBitsOf(x[1]) << 16; }
  static __device__ void Multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    EmulateMultiply<Float16>(c, a, b);
#endif
  }
  static __device__ float AddProducts(float sum, uint32_t a, uint32_t b) {
    sum = fmaf(At(a, 0), At(b, 0), sum);
    return fmaf(At(a, 1), At(b, 1), sum);
  }

 private:
  static __device__ float At(uint32_t word, unsigned i) { return AsFloat(Half{static_cast<uint16_t>(word >> 16 * i)}); }
};

// A float without its last 16 bits: 8 bits of precision, the range of float32.
struct Bfloat16 {
  static constexpr unsigned kPerWord = 2;
  static constexpr bool kScaled = false;
  using Sum = float;

  static __device__ uint32_t Word(const float (&x)[2], float) { return Rounded(x[0]) >> 16 | Rounded(x[1]); }
  static __device__ void Multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    EmulateMultiply<Bfloat16>(c, a, b);
#endif
  }
  static __device__ float AddProducts(float sum, uint32_t a, uint32_t b) {
    sum = fmaf(BitsToFloat(a << 16), BitsToFloat(b << 16), sum);
    return fmaf(BitsToFloat(a & 0xffff0000), BitsToFloat(b & 0xffff0000), sum);
  }

 private:
  // Rounds to nearest, ties to even, in the upper 16 bits. NaN stays NaN.
  static __device__ uint32_t Rounded(float x) {
    const uint32_t bits = GetBits(x);
    if (IsSpecial(bits)) return (bits & 0x7fffff) != 0 ? kNotANumber : bits;
    return (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  }
};

// Integers from -127 to 127, times a scale for each row of either side. Sums are exact: 127 * 127 * 2^16 is below 2^31,
// and no layer has that many inputs.
struct Int8 {
  static constexpr unsigned kPerWord = 4;
  static constexpr bool kScaled = true;
  using Sum = int32_t;

  static __device__ uint32_t Word(const float (&x)[4], float factor) {
    uint32_t word = 0;
    if (factor == 0.0f) return word;  // zeros, or NaN: the scale tells which
    for (unsigned i = 0; i < 4; ++i) {
      word |= (static_cast<uint32_t>(__float2int_rn(__fmul_rn(x[i], factor))) & 255) << 8 * i;
    }
    return word;
  }
  static __device__ void Multiply(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    EmulateMultiply<Int8>(c, a, b);
#endif
  }
  static __device__ int32_t AddProducts(int32_t sum, uint32_t a, uint32_t b) {
    for (unsigned i = 0; i < 4; ++i) sum += static_cast<int8_t>(a >> 8 * i) * static_cast<int8_t>(b >> 8 * i);
    return sum;
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_TENSOR_CORE_H_
