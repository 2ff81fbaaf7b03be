// wisp._core: the C interface for Python. Its public functions are in ports/python/wisp.
#include "ports/python/core/model.h"

NB_MODULE(_core, module) {
  module.doc() = "The C interface of wisp for Python. Use the package wisp.";
  module.def(
      "version", [] { return nanobind::str(wisp_version()); }, "The library's version.");
  wisp_python::BindErrors(module);
  wisp_python::BindEnding(module);
  wisp_python::BindRecommender(module);
  wisp_python::BindTexts(module);
  wisp_python::BindLog(module);
  wisp_python::BindTraining(module);
  wisp_python::BindDeployment(module);
  wisp_python::BindPrivate(module);
  wisp_python::BindFleet(module);
}
