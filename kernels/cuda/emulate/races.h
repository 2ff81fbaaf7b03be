// Tells ThreadSanitizer about the emulator: which fiber runs, and what a barrier orders. So it finds races in
// global memory: missing atomics, barriers and hand-overs, between threads and between blocks. Empty without it.
//
// Switching fibers orders nothing, so a race is found although only one thread runs at a time. The emulator itself is
// compiled without ThreadSanitizer; kernels and tests are compiled with it.
#ifndef WISP_KERNELS_CUDA_EMULATE_RACES_H_
#define WISP_KERNELS_CUDA_EMULATE_RACES_H_

#include <cstdint>

#ifdef WISP_FINDS_RACES
#include <sanitizer/tsan_interface.h>

#include <unordered_map>
#endif

// Shared memory is watched by the emulator itself, with sentences that name the line.
#ifdef WISP_FINDS_RACES
#define WISP_NOT_WATCHED __attribute__((no_sanitize("thread")))
#else
#define WISP_NOT_WATCHED
#endif

namespace wisp::kernels::cuda::emulate {

#ifdef WISP_FINDS_RACES

using WatchedFiber = void*;

// The fiber of a stack. A stack is reused, and always by the same fiber.
inline WatchedFiber FiberOf(void* stack) {
  static std::unordered_map<void*, WatchedFiber> fibers;
  WatchedFiber& fiber = fibers[stack];
  if (fiber == nullptr) fiber = __tsan_create_fiber(0);
  return fiber;
}
inline WatchedFiber RunningFiber() { return __tsan_get_current_fiber(); }
inline void SwitchTo(WatchedFiber fiber) { __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync); }
// Orders everything before Publish(place) before everything after a later Receive(place).
inline void Publish(void* place) { __tsan_release(place); }
inline void Receive(void* place) { __tsan_acquire(place); }

#else

using WatchedFiber = void*;
inline WatchedFiber FiberOf(void*) { return nullptr; }
inline WatchedFiber RunningFiber() { return nullptr; }
inline void SwitchTo(WatchedFiber) {}
inline void Publish(void*) {}
inline void Receive(void*) {}

#endif

}  // namespace wisp::kernels::cuda::emulate

#endif  // WISP_KERNELS_CUDA_EMULATE_RACES_H_
