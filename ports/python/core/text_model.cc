// wisp._core.TextModel: vectors, classes and generated texts (wisp_text.h).
#include <algorithm>
#include <limits>

#include "ports/python/core/arrays.h"
#include "ports/python/core/generate.h"

namespace wisp_python {
namespace {

void Open(TextModel* self, Dict given) {
  const OpenArguments arguments(std::move(given), "TextModel.open");
  auto model = std::make_shared<TextHandle>();
  wisp_error error;
  const wisp_code code =
      WithoutGil([&] { return wisp_text_open(arguments.path(), &arguments.options(), model->out(), &error); });
  Check(code, error);
  arguments.Finish();
  new (self) TextModel{std::move(model)};
}

wisp_text_info ReadInfo(wisp_text_model* model) {
  wisp_text_info info = WISP_INIT(wisp_text_info);
  wisp_error error;
  Check(wisp_text_info_read(model, &info, &error), error);
  return info;
}

Dict Info(const TextModel& self) {
  const InUse model(self.opened());
  const wisp_text_info info = ReadInfo(model.get());
  Dict out;
  out["width"] = info.width;
  out["num_classes"] = info.num_classes;
  out["max_length"] = info.max_length;
  out["num_tokens"] = info.num_tokens;
  out["is_decoder"] = info.is_decoder != 0;
  out["bytes"] = info.bytes;
  return out;
}

nb::typed<nb::list, nb::str> Classes(const TextModel& self) {
  const InUse model(self.opened());
  nb::list out;
  for (uint32_t i = 0; i < ReadInfo(model.get()).num_classes; ++i)
    out.append(nb::str(wisp_text_class_name(model.get(), i)));
  return out;
}

nb::object Tokenize(const TextModel& self, nb::handle text) {
  const std::string utf8 = Utf8("text", text);
  const InUse model(self.opened());
  std::vector<int32_t> tokens(ReadInfo(model.get()).max_length);
  size_t count = tokens.size();
  wisp_error error;
  const wisp_code code =
      WithoutGil([&] { return wisp_text_tokenize(model.get(), utf8.c_str(), tokens.data(), &count, &error); });
  Check(code, error);
  NewArray<int32_t> out(count);
  std::copy_n(tokens.data(), count, out.data());
  return out.array();
}

using TextFunction = wisp_code (*)(wisp_text_model*, const char*, float*, size_t, wisp_error*);

// Computes one row of `width` numbers per text; checks for Ctrl-C between texts.
nb::object EachText(wisp_text_model* model, TextFunction of_text, const std::vector<const char*>& texts, size_t width) {
  NewArray<float> out(texts.size(), width);
  wisp_error error;
  for (size_t i = 0; i < texts.size(); ++i) {
    float* const row = out.data() + i * width;
    const wisp_code code = WithoutGil([&] { return of_text(model, texts[i], row, width, &error); });
    Check(code, error, texts.size() > 1 ? Label{"texts", static_cast<int64_t>(i)}.text() + ": " : "");
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return out.array();
}

// A str gives one row, a list of str an array of rows.
template <TextFunction kPerText, uint32_t wisp_text_info::*kWidth>
nb::object OfTexts(const TextModel& self, nb::handle texts) {
  const bool is_one = PyUnicode_Check(texts.ptr());
  Dict given;
  given["texts"] = is_one ? nb::object(nb::make_tuple(texts)) : nb::borrow(texts);
  Options options(std::move(given), "TextModel");
  const std::vector<const char*> read = options.Texts("texts");
  if (texts.is_none()) RaiseType("texts is None; allowed is a str or a list of str");
  const InUse model(self.opened());
  const nb::object rows = EachText(model.get(), kPerText, read, ReadInfo(model.get()).*kWidth);
  return is_one ? nb::object(rows[0]) : rows;
}

Dict Generate(const TextModel& self, nb::handle prompt, Dict given, nb::object on_text) {
  const std::string text = Utf8("prompt", prompt);
  GenerateArguments arguments(std::move(given), "TextModel.generate");
  arguments.End();
  const InUse model(self.opened());
  Listener listener(std::move(on_text));
  wisp_generated generated = WISP_INIT(wisp_generated);
  wisp_error error;
  const wisp_code code = WithoutGil([&] {
    return wisp_text_generate(model.get(), text.c_str(), &arguments.options(), &Listener::OnText, &listener, &generated,
                              &error);
  });
  listener.Rethrow();
  Check(code, error);
  return MakeGenerated(generated);
}

nb::typed<nb::list, Dict> GenerateBatch(const TextModel& self, Dict given, nb::object on_text) {
  GenerateArguments arguments(std::move(given), "TextModel.generate_batch");
  const std::vector<const char*> prompts = arguments.given().Texts("prompts");
  const auto at_once = arguments.given().Count<uint32_t>("at_once");
  arguments.End();
  const InUse model(self.opened());
  Listener listener(std::move(on_text));
  std::vector<wisp_generated> generated(prompts.size(), WISP_INIT(wisp_generated));
  wisp_error error;
  const wisp_code code = prompts.empty() ? WISP_OK : WithoutGil([&] {
    return wisp_text_generate_batch(model.get(), prompts.data(), prompts.size(), &arguments.options(), at_once,
                                    &Listener::OnBatchText, &listener, generated.data(), &error);
  });
  listener.Rethrow();
  Check(code, error);
  nb::list out;
  for (const wisp_generated& one : generated) out.append(MakeGenerated(one));
  return out;
}

constexpr char kEmbedDoc[] = R"(The vectors of texts, by an encoder.

texts: a str, or a list of str. What does not fit max_length tokens is left out.
Returns float32 of shape (width,) for a str, (n, width) for a list of n.
Raises InvalidArgument where the model is no encoder. Ctrl-C is seen between texts.)";

constexpr char kClassifyDoc[] = R"(The probability of each class of texts, by a classifier.

Returns float32 of shape (num_classes,) for a str, (n, num_classes) for a list of n; columns as in `classes`.)";

constexpr char kTokenizeDoc[] =
    R"(The tokens of a text as the model reads them: int32 of shape (count,), at most max_length.)";

}  // namespace

GenerateArguments::GenerateArguments(Dict given, const char* called) : given_(std::move(given), called) {
  options_.max_new_tokens = given_.Count<uint32_t>("max_new_tokens");
  options_.top_k = given_.Count<uint32_t>("top_k");
  options_.temperature = given_.Number("temperature");
  options_.top_p = given_.Number("top_p");
  options_.min_p = given_.Number("min_p");
  options_.repetition_penalty = given_.Number("repetition_penalty");
  options_.seed = given_.Count<uint64_t>("seed");
  options_.greedy = given_.Flag("greedy");
  stop_ = given_.Texts("stop");
  options_.stop = stop_.data();
  options_.num_stop = stop_.size();
}

int32_t Listener::Say(int64_t prompt, const char* text, size_t num_bytes) {
  const Acquired acquired;
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (on_text_.is_none()) return 1;
    const nb::object said = nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(num_bytes), "replace"));
    if (!said.is_valid()) throw nb::python_error();
    const nb::object answer = prompt < 0 ? on_text_(said) : on_text_(prompt, said);
    return answer.ptr() == Py_False ? 0 : 1;
  } catch (nb::python_error& raised) {
    if (!raised_) raised_.emplace(std::move(raised));
    return 0;
  }
}

Dict MakeGenerated(const wisp_generated& generated) {
  constexpr const char* kEnded[] = {"length", "token", "stop", "context", "caller"};
  Dict out;
  out["text"] =
      nb::steal(PyUnicode_DecodeUTF8(generated.text, static_cast<Py_ssize_t>(generated.text_bytes), "replace"));
  out["num_tokens"] = generated.num_tokens;
  out["prompt_tokens"] = generated.prompt_tokens;
  out["ended"] = kEnded[std::clamp<int>(generated.ended, WISP_ENDED_LENGTH, WISP_ENDED_CALLER)];
  return out;
}

void BindTexts(nb::module_& module) {
  constexpr char kTexts[] = "texts: str | collections.abc.Sequence[str]) -> numpy.typing.NDArray[numpy.float32]";
  static const std::string embed = std::string("def embed(self, ") + kTexts;
  static const std::string classify = std::string("def classify(self, ") + kTexts;
  nb::class_<TextModel>(module, "TextModel", "What wisp.TextModel is made of.")
      .def("__init__", &Open, nb::arg("options"))
      .def("embed", &OfTexts<wisp_text_embed, &wisp_text_info::width>, nb::arg("texts").none(), nb::sig(embed.c_str()),
           kEmbedDoc)
      .def("classify", &OfTexts<wisp_text_classify, &wisp_text_info::num_classes>, nb::arg("texts").none(),
           nb::sig(classify.c_str()), kClassifyDoc)
      .def("tokenize", &Tokenize, nb::arg("text"),
           nb::sig("def tokenize(self, text: str) -> numpy.typing.NDArray[numpy.int32]"), kTokenizeDoc)
      .def(
          "close", [](TextModel& self) { self.model.reset(); },
          "Lets go of the model; a call that runs in another thread ends first. Closing twice is allowed.")
      .def_prop_ro(
          "closed", [](const TextModel& self) { return self.model == nullptr; }, "Whether it was closed.")
      .def("_info", &Info)
      .def("_classes", &Classes)
      .def("_generate", &Generate, nb::arg("prompt"), nb::arg("options"), nb::arg("on_text") = nb::none())
      .def("_generate_batch", &GenerateBatch, nb::arg("options"), nb::arg("on_text") = nb::none());
}

}  // namespace wisp_python
