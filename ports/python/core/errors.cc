#include "ports/python/core/errors.h"

namespace wisp_python {
namespace {

// Never released: a destructor would run after Python has ended.
struct Classes {
  nb::tuple by_code;
  nb::object closed;
};
Classes* classes = nullptr;

[[noreturn]] void Throw(nb::handle type, const std::string& sentence) {
  const nb::object text =
      nb::steal(PyUnicode_DecodeUTF8(sentence.data(), static_cast<Py_ssize_t>(sentence.size()), "replace"));
  if (text.is_valid()) PyErr_SetObject(type.ptr(), text.ptr());
  throw nb::python_error();
}

}  // namespace

void BindErrors(nb::module_& module) {
  module.def(
      "set_errors",
      [](nb::typed<nb::tuple, nb::any, nb::ellipsis> by_code, nb::object closed) {
        classes = new Classes{by_code, closed};
      },
      nb::arg("by_code"), nb::arg("closed"));
}

void Raise(wisp_code code, const std::string& sentence) {
  if (classes == nullptr) Throw(PyExc_RuntimeError, sentence);
  const bool known = code > WISP_OK && code <= WISP_TOO_EARLY;
  Throw(classes->by_code[static_cast<size_t>(known ? code : WISP_INTERNAL)], sentence);
}

void RaiseType(const std::string& sentence) { Throw(PyExc_TypeError, sentence); }

void RaiseClosed(const char* what) {
  const std::string sentence = std::string("this ") + what + " is closed; open another";
  Throw(classes == nullptr ? nb::handle(PyExc_RuntimeError) : nb::handle(classes->closed), sentence);
}

}  // namespace wisp_python
