// The library's codes as exceptions of Python (wisp/_errors.py), with its sentences.
//
//   wisp_error error;
//   Check(wisp_model_open(path, &model, &error), error);
#ifndef WISP_PORTS_PYTHON_CORE_ERRORS_H_
#define WISP_PORTS_PYTHON_CORE_ERRORS_H_

#include <nanobind/nanobind.h>

#include <string>

#include <wisp/wisp.h>

namespace wisp_python {

namespace nb = nanobind;

// A dict of names and values, as type checkers see it.
using Dict = nb::typed<nb::dict, nb::str, nb::any>;

// set_errors, by which wisp/_errors.py gives its classes: one for each code, and Closed.
void BindErrors(nb::module_& module);

// Sets the exception of this code and throws. The GIL is held.
[[noreturn]] void Raise(wisp_code code, const std::string& sentence);
// TypeError: what was given can be no value of this argument.
[[noreturn]] void RaiseType(const std::string& sentence);
// A handle that was closed; `what` is "Recommender", say.
[[noreturn]] void RaiseClosed(const char* what);

// Throws unless the code is WISP_OK; `where` stands before the sentence.
inline void Check(wisp_code code, const wisp_error& error, const std::string& where = "") {
  if (code != WISP_OK) Raise(code, where + error.message);
}

}  // namespace wisp_python

#endif  // WISP_PORTS_PYTHON_CORE_ERRORS_H_
