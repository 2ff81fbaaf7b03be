#include "ports/python/core/arguments.h"

#include <cstring>
#include <utility>

#include "ports/python/core/arrays.h"

namespace wisp_python {
namespace {

constexpr int64_t kMostItems = std::numeric_limits<int32_t>::max();
constexpr int64_t kLeastItem = std::numeric_limits<int32_t>::min();
// Stands in for an empty list, which the C interface must tell from no list.
constexpr int32_t kNone = 0;

// The letter of an integer type in a buffer's format, or 0 for others. Native byte order and sizes only.
char IntegerFormat(const Py_buffer& view) {
  const char* format = view.format == nullptr ? "B" : view.format;
  if (*format == '@' || *format == '=') ++format;
  if (std::strlen(format) != 1 || std::strchr("bBhHiIlLqQ", *format) == nullptr) return 0;
  return *format;
}

template <class Whole>
bool Copy(const Py_buffer& view, std::vector<int32_t>& out, int64_t* wrong) {
  const char* at = static_cast<const char*>(view.buf);
  const Py_ssize_t stride = view.strides == nullptr ? view.itemsize : view.strides[0];
  for (size_t i = 0; i < out.size(); ++i, at += stride) {
    Whole value;
    std::memcpy(&value, at, sizeof(value));
    if (!std::in_range<int32_t>(value)) return *wrong = static_cast<int64_t>(i), false;
    out[i] = static_cast<int32_t>(value);
  }
  return true;
}

bool CopyAny(const Py_buffer& view, char format, std::vector<int32_t>& out, int64_t* wrong) {
  const bool is_signed = std::strchr("bhilq", format) != nullptr;
  switch (view.itemsize) {
    case 1:
      return is_signed ? Copy<int8_t>(view, out, wrong) : Copy<uint8_t>(view, out, wrong);
    case 2:
      return is_signed ? Copy<int16_t>(view, out, wrong) : Copy<uint16_t>(view, out, wrong);
    case 4:
      return is_signed ? Copy<int32_t>(view, out, wrong) : Copy<uint32_t>(view, out, wrong);
    default:
      return is_signed ? Copy<int64_t>(view, out, wrong) : Copy<uint64_t>(view, out, wrong);
  }
}

}  // namespace

std::string Label::text() const { return index < 0 ? name : name + ("[" + std::to_string(index) + "]"); }

std::string Shown(nb::handle value) {
  PyObject* const text = PyObject_Repr(value.ptr());
  std::string shown = "something";
  if (text != nullptr) {
    const char* utf8 = PyUnicode_AsUTF8AndSize(text, nullptr);
    if (utf8 != nullptr) shown = utf8;
    Py_DECREF(text);
  }
  PyErr_Clear();
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  return shown + " (" + nb::cast<std::string>(nb::borrow(value).type().attr("__name__")) + ")";
}

int64_t Integer(const std::string& name, nb::handle value, int64_t least, int64_t most) {
  // True equals 1 in Python, but whoever writes it means something else.
  nb::object number = nb::steal(PyBool_Check(value.ptr()) ? nullptr : PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    RaiseType(name + " is " + Shown(value) + "; allowed is a whole number");
  }
  int overflow = 0;
  const int64_t read = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || read < least || read > most)
    Raise(WISP_INVALID_ARGUMENT,
          name + " is " + Shown(value) + "; allowed are " + std::to_string(least) + " to " + std::to_string(most));
  return read;
}

namespace {

// The error for a str that cannot be encoded; replaces Python's own.
[[noreturn]] void RaiseHalves(const std::string& name, nb::handle value) {
  PyErr_Clear();
  Raise(WISP_INVALID_ARGUMENT, name + " is " + Shown(value) + "; allowed is text without halves of surrogate pairs");
}

std::string WithoutNul(const std::string& name, std::string text) {
  const size_t nul = text.find('\0');
  if (nul != std::string::npos)
    Raise(WISP_INVALID_ARGUMENT, name + " has a NUL character at byte " + std::to_string(nul) + "; none is allowed");
  return text;
}

}  // namespace

std::string Utf8(const std::string& name, nb::handle value) {
  if (!PyUnicode_Check(value.ptr())) RaiseType(name + " is " + Shown(value) + "; allowed is a str");
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) RaiseHalves(name, value);
  return WithoutNul(name, std::string(text, static_cast<size_t>(size)));
}

int32_t Truth(const std::string& name, nb::handle value) {
  if (!PyBool_Check(value.ptr())) RaiseType(name + " is " + Shown(value) + "; allowed are True and False");
  return value.ptr() == Py_True ? 1 : 0;
}

std::string UserKey(const std::string& name, nb::handle value) {
  if (!PyUnicode_Check(value.ptr())) RaiseType(name + " is " + Shown(value) + "; allowed is a str");
  PyObject* const encoded = PyUnicode_AsEncodedString(value.ptr(), "utf-8", "surrogateescape");
  if (encoded == nullptr) RaiseHalves(name, value);
  const auto bytes = nb::steal<nb::bytes>(encoded);
  return WithoutNul(name, std::string(bytes.c_str(), bytes.size()));
}

nb::object Options::Value(const char* name) {
  asked_.insert(name);
  return values_.contains(name) ? nb::object(values_[name]) : nb::object(nb::none());
}

const char* Options::Path(const char* name) {
  const nb::object value = Value(name);
  if (value.is_none()) return nullptr;
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(value.ptr(), &bytes) == 0) {
    const bool is_path = PyErr_ExceptionMatches(PyExc_ValueError) != 0;  // so is a str that cannot be encoded
    if (!is_path && !PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    if (is_path)
      Raise(WISP_INVALID_ARGUMENT, Name(name) + " is " + Shown(value) + "; allowed is a path without NUL characters");
    RaiseType(Name(name) + " is " + Shown(value) + "; allowed is a path: a str or os.PathLike");
  }
  const nb::object owned = nb::steal(bytes);
  return texts_.emplace_back(PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes))).c_str();
}

const char* Options::Text(const char* name) {
  const nb::object value = Value(name);
  return value.is_none() ? nullptr : texts_.emplace_back(Utf8(Name(name), value)).c_str();
}

double Options::Number(const char* name) {
  const nb::object value = Value(name);
  if (value.is_none()) return 0;
  const bool is_truth = PyBool_Check(value.ptr());
  const double number = is_truth ? 0 : PyFloat_AsDouble(value.ptr());
  if (is_truth || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    RaiseType(Name(name) + " is " + Shown(value) + "; allowed is a number");
  }
  return number;
}

int64_t Options::CountTo(const char* name, int64_t most) {
  const nb::object value = Value(name);
  return value.is_none() ? 0 : Integer(Name(name), value, 0, most);
}

int64_t Options::Signed(const char* name) {
  const nb::object value = Value(name);
  if (value.is_none()) return 0;
  return Integer(Name(name), value, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

int32_t Options::Flag(const char* name) {
  const nb::object value = Value(name);
  if (value.is_none()) return 0;
  return Truth(Name(name), value);
}

int Options::ParseChoice(const char* name, std::initializer_list<Word> words) {
  const nb::object value = Value(name);
  if (value.is_none()) return 0;
  const std::string given = Utf8(Name(name), value);
  std::string allowed;
  for (const Word& word : words) {
    if (given == word.word) return word.number;
    allowed += (allowed.empty() ? "'" : ", '") + std::string(word.word) + "'";
  }
  Raise(WISP_INVALID_ARGUMENT, Name(name) + " is " + Shown(value) + "; allowed are " + allowed);
}

std::vector<const char*> Options::Texts(const char* name) {
  std::vector<const char*> out;
  const nb::object value = Value(name);
  if (value.is_none()) return out;
  // A str is a sequence of its letters, which nobody means.
  if (PyUnicode_Check(value.ptr()) || !PySequence_Check(value.ptr()))
    RaiseType(Name(name) + " is " + Shown(value) + "; allowed is a list of str");
  for (nb::handle text : value)
    out.push_back(texts_.emplace_back(Utf8(Name(name) + "[" + std::to_string(out.size()) + "]", text)).c_str());
  return out;
}

void Options::End() const {
  for (const auto& [key, value] : values_)
    if (asked_.count(Utf8("an argument's name", key)) == 0)
      RaiseType(std::string(called_) + " has no argument " + Shown(key));
}

void RefuseMask(const Label& label, nb::handle given) {
  if (IsPlainArray(given) || !nb::hasattr(given, "mask")) return;
  const nb::object mask = given.attr("mask");
  if (!nb::hasattr(mask, "any")) return;
  const nb::object any = mask.attr("any")();
  const int is_masked = PyObject_IsTrue(any.ptr());
  if (is_masked < 0) throw nb::python_error();
  if (is_masked == 0) return;
  RaiseType(label.text() + " is a masked array, whose masked items would count; allowed are the others alone: " +
            "compressed() of one history, a list of those for several");
}

Items::Items(Label label, nb::handle given) : label_(label) {
  if (given.is_none()) return;
  if (!FromBuffer(label, given)) FromSequence(label, given);
  if (size_ == 0) data_ = &kNone;
}

bool Items::FromBuffer(Label label, nb::handle given) {
  // Lists are the most frequent argument beside arrays, and have no buffer. Bytes have one, but are not items.
  if (PyList_Check(given.ptr()) || PyBytes_Check(given.ptr()) || PyByteArray_Check(given.ptr())) return false;
  if (!buffer_.Take(given, PyBUF_FORMAT | PyBUF_STRIDES)) return false;
  RefuseMask(label, given);
  const Py_buffer& view = buffer_.view();
  const char format = IntegerFormat(view);
  // arrays of objects or of texts
  if (view.ndim == 1 && view.format != nullptr && std::strpbrk(view.format, "Ow") != nullptr) {
    buffer_.Release();
    return false;
  }
  if (view.ndim == 1 && view.shape[0] == 0) return true;  // whatever its type: numpy.array([]) is of float64
  if (view.ndim != 1 || format == 0)
    RaiseType(label.text() + " is an array of " + std::to_string(view.ndim) + " dimensions and type '" +
              (view.format == nullptr ? "B" : view.format) + "'; allowed is one dimension of integers, best int32");
  size_ = static_cast<size_t>(view.shape[0]);
  // Always copied: the library reads items twice, to check and to use them, and other threads may write to the array
  // meanwhile.
  copied_.resize(size_);
  int64_t wrong = 0;
  if ((format == 'i' || format == 'l') && view.itemsize == sizeof(int32_t) &&
      (size_ < 2 || view.strides[0] == sizeof(int32_t))) {
    std::memcpy(copied_.data(), view.buf, size_ * sizeof(int32_t));
  } else if (!CopyAny(view, format, copied_, &wrong)) {
    Raise(WISP_INVALID_ARGUMENT, label.text() + "[" + std::to_string(wrong) + "] is no 32-bit integer; allowed are " +
                                     std::to_string(kLeastItem) + " to " + std::to_string(kMostItems));
  }
  buffer_.Release();
  data_ = copied_.data();
  return true;
}

void Items::FromSequence(Label label, nb::handle given) {
  PyObject* const object = given.ptr();
  if (PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object) ||
      !(PySequence_Check(object) || PyAnySet_Check(object)))
    RaiseType(label.text() + " is " + Shown(given) +
              "; allowed is an int32 array, or a list of whole numbers or items' keys");
  // Copied to a list: items may be objects whose code changes the sequence while it is read.
  const nb::object list = nb::steal(PySequence_List(object));
  if (!list.is_valid()) throw nb::python_error();
  const Py_ssize_t num = PyList_Size(list.ptr());
  copied_.resize(static_cast<size_t>(num));
  for (Py_ssize_t i = 0; i < num; ++i) {
    PyObject* const item = PyList_GetItem(list.ptr(), i);
    if (PyUnicode_Check(item)) {
      keys_.emplace_back(static_cast<size_t>(i), Utf8(label.text() + "[" + std::to_string(i) + "]", item));
      continue;
    }
    int overflow = 1;
    const int64_t value = PyLong_CheckExact(item) ? PyLong_AsLongLongAndOverflow(item, &overflow) : 0;
    copied_[static_cast<size_t>(i)] =
        static_cast<int32_t>(overflow == 0 && std::in_range<int32_t>(value)
                                 ? value
                                 : Integer(label.text() + "[" + std::to_string(i) + "]", item, kLeastItem, kMostItems));
  }
  size_ = copied_.size();
  data_ = copied_.data();
}

void Items::FindKeys(const wisp_model* model) {
  for (const auto& [at, key] : keys_) {
    const int32_t item = wisp_model_find_item(model, key.c_str());
    if (item < 0)
      Raise(WISP_INVALID_ARGUMENT, label_.text() + "[" + std::to_string(at) + "] is " + Shown(nb::str(key.c_str())) +
                                       "; the model has no item of this key");
    copied_[at] = item;
  }
}

}  // namespace wisp_python
