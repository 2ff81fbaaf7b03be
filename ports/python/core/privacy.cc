#include "ports/python/core/privacy.h"

#include <cstring>

namespace wisp_python {

wisp_unit ReadGivenUnit(Options& given) {
  return given.Choice<wisp_unit>("unit", {{"user", WISP_UNIT_USER},
                                          {"session", WISP_UNIT_SESSION},
                                          {"day", WISP_UNIT_DAY},
                                          {"interaction", WISP_UNIT_INTERACTION}});
}

Anchor::Anchor(nb::object object) : object_(std::move(object)) {
  if (object_.is_none()) return;
  if (!nb::hasattr(object_, "read") || !nb::hasattr(object_, "write"))
    RaiseType("anchor is " + Shown(object_) + "; allowed is an object with read() -> bytes and write(bytes)");
  anchor_.read = &Read;
  anchor_.write = &Write;
  anchor_.user_data = this;
  // The object's `begin`, if it has one, allows that the anchor is still missing.
  if (!nb::hasattr(object_, "begin")) return;
  const int begins = PyObject_IsTrue(object_.attr("begin").ptr());
  if (begins < 0) throw nb::python_error();
  anchor_.begin = begins;
}

template <class Work>
int Anchor::Guarded(Work&& work) {
  const Acquired acquired;
  try {
    work();
    return 0;
  } catch (nb::python_error& raised) {
    if (!raised_) raised_.emplace(std::move(raised));
    return 1;
  }
}

int Anchor::Read(void* self, uint8_t* bytes, size_t capacity, size_t* length) {
  auto* const anchor = static_cast<Anchor*>(self);
  return anchor->Guarded([&] {
    const nb::object kept = anchor->object_.attr("read")();
    Buffer buffer;
    if (!buffer.Take(kept, PyBUF_SIMPLE)) RaiseType("the anchor's read gave " + Shown(kept) + "; allowed are bytes");
    const auto size = static_cast<size_t>(buffer.view().len);
    if (size > capacity)
      Raise(WISP_INVALID_DATA,
            "the anchor's read gave " + std::to_string(size) + " bytes; allowed are " + std::to_string(capacity));
    std::memcpy(bytes, buffer.view().buf, size);
    *length = size;
  });
}

int Anchor::Write(void* self, const uint8_t* bytes, size_t length) {
  auto* const anchor = static_cast<Anchor*>(self);
  return anchor->Guarded([&] { anchor->object_.attr("write")(nb::bytes(bytes, length)); });
}

int Progress::OnProgress(const wisp_progress* progress, void* self) {
  auto* const told = static_cast<Progress*>(self);
  const Acquired acquired;
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (told->function_.is_none()) return 0;
    const nb::object answer = told->function_(progress->step, progress->num_steps, progress->loss, progress->epsilon);
    return answer.ptr() == Py_False ? 1 : 0;
  } catch (nb::python_error& raised) {
    told->raised_.emplace(std::move(raised));
    return 1;
  }
}

int Progress::IsCancelled(void* self) {
  auto* const told = static_cast<Progress*>(self);
  if (told->raised_) return 1;
  const Acquired acquired;
  if (PyErr_CheckSignals() == 0) return 0;
  told->raised_.emplace();  // takes the exception that is set
  return 1;
}

void Progress::Rethrow(wisp_code code, const wisp_error& error) {
  if (!raised_) return;
  if (code != WISP_OK) raised_->value().attr("add_note")(std::string("wisp: ") + error.message);
  throw std::move(*raised_);
}

}  // namespace wisp_python
