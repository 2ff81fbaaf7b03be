// Arguments and results of generation, for texts that are charged and texts that are not.
#ifndef WISP_PORTS_PYTHON_CORE_GENERATE_H_
#define WISP_PORTS_PYTHON_CORE_GENERATE_H_

#include <optional>
#include <vector>

#include "ports/python/core/model.h"

namespace wisp_python {

class GenerateArguments {
 public:
  GenerateArguments(Dict given, const char* called);
  const wisp_generate_options& options() const { return options_; }
  Options& given() { return given_; }
  void End() const { given_.End(); }

 private:
  Options given_;
  std::vector<const char*> stop_;
  wisp_generate_options options_ = WISP_INIT(wisp_generate_options);
};

// Calls a Python function with each new piece; False ends the text. An exception that it raises, and Ctrl-C, also end
// the text, and are raised again after the call. It is called without the GIL.
class Listener {
 public:
  explicit Listener(nb::object on_text) : on_text_(std::move(on_text)) {}
  static int32_t OnText(void* self, const char* text, size_t num_bytes) {
    return static_cast<Listener*>(self)->Say(-1, text, num_bytes);
  }
  static int32_t OnBatchText(void* self, size_t prompt, const char* text, size_t num_bytes) {
    auto* const listener = static_cast<Listener*>(self);
    return listener->raised_ ? 0 : listener->Say(static_cast<int64_t>(prompt), text, num_bytes);
  }
  // A `note` that is not empty is added to the exception.
  void Rethrow(const char* note = "") {
    if (!raised_) return;
    if (*note != '\0') raised_->value().attr("add_note")(note);
    throw std::move(*raised_);
  }

 private:
  int32_t Say(int64_t prompt, const char* text, size_t num_bytes);

  nb::object on_text_;
  std::optional<nb::python_error> raised_;
};

Dict MakeGenerated(const wisp_generated& generated);

}  // namespace wisp_python

#endif  // WISP_PORTS_PYTHON_CORE_GENERATE_H_
