// Arrays of NumPy that the library's results are copied into.
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

// numpy.empty(shape, type); `type` is a number of a Python class of NumPy's.
enum class ArrayType { kInt32, kFloat32, kInt64 };
nb::object Empty(nb::handle shape, ArrayType type);

// Whether it is numpy.ndarray itself, not what is derived from it.
bool IsPlainArray(nb::handle object);

template <class Number>
constexpr ArrayType kArrayType = ArrayType::kInt64;
template <>
inline constexpr ArrayType kArrayType<int32_t> = ArrayType::kInt32;
template <>
inline constexpr ArrayType kArrayType<float> = ArrayType::kFloat32;

// A new array, not yet filled. The GIL is held where it is made and ends.
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
