// wisp._core.PrivateRecommender and PrivateGenerator, whose samples are charged before they are made.
#include <algorithm>
#include <array>
#include <limits>

#include "ports/python/core/arrays.h"
#include "ports/python/core/generate.h"
#include "ports/python/core/privacy.h"

namespace wisp_python {
namespace {

using RecommenderHandle = Handle<wisp_private_recommender, wisp_private_recommender_close>;
using GeneratorHandle = Handle<wisp_private_generator, wisp_private_generator_close>;

// Reads the options of opening: the ledger, the parameters of samples, and the anchor, which is called until samples
// end.
struct SampleArguments {
  SampleArguments(Dict dict, const char* called)
      : given(std::move(dict), called), anchor(std::make_unique<Anchor>(given.Value("anchor"))) {
    options.ledger_path = given.Path("ledger");
    options.decoding =
        given.Choice<wisp_decoding>("decoding", {{"mixed", WISP_DECODING_MIXED}, {"anchored", WISP_DECODING_ANCHORED}});
    public_datasets = given.Texts("public_datasets");
    options.public_datasets = public_datasets.data();
    options.num_public_datasets = public_datasets.size();
    options.lambda = given.Number("lambda_");
    options.clip = given.Number("clip");
    options.epsilon_per_sample = given.Number("epsilon_per_sample");
    options.epsilon = given.Number("epsilon");
    options.delta = given.Number("delta");
    options.planned_samples = given.Count<uint64_t>("planned_samples");
    options.budget_epsilon = given.Number("budget_epsilon");
    options.num_records_public = given.Count<uint32_t>("num_records_public");
    options.allow_large_delta = given.Flag("allow_large_delta");
    options.temperature = given.Number("temperature");
    options.top_k = given.Count<uint32_t>("top_k");
    options.top_p = given.Number("top_p");
    options.samples_per_charge = given.Count<uint32_t>("samples_per_charge");
    options.other_data = given.Flag("other_data");
    options.uncharged_tuning = given.Text("uncharged_tuning");
    options.unit = ReadGivenUnit(given);
    options.anchor = anchor->anchor();
  }

  Options given;
  std::unique_ptr<Anchor> anchor;
  std::vector<const char*> public_datasets;
  wisp_private_options options = WISP_INIT(wisp_private_options);
};

// Enters the doors in one order everywhere, so that threads never wait for each other.
class UseAll {
 public:
  explicit UseAll(std::array<Door*, 3> doors) {
    std::sort(doors.begin(), doors.end());
    Door* last = nullptr;
    for (Door* door : doors) {
      if (door != nullptr && door != last) uses_.emplace_back(*door);
      last = door;
    }
  }

 private:
  std::vector<Use> uses_;
};

// A sampling handle with what must outlive it. Members are destroyed in reverse order, the handle first.
template <class Sampler, class Source>
struct Samples {
  std::unique_ptr<Anchor> anchor;
  std::shared_ptr<Source> model, base;
  std::shared_ptr<Sampler> sampler;

  UseAll Enter() const { return UseAll({sampler.get(), model.get(), base.get()}); }
  // Sets whether the call that is inside waits for a reader; false: the object was closed, and it should not wait.
  bool Waits(bool waits) const {
    for (Door* door : std::initializer_list<Door*>{sampler.get(), model.get(), base.get()})
      if (door != nullptr) door->waits_for_reader = waits;
    return sampler != nullptr;
  }
  // Writes nothing to disk. A running call keeps what it uses; others wait for it.
  void Close() {
    Waits(false);
    sampler.reset();
    model.reset();
    base.reset();
  }
};

struct PrivateRecommender : Samples<RecommenderHandle, Model> {
  void CheckOpen() const { Opened(sampler, "PrivateRecommender"); }
};
struct PrivateGenerator : Samples<GeneratorHandle, TextHandle> {
  void CheckOpen() const { Opened(sampler, "PrivateGenerator"); }
};

// For Python's cycle collector: an anchor may refer to the object that calls it.
template <class Held>
int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Held* const held = nb::inst_ptr<Held>(self);
  if (held->anchor != nullptr) Py_VISIT(held->anchor->object().ptr());
  return 0;
}

template <class Held>
int Clear(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  Held* const held = nb::inst_ptr<Held>(self);
  held->Close();
  held->anchor.reset();
  return 0;
}

template <class Held>
PyType_Slot kCollected[] = {{Py_tp_traverse, reinterpret_cast<void*>(&Traverse<Held>)},
                            {Py_tp_clear, reinterpret_cast<void*>(&Clear<Held>)},
                            {0, nullptr}};

void OpenRecommender(PrivateRecommender* self, const Recommender& model, const Recommender* base, Dict given) {
  SampleArguments arguments(std::move(given), "PrivateRecommender");
  arguments.given.End();
  PrivateRecommender made;
  made.model = model.opened();
  if (base != nullptr) made.base = base->opened();
  made.sampler = std::make_shared<RecommenderHandle>();
  arguments.options.base_model = base == nullptr ? nullptr : made.base->get();
  wisp_error error;
  {
    const UseAll use = made.Enter();
    const wisp_code code = WithoutGil([&] {
      return wisp_private_recommender_open(made.model->get(), &arguments.options, made.sampler->out(), &error);
    });
    if (code != WISP_OK) arguments.anchor->Rethrow();
    Check(code, error);
  }
  made.anchor = std::move(arguments.anchor);
  new (self) PrivateRecommender(std::move(made));
}

nb::object Recommend(const PrivateRecommender& self, nb::handle history, nb::handle k, nb::handle exclude,
                     nb::handle candidates, nb::handle allow_seen) {
  self.CheckOpen();
  const PrivateRecommender held{{nullptr, self.model, self.base, self.sampler}};
  Items read({"history"}, history);
  RecommendArguments arguments(exclude, candidates, allow_seen);
  const int64_t wanted = Integer("k", k, 0, std::numeric_limits<int64_t>::max());
  const UseAll use = held.Enter();
  read.FindKeys(held.model->get());
  arguments.FindKeys(held.model->get());
  size_t count = std::min<size_t>(static_cast<size_t>(wanted), wisp_model_num_items(held.model->get()));
  std::vector<int32_t> items(std::max<size_t>(count, 1));
  wisp_error error;
  const wisp_code code = WithoutGil([&] {
    return wisp_private_recommend(held.sampler->get(), read.data(), read.size(), arguments.options(), items.data(),
                                  &count, &error);
  });
  if (code != WISP_OK && self.anchor != nullptr) self.anchor->Rethrow();
  Check(code, error);
  NewArray<int32_t> out(count);
  std::copy_n(items.data(), count, out.data());
  return out.array();
}

void OpenGenerator(PrivateGenerator* self, const TextModel& model, const TextModel* base, Dict given) {
  SampleArguments arguments(std::move(given), "PrivateGenerator");
  wisp_private_text_options options = WISP_INIT(wisp_private_text_options);
  const std::vector<const char*> texts = arguments.given.Texts("private_texts");
  options.private_texts = texts.data();
  options.num_private_texts = texts.size();
  options.mix_with_base = arguments.given.Flag("mix_with_base");
  options.base_top = arguments.given.Count<uint32_t>("base_top");
  options.mixing_floor = arguments.given.Number("mixing_floor");
  options.contexts = arguments.given.Count<uint32_t>("contexts");
  options.context_before = arguments.given.Text("context_before");
  options.context_after = arguments.given.Text("context_after");
  options.public_text = arguments.given.Text("public_text");
  options.dataset = arguments.given.Text("dataset");
  arguments.given.End();
  PrivateGenerator made;
  made.model = model.opened();
  if (base != nullptr) made.base = base->opened();
  made.sampler = std::make_shared<GeneratorHandle>();
  options.samples = &arguments.options;
  options.base_model = base == nullptr ? nullptr : made.base->get();
  wisp_error error;
  {
    const UseAll use = made.Enter();
    const wisp_code code = WithoutGil(
        [&] { return wisp_private_generator_open(made.model->get(), &options, made.sampler->out(), &error); });
    if (code != WISP_OK) arguments.anchor->Rethrow();
    Check(code, error);
  }
  made.anchor = std::move(arguments.anchor);
  new (self) PrivateGenerator(std::move(made));
}

Dict Generate(const PrivateGenerator& self, nb::handle prompt, Dict given, nb::object on_text) {
  self.CheckOpen();
  const PrivateGenerator held{{nullptr, self.model, self.base, self.sampler}};
  const std::string text = Utf8("prompt", prompt);
  GenerateArguments arguments(std::move(given), "PrivateGenerator.generate");
  arguments.End();
  Listener listener(std::move(on_text));
  const UseAll use = held.Enter();
  wisp_generated generated = WISP_INIT(wisp_generated);
  wisp_error error;
  const wisp_code code = WithoutGil([&] {
    return wisp_private_generate(held.sampler->get(), text.c_str(), &arguments.options(), &Listener::OnText, &listener,
                                 &generated, &error);
  });
  listener.Rethrow("wisp: the text was ended; the tokens that were sampled stay charged");
  if (code != WISP_OK && self.anchor != nullptr) self.anchor->Rethrow();
  Check(code, error);
  return MakeGenerated(generated);
}

template <class Sampler, int32_t (*IsFree)(const Sampler*)>
bool Free(const auto& self) {
  self.CheckOpen();
  return IsFree(self.sampler->get()) == 1;
}

}  // namespace

void BindPrivate(nb::module_& module) {
  nb::class_<PrivateRecommender>(module, "PrivateRecommender", "What wisp.PrivateRecommender is made of.",
                                 nb::type_slots(kCollected<PrivateRecommender>))
      .def("__init__", &OpenRecommender, nb::arg("model"), nb::arg("base").none(), nb::arg("options"))
      .def("_recommend", &Recommend, nb::arg("history"), nb::arg("k"), nb::arg("exclude").none(),
           nb::arg("candidates").none(), nb::arg("allow_seen").none(),
           nb::sig("def _recommend(self, history: object, k: int, exclude: object, candidates: object, "
                   "allow_seen: bool | None) -> numpy.typing.NDArray[numpy.int32]"))
      .def("close", &PrivateRecommender::Close, "Lets go of the ledger and the models. Closing twice is allowed.")
      .def_prop_ro(
          "closed", [](const PrivateRecommender& self) { return self.sampler == nullptr; }, "Whether it was closed.")
      .def_prop_ro(
          "is_free",
          [](const PrivateRecommender& self) {
            return Free<wisp_private_recommender, wisp_private_recommender_is_free>(self);
          },
          "Whether samples cost nothing; else they are charged.");
  nb::class_<PrivateGenerator>(module, "PrivateGenerator", "What wisp.PrivateGenerator is made of.",
                               nb::type_slots(kCollected<PrivateGenerator>))
      .def("__init__", &OpenGenerator, nb::arg("model"), nb::arg("base").none(), nb::arg("options"))
      .def("_generate", &Generate, nb::arg("prompt"), nb::arg("options"), nb::arg("on_text") = nb::none())
      .def("_waits", &PrivateGenerator::Waits, nb::arg("waits"))
      .def("close", &PrivateGenerator::Close, "Lets go of the ledger and the models. Closing twice is allowed.")
      .def_prop_ro(
          "closed", [](const PrivateGenerator& self) { return self.sampler == nullptr; }, "Whether it was closed.")
      .def_prop_ro(
          "is_free",
          [](const PrivateGenerator& self) {
            return Free<wisp_private_generator, wisp_private_generator_is_free>(self);
          },
          "Whether tokens cost nothing; else they are charged.");
}

}  // namespace wisp_python
