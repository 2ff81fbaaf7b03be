// An open recommender as Python holds it, shared with private sampling (private.cc).
#ifndef WISP_PORTS_PYTHON_CORE_MODEL_H_
#define WISP_PORTS_PYTHON_CORE_MODEL_H_

#include <memory>
#include <string_view>

#include <wisp/wisp_deployment.h>
#include <wisp/wisp_text.h>

#include "ports/python/core/arguments.h"
#include "ports/python/core/handle.h"

namespace wisp_python {

using Model = Handle<wisp_model, wisp_model_close>;
using TextHandle = Handle<wisp_text_model, wisp_text_close>;

// Returns the handle of an object; raises Closed if Python has closed it.
template <class Shared>
const Shared& Opened(const Shared& handle, const char* what) {
  if (handle == nullptr) RaiseClosed(what);
  return handle;
}

class Recommender {
 public:
  std::shared_ptr<Model> model;
  std::string_view bytes = {};  // of a model in memory, which `model` keeps
  const std::shared_ptr<Model>& opened() const { return Opened(model, "Recommender"); }
};

class TextModel {
 public:
  std::shared_ptr<TextHandle> model;
  const std::shared_ptr<TextHandle>& opened() const { return Opened(model, "TextModel"); }
};

// Python's arguments of opening, and the memory that they point to.
class OpenArguments {
 public:
  enum class From { kPath, kMemory };  // a model in memory has no path
  OpenArguments(Dict given, const char* called, From from = From::kPath);
  const char* path() const { return path_; }
  const wisp_open_options& options() const { return options_; }
  // Call this after opening: it copies `verified` back to the caller's bytearray.
  void Finish() const;

 private:
  Options given_;
  const char* path_ = nullptr;
  wisp_open_options options_ = WISP_INIT(wisp_open_options);
  wisp_device device_ = WISP_INIT(wisp_device);
  wisp_verified verified_{};
  Buffer kept_;
};

// Reads "device", "device_module", "arithmetic" and "device_bytes" of a dict; null if no device is named.
const wisp_device* ChooseDevice(Options& given, wisp_device& device);

// Reads exclude, candidates and allow_seen of a call.
class RecommendArguments {
 public:
  RecommendArguments(nb::handle exclude, nb::handle candidates, nb::handle allow_seen);
  void FindKeys(const wisp_model* model) {
    exclude_.FindKeys(model);
    candidates_.FindKeys(model);
  }
  const wisp_recommend_options* options() const { return &options_; }

 private:
  Items exclude_, candidates_;
  wisp_recommend_options options_ = WISP_INIT(wisp_recommend_options);
};

void BindRecommender(nb::module_& module);
void BindTexts(nb::module_& module);
void BindLog(nb::module_& module);
void BindTraining(nb::module_& module);
void BindDeployment(nb::module_& module);
void BindPrivate(nb::module_& module);
void BindFleet(nb::module_& module);

}  // namespace wisp_python

#endif  // WISP_PORTS_PYTHON_CORE_MODEL_H_
