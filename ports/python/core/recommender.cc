// wisp._core.Recommender, which ranks items. Its subclass in Python (wisp/recommender.py) declares the arguments of
// opening.
#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <string_view>

#include "ports/python/core/arrays.h"
#include "ports/python/core/model.h"

namespace wisp_python {
namespace {

constexpr size_t kAlignment = 64;  // alignment of a model in memory (wisp_embed.h)

void OpenPath(Recommender* self, Dict given) {
  const OpenArguments arguments(std::move(given), "Recommender.open");
  auto model = std::make_shared<Model>();
  wisp_error error;
  const wisp_code code =
      WithoutGil([&] { return wisp_model_open_with(arguments.path(), &arguments.options(), model->out(), &error); });
  Check(code, error);
  arguments.Finish();
  new (self) Recommender{std::move(model)};
}

// Bytes objects, and files mapped for reading, are used in place if a model may start there, because nobody can change
// them. Other memory is copied.
const void* Keep(Model& model, nb::handle bytes, size_t* size) {
  if (!model.memory.Take(bytes, PyBUF_SIMPLE))
    RaiseType("Recommender.from_bytes: data is " + Shown(bytes) + "; allowed are bytes, or what has them in one piece");
  const Py_buffer& view = model.memory.view();
  *size = static_cast<size_t>(view.len);
  const bool is_map = std::string_view(nb::inst_name(bytes).c_str()) == "mmap.mmap" && view.readonly != 0;
  if ((PyBytes_Check(bytes.ptr()) || is_map) && reinterpret_cast<uintptr_t>(view.buf) % kAlignment == 0)
    return view.buf;
  model.copy.resize(*size + kAlignment);
  char* const start = model.copy.data();
  char* const at = start + (kAlignment - reinterpret_cast<uintptr_t>(start) % kAlignment) % kAlignment;
  WithoutGil([&] { std::memcpy(at, view.buf, *size); });
  model.memory.Release();
  return at;
}

void OpenBytes(Recommender* self, nb::handle bytes, const std::string& name, Dict given) {
  const OpenArguments arguments(std::move(given), "Recommender.from_bytes", OpenArguments::From::kMemory);
  auto model = std::make_shared<Model>();
  size_t size = 0;
  const void* const at = Keep(*model, bytes, &size);
  wisp_error error;
  const wisp_code code = WithoutGil(
      [&] { return wisp_model_open_memory(name.c_str(), at, size, &arguments.options(), model->out(), &error); });
  Check(code, error);
  new (self) Recommender{std::move(model), {static_cast<const char*>(at), size}};
}

size_t NumWanted(nb::handle k, const wisp_model* model) {
  const int64_t wanted = Integer("k", k, 0, std::numeric_limits<int64_t>::max());
  return std::min<size_t>(static_cast<size_t>(wanted), wisp_model_num_items(model));
}

nb::object Recommend(const Recommender& self, nb::handle history, nb::handle k, nb::handle exclude,
                     nb::handle candidates, nb::handle allow_seen) {
  self.opened();
  Items read({"history"}, history);
  RecommendArguments arguments(exclude, candidates, allow_seen);
  const InUse model(self.opened());
  read.FindKeys(model.get());
  arguments.FindKeys(model.get());
  size_t count = NumWanted(k, model.get());
  constexpr size_t kFew = 64;
  wisp_recommendation few[kFew];
  std::vector<wisp_recommendation> many(count > kFew ? count : 0);
  wisp_recommendation* const out = many.empty() ? few : many.data();
  wisp_error error;
  const wisp_code code = WithoutGil(
      [&] { return wisp_recommend(model.get(), read.data(), read.size(), arguments.options(), out, &count, &error); });
  Check(code, error);
  NewArray<int32_t> items(count);
  NewArray<float> scores(count);
  for (size_t i = 0; i < count; ++i) {
    items.data()[i] = out[i].item;
    scores.data()[i] = out[i].score;
  }
  return nb::make_tuple(items.array(), scores.array());
}

// Histories from a list or tuple, or from the rows of a two-dimensional array. Copied, like Items.
class Histories {
 public:
  explicit Histories(nb::handle given) {
    if (!ReadTable(given)) ReadRows(given);
  }
  void FindKeys(const wisp_model* model) {
    for (Items& row : rows_) row.FindKeys(model);
  }
  size_t size() const { return starts_.size(); }
  const int32_t* const* starts() const { return starts_.data(); }
  const size_t* lengths() const { return lengths_.data(); }

 private:
  bool ReadTable(nb::handle given) {
    if (PyList_Check(given.ptr()) || !table_.Take(given, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) return false;
    RefuseMask({"histories"}, given);
    const Py_buffer& view = table_.view();
    if (view.ndim != 2 || view.itemsize != sizeof(int32_t) || std::string_view(view.format) != "i") return false;
    const auto rows = static_cast<size_t>(view.shape[0]), width = static_cast<size_t>(view.shape[1]);
    if (rows > 0 && width == 0)
      Raise(WISP_INVALID_ARGUMENT, "histories has rows without items; allowed are one item and more in each");
    const auto* const first = static_cast<const int32_t*>(view.buf);
    copied_.assign(first, first + rows * width);
    for (size_t row = 0; row < rows; ++row) starts_.push_back(copied_.data() + row * width);
    lengths_.assign(rows, width);
    table_.Release();
    return true;
  }
  void ReadRows(nb::handle given) {
    if (PyUnicode_Check(given.ptr()) || PyBytes_Check(given.ptr()) || !PySequence_Check(given.ptr()))
      RaiseType("histories is " + Shown(given) +
                "; allowed is a list of int32 arrays or lists, or an array of two dimensions");
    const nb::object list = nb::steal(PySequence_List(given.ptr()));
    if (!list.is_valid()) throw nb::python_error();
    const Py_ssize_t num = PyList_Size(list.ptr());
    for (Py_ssize_t i = 0; i < num; ++i) {
      const nb::handle row = PyList_GetItem(list.ptr(), i);
      if (row.is_none()) RaiseType(Label{"histories", i}.text() + " is None; allowed is a list");
      const Items& read = rows_.emplace_back(Label{"histories", i}, row);
      starts_.push_back(read.data());
      lengths_.push_back(read.size());
    }
  }

  Buffer table_;
  std::deque<Items> rows_;
  std::vector<int32_t> copied_;
  std::vector<const int32_t*> starts_;
  std::vector<size_t> lengths_;
};

// Rows of results, padded with -1 and NaN.
nb::object Rows(const std::vector<wisp_recommendation>& out, const std::vector<size_t>& found, size_t count) {
  NewArray<int32_t> items(found.size(), count);
  NewArray<float> scores(found.size(), count);
  int32_t* item = items.data();
  float* score = scores.data();
  for (size_t row = 0; row < found.size(); ++row) {
    for (size_t i = 0; i < count; ++i) {
      const bool is_there = i < found[row];
      *item++ = is_there ? out[row * count + i].item : -1;
      *score++ = is_there ? out[row * count + i].score : std::numeric_limits<float>::quiet_NaN();
    }
  }
  return nb::make_tuple(items.array(), scores.array());
}

nb::object RecommendBatch(const Recommender& self, nb::handle histories, nb::handle k, nb::handle exclude,
                          nb::handle candidates, nb::handle allow_seen, nb::handle num_threads) {
  self.opened();
  Histories read(histories);
  RecommendArguments arguments(exclude, candidates, allow_seen);
  wisp_batch_options how = WISP_INIT(wisp_batch_options);
  how.num_threads = static_cast<uint32_t>(Integer("num_threads", num_threads, 0, std::numeric_limits<uint32_t>::max()));
  const InUse model(self.opened());
  read.FindKeys(model.get());
  arguments.FindKeys(model.get());
  const size_t count = NumWanted(k, model.get());
  std::vector<size_t> found(read.size());
  std::vector<wisp_recommendation> out(std::max<size_t>(read.size() * count, 1));
  wisp_error error;
  if (read.size() > 0) {
    const wisp_code code = WithoutGil([&] {
      return wisp_recommend_batch(model.get(), read.starts(), read.lengths(), read.size(), arguments.options(), &how,
                                  count, out.data(), found.data(), &error);
    });
    Check(code, error);
  }
  return Rows(out, found, count);
}

using HistoryFunction = wisp_code (*)(wisp_model*, const int32_t*, size_t, float*, size_t, wisp_error*);

wisp_model_info ReadInfo(const wisp_model* model) {
  wisp_model_info info = WISP_INIT(wisp_model_info);
  wisp_error error;
  Check(wisp_model_info_read(model, &info, &error), error);
  return info;
}

// Numbers of one history, as many as the model's `kSize`.
template <HistoryFunction kOfHistory, uint32_t wisp_model_info::*kSize>
nb::object OfHistory(const Recommender& self, nb::handle history) {
  self.opened();
  Items read({"history"}, history);
  const InUse model(self.opened());
  read.FindKeys(model.get());
  const size_t size = ReadInfo(model.get()).*kSize;
  NewArray<float> out(size);
  wisp_error error;
  const wisp_code code =
      WithoutGil([&] { return kOfHistory(model.get(), read.data(), read.size(), out.data(), size, &error); });
  Check(code, error);
  return out.array();
}

nb::object ItemVectors(const Recommender& self) {
  const InUse model(self.opened());
  const wisp_model_info info = ReadInfo(model.get());
  NewArray<float> out(info.num_items, info.width);
  wisp_error error;
  const wisp_code code = WithoutGil(
      [&] { return wisp_item_vectors(model.get(), out.data(), size_t{info.num_items} * info.width, &error); });
  Check(code, error);
  return out.array();
}

nb::object Find(const Recommender& self, nb::handle key) {
  const std::string text = Utf8("key", key);
  const InUse model(self.opened());
  const int32_t item = wisp_model_find_item(model.get(), text.c_str());
  return item < 0 ? nb::object(nb::none()) : nb::object(nb::int_(item));
}

// A text of an item; the C interface answers "" if the model has none.
template <const char* (*Get)(const wisp_model*, int32_t)>
nb::str GetText(const Recommender& self, nb::handle item) {
  const InUse model(self.opened());
  const int64_t most = static_cast<int64_t>(wisp_model_num_items(model.get())) - 1;
  return nb::str(Get(model.get(), static_cast<int32_t>(Integer("item", item, 0, most))));
}

Dict Info(const Recommender& self) {
  const InUse model(self.opened());
  const wisp_model_info info = ReadInfo(model.get());
  Dict out;
  out["num_items"] = info.num_items;
  out["max_length"] = info.max_length;
  out["width"] = info.width;
  out["num_blocks"] = info.num_blocks;
  out["num_retired"] = info.num_retired;
  out["allow_seen"] = info.allow_seen != 0;
  out["format"] = info.format;
  out["has_keys"] = info.has_keys != 0;
  out["content_hash"] = info.content_hash;
  out["file_bytes"] = info.file_bytes;
  return out;
}

Dict GetProvenance(wisp_model* model, uint32_t index) {
  wisp_provenance run = WISP_INIT(wisp_provenance);
  wisp_error error;
  Check(wisp_model_provenance(model, index, &run, &error), error);
  Dict out;
  out["description"] = nb::str(run.description);
  out["mechanisms"] = nb::str(run.mechanisms);
  out["epsilon"] = run.epsilon;
  out["delta"] = run.delta;
  out["accountant"] = nb::str(run.accountant);
  out["privacy_unit"] = nb::str(run.privacy_unit);
  out["adjacency"] = nb::str(run.adjacency);
  out["sampling"] = nb::str(run.sampling);
  out["dataset"] = nb::str(run.dataset);
  out["date"] = nb::str(run.date);
  out["steps"] = run.steps;
  out["base_hash"] = run.base_hash;
  out["secure_noise"] = run.secure_noise != 0;
  return out;
}

nb::typed<nb::list, Dict> Provenance(const Recommender& self) {
  const InUse model(self.opened());
  nb::list out;
  for (uint32_t i = 0; i < ReadInfo(model.get()).num_provenance; ++i) out.append(GetProvenance(model.get(), i));
  return out;
}

Dict PlanMemory(Dict given) {
  const OpenArguments arguments(std::move(given), "plan_memory");
  wisp_model_memory memory = WISP_INIT(wisp_model_memory);
  wisp_error error;
  const wisp_code code =
      WithoutGil([&] { return wisp_model_plan_memory_with(arguments.path(), &arguments.options(), &memory, &error); });
  Check(code, error);
  Dict out;
  out["file_bytes"] = memory.file_bytes;
  out["activation_bytes"] = memory.activation_bytes;
  out["packed_weights_bytes"] = memory.packed_weights_bytes;
  out["score_bytes"] = memory.score_bytes;
  out["name_bytes"] = memory.name_bytes;
  out["total_bytes"] = memory.total_bytes;
  out["device_bytes"] = memory.device_bytes;
  out["cold_start_bytes"] = memory.cold_start_bytes;
  return out;
}

constexpr char kItemsAndScores[] = "tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float32]]";
constexpr char kList[] = "numpy.typing.ArrayLike | collections.abc.Set[int | str]";

std::string Signature(const char* name, const char* first, const char* last) {
  const std::string list = std::string(kList) + " | None = None";
  return std::string("def ") + name + "(self, " + first + ", k: int = 10, *, exclude: " + list +
         ", candidates: " + list + ", allow_seen: bool | None = None" + last + ") -> " + kItemsAndScores;
}

constexpr char kRecommendDoc[] = R"(The best k items after a history, best first.

history: item numbers, oldest first, as an int32 array, another integer array, or a list, which may
  have items' keys in their place; empty for a user without history, who gets what is popular.
k: how many; fewer come where there are no more.
exclude: items that never come. candidates: if given, only these may come. allow_seen: whether items of the history
  may come; None: as the model says (info.allow_seen), which is what evaluate counts.

Returns (items, scores): int32 and float32 of shape (found,). Scores compare within one call only.
The keys and values of the last history are kept: one event more costs one position.
Raises InvalidArgument for an item that the model does not have, TypeError for what is no list of integers.)";

constexpr char kBatchDoc[] = R"(The same as recommend for several histories, to the bit, on num_threads threads.

histories: a list of histories, or an integer array of shape (n, length); none of them empty.
num_threads: at most 1024; 0: the smaller of 4 and the number of processors.

Returns (items, scores) of shape (n, min(k, items of the model)); where a row has fewer, items are -1 and scores NaN.
An error names the first history that is wrong. Ctrl-C is seen when the call is over.)";

constexpr char kScoresDoc[] = R"(The scores of all items after a history: float32 of shape (items of the model,).

The order is that of recommend, which also leaves out what no list may hold: retired items, those of the history.)";

constexpr char kItemVectorsDoc[] = R"(The vectors of all items: float32 of shape (items of the model, width).

An item's score after a history is its vector's product with the history's (user_vectors), and the item's bias.)";

}  // namespace

void BindRecommender(nb::module_& module) {
  static const std::string one = Signature("recommend", "history: numpy.typing.ArrayLike", "");
  static const std::string batch = Signature(
      "recommend_batch", "histories: numpy.typing.ArrayLike | collections.abc.Sequence[numpy.typing.ArrayLike]",
      ", num_threads: int = 0");
  nb::class_<Recommender>(module, "Recommender", "What wisp.Recommender is made of.")
      .def("__init__", &OpenPath, nb::arg("options"))
      .def("__init__", &OpenBytes, nb::arg("data"), nb::arg("name"), nb::arg("options"))
      .def("recommend", &Recommend, nb::arg("history"), nb::arg("k") = 10, nb::kw_only(),
           nb::arg("exclude") = nb::none(), nb::arg("candidates") = nb::none(), nb::arg("allow_seen") = nb::none(),
           nb::sig(one.c_str()), kRecommendDoc)
      .def("recommend_batch", &RecommendBatch, nb::arg("histories"), nb::arg("k") = 10, nb::kw_only(),
           nb::arg("exclude") = nb::none(), nb::arg("candidates") = nb::none(), nb::arg("allow_seen") = nb::none(),
           nb::arg("num_threads") = 0, nb::sig(batch.c_str()), kBatchDoc)
      .def(
          "close", [](Recommender& self) { self.model.reset(); },
          "Lets go of the model; a call that runs in another thread ends first. Closing twice is allowed.")
      .def_prop_ro(
          "closed", [](const Recommender& self) { return self.model == nullptr; }, "Whether it was closed.")
      .def("__len__", [](const Recommender& self) { return wisp_model_num_items(InUse(self.opened()).get()); })
      .def("find", &Find, nb::arg("key"), nb::sig("def find(self, key: str) -> int | None"),
           "The number of the item with this key, or None.")
      .def("item_key", &GetText<wisp_model_item_key>, nb::arg("item"), nb::sig("def item_key(self, item: int) -> str"),
           "The key that the item has in the app's own data; '' if the model carries none.")
      .def("item_name", &GetText<wisp_model_item_name>, nb::arg("item"),
           nb::sig("def item_name(self, item: int) -> str"),
           "The item's name for people; '' if the model carries none.")
      .def_prop_ro(
          "on_device", [](const Recommender& self) { return wisp_model_on_device(InUse(self.opened()).get()) != 0; },
          "Whether it computes on the device that was asked for; else on the processor.")
      .def("scores", &OfHistory<wisp_score, &wisp_model_info::num_items>, nb::arg("history"),
           nb::sig("def scores(self, history: numpy.typing.ArrayLike) -> numpy.typing.NDArray[numpy.float32]"),
           kScoresDoc)
      .def("item_vectors", &ItemVectors, nb::sig("def item_vectors(self) -> numpy.typing.NDArray[numpy.float32]"),
           kItemVectorsDoc)
      .def("_history_vector", &OfHistory<wisp_history_vector, &wisp_model_info::width>, nb::arg("history"),
           nb::sig("def _history_vector(self, history: numpy.typing.ArrayLike) -> "
                   "numpy.typing.NDArray[numpy.float32]"))
      .def("_bytes",
           [](const Recommender& self) {
             const InUse model(self.opened());
             return nb::bytes(self.bytes.data(), self.bytes.size());
           })
      .def("_info", &Info)
      .def("_provenance", &Provenance);
  module.def("plan_memory", &PlanMemory, nb::arg("options"));
}

}  // namespace wisp_python
