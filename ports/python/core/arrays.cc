#include "ports/python/core/arrays.h"

namespace wisp_python {
namespace {

// Looked up once and never released: a destructor would run after Python has ended.
struct NumPy {
  nb::object empty, types[3], array;
};

const NumPy& Get() {
  static const NumPy* const numpy = [] {
    const nb::module_ module = nb::module_::import_("numpy");
    auto* const made = new NumPy{module.attr("empty"), {}, module.attr("ndarray")};
    const char* names[] = {"int32", "float32", "int64"};
    for (int i = 0; i < 3; ++i) made->types[i] = module.attr("dtype")(names[i]);
    return made;
  }();
  return *numpy;
}

}  // namespace

nb::object Empty(nb::handle shape, ArrayType type) {
  const NumPy& numpy = Get();
  PyObject* const arguments[] = {shape.ptr(), numpy.types[static_cast<int>(type)].ptr()};
  PyObject* const made = PyObject_Vectorcall(numpy.empty.ptr(), arguments, 2, nullptr);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

bool IsPlainArray(nb::handle object) { return object.type().is(Get().array); }

}  // namespace wisp_python
