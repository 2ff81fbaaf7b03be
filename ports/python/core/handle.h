// Handles of the library in Python: one thread at a time uses a handle, whichever threads call.
//
//   class Recommender { std::shared_ptr<Model> model; };      close() releases it, a running call keeps it
//   const InUse model(self.model);                            waits for another thread's call, without the GIL
//   const wisp_code code = WithoutGil([&] { return wisp_recommend(model.get(), ...); });
#ifndef WISP_PORTS_PYTHON_CORE_HANDLE_H_
#define WISP_PORTS_PYTHON_CORE_HANDLE_H_

#include <nanobind/nanobind.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ports/python/core/ending.h"
#include "ports/python/core/errors.h"

namespace wisp_python {

// Lets other threads of Python run while the library computes.
template <class Work>
auto WithoutGil(Work&& work) {
  const nb::gil_scoped_release released;
  struct Last {
    ~Last() { StayOutIfPythonEnds(); }
  };
  const Last last;
  return work();
}

// Lets one thread at a time in, of the process that created it: a forked process has neither the threads nor the locks
// that the handle relies on.
struct Door {
  const pid_t process = getpid();
  std::timed_mutex mutex;
  std::atomic<std::thread::id> inside{};
  std::atomic<bool> waits_for_reader = false;  // the thread inside continues once somebody has read what is there
};

// Holds a door. The GIL is held before and after. It is released while waiting for another thread, and Ctrl-C ends the
// wait. A call from a callback of the same handle is an error, because the library must not be re-entered.
class Use {
 public:
  explicit Use(Door& door) : door_(&door) {
    if (door.process != getpid())
      Raise(WISP_INVALID_ARGUMENT, "this object was opened before this process was forked off; open it here again");
    if (!door.mutex.try_lock()) {
      if (door.inside.load() == std::this_thread::get_id())
        Raise(WISP_INVALID_ARGUMENT, "this object is in use by the call whose callback this is; call it afterwards");
      do {
        if (door.waits_for_reader)
          Raise(WISP_INVALID_ARGUMENT, "a stream of this object is open; read it to its end, or close it, first");
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      } while (!WithoutGil([&] { return door.mutex.try_lock_for(std::chrono::milliseconds(50)); }));
    }
    door.inside = std::this_thread::get_id();
  }
  Use(Use&& other) noexcept : door_(std::exchange(other.door_, nullptr)) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  Use& operator=(Use&&) = delete;
  ~Use() {
    if (door_ == nullptr) return;
    door_->inside = std::thread::id();
    door_->mutex.unlock();
  }

 private:
  Door* door_;
};

// Holds a Python buffer; it is released with the GIL held.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { Release(); }

  // True if the object has a buffer of that kind; leaves no exception set.
  bool Take(nb::handle object, int flags) {
    Release();
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) == 0) return held_ = true;
    PyErr_Clear();
    return false;
  }
  void Release() {
    if (std::exchange(held_, false)) PyBuffer_Release(&view_);
  }
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

// A handle of the C interface, closed with its last owner. `memory` outlives it.
template <class Opaque, void (*Close)(Opaque*)>
class Handle : public Door {
 public:
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (process == getpid()) Close(handle_);
  }

  Opaque* get() const { return handle_; }
  Opaque** out() { return &handle_; }

  // The memory of a model: the caller's, or a copy that starts on a multiple of 64 bytes.
  Buffer memory;
  std::vector<char> copy;

 private:
  Opaque* handle_ = nullptr;
};

// Uses a handle on this thread for the lifetime of this object.
template <class Held>
class InUse {
 public:
  explicit InUse(std::shared_ptr<Held> held) : held_(std::move(held)), use_(*held_) {}
  auto* get() const { return held_->get(); }

 private:
  std::shared_ptr<Held> held_;
  Use use_;
};

}  // namespace wisp_python

#endif  // WISP_PORTS_PYTHON_CORE_HANDLE_H_
