// Shared parts of calls that spend budget: the unit, the ledger's anchor, progress, texts of any length.
#ifndef WISP_PORTS_PYTHON_CORE_PRIVACY_H_
#define WISP_PORTS_PYTHON_CORE_PRIVACY_H_

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "ports/python/core/model.h"

namespace wisp_python {

// Reads "unit": 'user', 'session', 'day' or 'interaction'.
wisp_unit ReadGivenUnit(Options& given);

// A Python object with read() -> bytes and write(bytes). An exception that it raises is raised again after the call.
class Anchor {
 public:
  // None means no anchor.
  explicit Anchor(nb::object object);
  Anchor(const Anchor&) = delete;
  Anchor& operator=(const Anchor&) = delete;

  const wisp_anchor* anchor() const { return object_.is_none() ? nullptr : &anchor_; }
  nb::handle object() const { return object_; }
  void Rethrow() {
    if (raised_) throw std::move(*std::exchange(raised_, std::nullopt));
  }

 private:
  static int Read(void* self, uint8_t* bytes, size_t capacity, size_t* length);
  static int Write(void* self, const uint8_t* bytes, size_t length);
  template <class Work>
  int Guarded(Work&& work);

  nb::object object_;
  wisp_anchor anchor_ = WISP_INIT(wisp_anchor);
  std::optional<nb::python_error> raised_;
};

// Calls a Python function with the progress of a run (step, num_steps, loss, epsilon); False stops the run. An
// exception that it raises, and Ctrl-C, also stop the run. Both are raised after the call, with the library's sentence
// about what is spent as a note.
class Progress {
 public:
  explicit Progress(nb::object function) : function_(std::move(function)) {}
  static int OnProgress(const wisp_progress* progress, void* self);
  // Before the first step and during a step: Ctrl-C alone stops the run then.
  static int IsCancelled(void* self);
  void Rethrow(wisp_code code, const wisp_error& error);

 private:
  nb::object function_;
  std::optional<nb::python_error> raised_;
};

// Returns a text that the C interface copies as far as it fits; asks again if the first buffer was too small.
template <class Ask>
nb::str GiveText(Ask&& ask) {
  std::string text(4096, '\0');
  while (true) {
    size_t needed = 0;
    wisp_error error;
    const wisp_code code = WithoutGil([&] { return ask(text.data(), text.size(), &needed, &error); });
    Check(code, error);
    // Invalid UTF-8, as in a key of another program's log, is kept in the way in which Python keeps file names.
    if (needed <= text.size()) {
      const size_t length = std::strlen(text.c_str());
      return nb::steal<nb::str>(PyUnicode_DecodeUTF8(text.c_str(), static_cast<Py_ssize_t>(length), "surrogateescape"));
    }
    text.resize(needed);
  }
}

}  // namespace wisp_python

#endif  // WISP_PORTS_PYTHON_CORE_PRIVACY_H_
