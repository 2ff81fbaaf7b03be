// Raises the library's codes as Python exceptions (wisp/_errors.py), with its sentences.
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

// A dict of names and values, in the form that type checkers see.
using Dict = nb::typed<nb::dict, nb::str, nb::any>;

// Binds set_errors, by which wisp/_errors.py passes its classes: one for each code, and Closed.
void BindErrors(nb::module_& module);

// Sets the exception of this code and throws. The GIL must be held.
[[noreturn]] void Raise(wisp_code code, const std::string& sentence);
// TypeError: the argument cannot have such a value.
[[noreturn]] void RaiseType(const std::string& sentence);
// Error for a closed handle; `what` is "Recommender", for example.
[[noreturn]] void RaiseClosed(const char* what);

// Throws unless the code is WISP_OK; `where` precedes the sentence.
inline void Check(wisp_code code, const wisp_error& error, const std::string& where = "") {
  if (code != WISP_OK) Raise(code, where + error.message);
}

}  // namespace wisp_python

#endif  // WISP_PORTS_PYTHON_CORE_ERRORS_H_
