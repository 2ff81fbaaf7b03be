// Handles the end of Python while a daemon thread of Python computes here. The interpreter would end such a thread
// inside C++ frames, which crashes the process. So the thread stays outside and sleeps until the process is gone.
#ifndef WISP_PORTS_PYTHON_CORE_ENDING_H_
#define WISP_PORTS_PYTHON_CORE_ENDING_H_

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace wisp_python {

inline std::atomic<std::thread::id> ended_by{};  // the thread that ends Python; none while Python runs

// Call this without the GIL, before taking it.
inline void StayOutIfPythonEnds() {
  const std::thread::id ender = ended_by.load();
  if (ender == std::thread::id() || ender == std::this_thread::get_id()) return;
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Holds the GIL in a callback from the library.
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
