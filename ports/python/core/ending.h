// Python ends while a thread of its own, a daemon, computes here. The interpreter would end such a thread within frames
// of C++, which ends the process with an error. So the thread stays outside and sleeps until the process is gone.
#ifndef WISP_PORTS_PYTHON_CORE_ENDING_H_
#define WISP_PORTS_PYTHON_CORE_ENDING_H_

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace wisp_python {

inline std::atomic<std::thread::id> ended_by{};  // the thread that ends Python; none: it goes on

// To be called without the GIL, before it is taken.
inline void StayOutIfPythonEnds() {
  const std::thread::id ender = ended_by.load();
  if (ender == std::thread::id() || ender == std::this_thread::get_id()) return;
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Of a callback that comes from the library.
class Acquired {
 private:
  struct First {
    First() { StayOutIfPythonEnds(); }
  };
  const First first_;
  const nanobind::gil_scoped_acquire acquired_;
};

inline void BindEnding(nanobind::module_& module) {
  module.def(
      "end", [] { ended_by = std::this_thread::get_id(); }, "Python ends: what runs in its other threads stays there.");
}

}  // namespace wisp_python

#endif  // WISP_PORTS_PYTHON_CORE_ENDING_H_
