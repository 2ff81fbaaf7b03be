// An emulator of a GPU on the host. It runs kernels, compiled as ordinary C++, thread by thread, and finds faults that
// a GPU would not report.
//
// A block's threads are fibers of one host thread; a seed decides which of them runs next. Each of the following faults
// ends the process with a message that names the line in the kernel:
//   - a barrier, shuffle or vote that some threads of the block or warp do not reach, or reach at different places; a
//     barrier of the grid that some blocks do not reach, or in blocks that do not run together;
//   - an access of shared memory out of bounds;
//   - two accesses to the same place of shared memory by different threads, one of them a write, without a barrier;
//   - a read of shared memory that the block has not written;
//   - a vector that is not aligned;
//   - a shuffle or vote with a mask of some lanes only: kernels exchange by whole warps;
//   - a launch that a GPU refuses: no blocks, too many rows of them, too many parameters, too much shared memory;
//   - an argument with an address in host memory while device memory is in use (memory.h).
// Results that the host reads before it waits are NaN (HideResults). Races in global memory are found under
// ThreadSanitizer (races.h). Not found: faults that depend on timing. Blocks run one after another, in an order that
// also follows from the seed. Blocks that run together take turns from one barrier of the grid to the next.
#ifndef WISP_KERNELS_CUDA_EMULATE_EMULATE_H_
#define WISP_KERNELS_CUDA_EMULATE_EMULATE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include "kernels/cuda/emulate/races.h"

namespace wisp::kernels::cuda::emulate {

struct Index {
  unsigned x = 1, y = 1;
};

// The thread that runs.
struct Place {
  Index thread, block, block_size, grid_size;
};
const Place& Here();

// A place in a kernel's source. (Clang 14 lacks std::source_location.)
struct Location {
  const char* file;
  unsigned line;
  static constexpr Location Current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

// Runs `kernel` once for each thread of each block. Not reentrant. At most 1024 threads, in whole warps.
void Run(Index grid, unsigned threads, const std::function<void()>& kernel);

// Runs at most kBlocksTogether blocks that are alive together and can wait for each other. A random one runs first to
// the next barrier of the grid. Between two of these barriers each block runs alone, so data that another block has not
// yet published by a barrier is missing or stale. Shared memory does not survive such a barrier: it counts as never
// written.
inline constexpr unsigned kBlocksTogether = 3;
void RunTogether(unsigned blocks, unsigned threads, const std::function<void()>& kernel);
// Refuses to run blocks together from now on, or no longer. The default is WISP_TEST_REFUSES_TOGETHER.
void RefuseTogether(bool refuse);
bool RefusesTogether();

// The processors that the device says it has: kBlocksTogether, or WISP_TEST_PROCESSORS.
unsigned CountProcessors();

// The number of kernels that this process has run.
uint64_t NumLaunches();

// A launch as a GPU gets it: a kernel, and its parameters one after another, each aligned.
struct LaunchedKernel {
  const void* kernel = nullptr;
  Index grid = {};
  unsigned threads = 0;
  std::vector<std::byte> parameters;
};

// Adds a parameter to those of the next launch, which is of `kernel`.
void AddParameter(const void* kernel, const void* parameter, size_t bytes, size_t alignment);
template <class Parameter>
void AddParameter(const void* kernel, const Parameter& parameter) {
  AddParameter(kernel, &parameter, sizeof(parameter), alignof(Parameter));
}
// Calls `observer` before and after each launch from now on; null: no longer.
enum class LaunchState { kBegins, kHasRun };
using Observer = void (*)(const LaunchedKernel& launch, LaunchState state);
void Observe(Observer observer);

void CheckBytes(const void* argument, size_t bytes);

// Checks an argument of the next launch. Ends the process if the argument holds a host address (memory.h). Compilers
// that cannot clear padding between members check nothing, because padding may hold anything.
template <class T>
void CheckArgument(T argument) {
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&argument);
  CheckBytes(&argument, sizeof(argument));
#else
  (void)argument;
#endif
}

// Sets the order of threads and blocks from now on. The default is WISP_TEST_SEED, or 1.
void Seed(uint64_t seed);

void Barrier(const Location& location);
void GridBarrier(const Location& location);
void WarpBarrier(const Location& location);
// The value that lane `from(lane)` of this warp gave, as bits of a number.
uint64_t Exchange(unsigned mask, uint64_t bits, unsigned from, const Location& location);
unsigned Ballot(unsigned mask, bool vote, const Location& location);

[[noreturn]] void Fail(const char* what, const Location& location);

// The time and author of an access, from the highest bits down: 24 bits for the block's serial number (0: never), 14
// for its barriers so far, 15 for the warp's, 5 for the warp, 5 for the lane, 1 for "other lanes of the warp too".
using Stamp = uint64_t;
inline constexpr unsigned kBlockShift = 40, kBarrierShift = 26, kWarpBarrierShift = 11, kWarpShift = 6, kLaneShift = 1;
// The running thread, now.
inline Stamp g_now = 0;

// The last accesses to a place of shared memory.
struct Touches {
  Stamp write = 0, reads[2] = {0, 0};
};

// The running launch, and the bytes of the arrays in shared memory that it has used. CountShared adds an array's.
inline uint64_t g_launch = 0;
inline size_t g_shared_bytes = 0;
void CountShared(size_t bytes, const Location& location);

// True if a barrier lies between the two accesses, or one thread made both.
WISP_NOT_WATCHED inline bool InOrder(Stamp earlier, Stamp now) {
  if (earlier >> kBarrierShift != now >> kBarrierShift) return true;  // another block, or before a barrier
  if (earlier == now) return true;
  const bool same_warp = ((earlier ^ now) >> kWarpShift & 31) == 0;
  return same_warp && (earlier >> kWarpBarrierShift) < (now >> kWarpBarrierShift);
}

WISP_NOT_WATCHED inline void TouchRead(Touches& touches, const Location& location) {
  const Stamp now = g_now;
  if ((touches.write ^ now) >> kBlockShift != 0) Fail("shared memory is read that nothing has written", location);
  if (!InOrder(touches.write, now)) Fail("shared memory is read while another thread writes it", location);
  for (Stamp& read : touches.reads) {
    if ((read ^ now) >> kWarpShift != 0) continue;
    if (read != now) read |= 1;  // another lane of the same warp, without a barrier between
    return;
  }
  // With readers in two warps, a write by any warp conflicts with one that is not its own.
  const bool other_warp =
      touches.reads[0] >> kBarrierShift == now >> kBarrierShift && ((touches.reads[0] ^ now) >> kWarpShift & 31) != 0;
  touches.reads[other_warp ? 1 : 0] = now;
}

WISP_NOT_WATCHED inline void TouchWrite(Touches& touches, const Location& location) {
  const Stamp now = g_now;
  if (!InOrder(touches.write, now)) Fail("two threads write the same place of shared memory", location);
  for (const Stamp read : touches.reads) {
    if (!InOrder(read, now)) Fail("shared memory is written while another thread reads it", location);
  }
  touches.write = now;
}

// An array in shared memory. The result of [] reads or writes one element.
template <class T, unsigned kSize>
class Shared {
 public:
  class Reference {
   public:
    Reference(Shared& array, unsigned i, const Location& location) : array_(array), i_(i), location_(location) {}
    WISP_NOT_WATCHED operator T() const {
      TouchRead(array_.touches_[i_], location_);
      return array_.values_[i_];
    }
    WISP_NOT_WATCHED Reference& operator=(T value) {
      TouchWrite(array_.touches_[i_], location_);
      array_.values_[i_] = value;
      return *this;
    }
    Reference& operator=(const Reference& other) {
      if (this != &other) *this = static_cast<T>(other);
      return *this;
    }
    Reference(const Reference&) = delete;
    Reference& operator+=(T value) { return *this = static_cast<T>(*this) + value; }

   private:
    Shared& array_;
    unsigned i_;
    Location location_;
  };

  Reference operator[](struct SharedIndex i);

 private:
  T values_[kSize];
  Touches touches_[kSize];
  uint64_t counted_in_ = 0;  // the launch that has counted its bytes
};

// An index that records its place in the source.
struct SharedIndex {
  template <class Integer>
  requires std::is_integral_v<Integer> SharedIndex(Integer i, const Location& where = Location::Current())
      : value(static_cast<uint64_t>(i)), location(where) {}
  uint64_t value;
  Location location;
};

template <class T, unsigned kSize>
WISP_NOT_WATCHED typename Shared<T, kSize>::Reference Shared<T, kSize>::operator[](SharedIndex i) {
  if (i.value >= kSize) Fail("an access of shared memory out of bounds", i.location);
  if (counted_in_ != g_launch) {
    counted_in_ = g_launch;
    CountShared(sizeof(values_), i.location);
  }
  return Reference(*this, static_cast<unsigned>(i.value), i.location);
}

template <class T>
uint64_t ToBits(T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
T FromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

inline void CheckAligned(bool is_aligned, const Location& location) {
  if (!is_aligned) Fail("a vector that is not aligned", location);
}

// See device_code.h.
template <unsigned kCount>
void LoadVector(float* to, const float* from, const Location& location = Location::Current()) {
  CheckAligned(reinterpret_cast<uintptr_t>(from) % (kCount * sizeof(float)) == 0, location);
  for (unsigned i = 0; i < kCount; ++i) to[i] = from[i];
}
template <unsigned kCount>
void StoreVector(float* to, const float* from, const Location& location = Location::Current()) {
  CheckAligned(reinterpret_cast<uintptr_t>(to) % (kCount * sizeof(float)) == 0, location);
  for (unsigned i = 0; i < kCount; ++i) to[i] = from[i];
}
template <unsigned kCount, unsigned kSize>
WISP_NOT_WATCHED void LoadVector(float* to, Shared<float, kSize>& from, unsigned first,
                                 const Location& location = Location::Current()) {
  CheckAligned(first % kCount == 0, location);
  for (unsigned i = 0; i < kCount; ++i) to[i] = from[SharedIndex(first + i, location)];
}
template <unsigned kCount, unsigned kSize>
WISP_NOT_WATCHED void StoreVector(Shared<float, kSize>& to, unsigned first, const float* from,
                                  const Location& location = Location::Current()) {
  CheckAligned(first % kCount == 0, location);
  for (unsigned i = 0; i < kCount; ++i) to[SharedIndex(first + i, location)] = from[i];
}

}  // namespace wisp::kernels::cuda::emulate

// ---- The words of CUDA that kernels use. ----------------------------------------------------------------------------
// NOLINTBEGIN(bugprone-reserved-identifier)
#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define threadIdx (::wisp::kernels::cuda::emulate::Here().thread)
#define blockIdx (::wisp::kernels::cuda::emulate::Here().block)
#define blockDim (::wisp::kernels::cuda::emulate::Here().block_size)
#define gridDim (::wisp::kernels::cuda::emulate::Here().grid_size)

namespace wisp::kernels::cuda {

inline void __syncthreads(const emulate::Location& location = emulate::Location::Current()) {
  emulate::Barrier(location);
}
inline void GridBarrier(const emulate::Location& location = emulate::Location::Current()) {
  emulate::GridBarrier(location);
}
inline void __syncwarp(const emulate::Location& location = emulate::Location::Current()) {
  emulate::WarpBarrier(location);
}
template <class T>
T __shfl_xor_sync(unsigned lanes, T value, unsigned mask,
                  const emulate::Location& location = emulate::Location::Current()) {
  return emulate::FromBits<T>(emulate::Exchange(lanes, emulate::ToBits(value), (threadIdx.x % 32) ^ mask, location));
}
template <class T>
T __shfl_sync(unsigned lanes, T value, unsigned lane,
              const emulate::Location& location = emulate::Location::Current()) {
  return emulate::FromBits<T>(emulate::Exchange(lanes, emulate::ToBits(value), lane % 32, location));
}
inline unsigned __ballot_sync(unsigned lanes, bool vote,
                              const emulate::Location& location = emulate::Location::Current()) {
  return emulate::Ballot(lanes, vote, location);
}
// Rounds once, as the host does. Without these functions nvcc may fuse a product and a sum into one operation.
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
// NOLINTEND(bugprone-reserved-identifier)

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_EMULATE_EMULATE_H_
