// NumPy arrays for the library's results, which are copied into them.
//
//   NewArray<float> vectors(rows, columns);
//   std::fill_n(vectors.data(), rows * columns, 0);
//   return vectors.array();
#ifndef WISP_PORTS_PYTHON_CORE_ARRAYS_H_
#define WISP_PORTS_PYTHON_CORE_ARRAYS_H_

#include <nanobind/nanobind.h>

#include <cstdint>

#include "ports/python/core/handle.h"

namespace wisp_python {

// Calls numpy.empty(shape, type).
enum class ArrayType { kInt32, kFloat32, kInt64 };
nb::object Empty(nb::handle shape, ArrayType type);

// True for numpy.ndarray itself, false for derived classes.
bool IsPlainArray(nb::handle object);

template <class Number>
constexpr ArrayType kArrayType = ArrayType::kInt64;
template <>
inline constexpr ArrayType kArrayType<int32_t> = ArrayType::kInt32;
template <>
inline constexpr ArrayType kArrayType<float> = ArrayType::kFloat32;

// A new array with undefined content. The GIL must be held when it is created and destroyed.
template <class Number>
class NewArray {
 public:
  explicit NewArray(size_t size) : NewArray(nb::int_(size)) {}
  NewArray(size_t rows, size_t columns) : NewArray(nb::make_tuple(rows, columns)) {}

  Number* data() { return static_cast<Number*>(buffer_.view().buf); }
  const nb::object& array() const { return array_; }

 private:
  explicit NewArray(const nb::object& shape) : array_(Empty(shape, kArrayType<Number>)) {
    if (!buffer_.Take(array_, PyBUF_WRITABLE)) Raise(WISP_INTERNAL, "NumPy gave an array that cannot be written");
  }
  nb::object array_;
  Buffer buffer_;
};

}  // namespace wisp_python

#endif  // WISP_PORTS_PYTHON_CORE_ARRAYS_H_
