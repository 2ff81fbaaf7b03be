// wisp._core.Log: the events of the device (wisp.h and wisp_deployment.h).
#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>

#include "ports/python/core/arrays.h"
#include "ports/python/core/privacy.h"

namespace wisp_python {
namespace {

using LogHandle = Handle<wisp_log, wisp_log_close>;

struct Log {
  std::shared_ptr<LogHandle> log;
  const std::shared_ptr<LogHandle>& opened() const { return Opened(log, "Log"); }
};

void Open(Log* self, nb::handle path) {
  Dict given;
  given["path"] = path;
  Options options(std::move(given), "Log.open");
  const char* const name = options.Path("path");
  auto log = std::make_shared<LogHandle>();
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_log_open(name, log->out(), &error); });
  Check(code, error);
  new (self) Log{std::move(log)};
}

int64_t GetTime(const std::string& name, nb::handle time) {
  return Integer(name, time, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

void Append(const Log& self, nb::handle user, nb::handle item_key, nb::handle time) {
  const std::string user_text = Utf8("user", user), item_text = Utf8("item_key", item_key);
  const int64_t at = GetTime("time", time);
  const InUse log(self.opened());
  wisp_error error;
  const wisp_code code =
      WithoutGil([&] { return wisp_log_append(log.get(), user_text.c_str(), item_text.c_str(), at, &error); });
  Check(code, error);
}

void AppendAll(const Log& self, nb::handle events) {
  std::deque<std::string> texts;
  std::vector<wisp_event> read;
  for (nb::handle event : nb::borrow(events)) {
    const std::string where = Label{"events", static_cast<int64_t>(read.size())}.text();
    if (!PyTuple_Check(event.ptr()) || PyTuple_Size(event.ptr()) != 3)
      RaiseType(where + " is " + Shown(event) + "; allowed is a tuple (user, item_key, time)");
    const nb::tuple one = nb::borrow<nb::tuple>(event);
    const char* const user = texts.emplace_back(Utf8(where + "'s user", one[0])).c_str();
    const char* const item = texts.emplace_back(Utf8(where + "'s item_key", one[1])).c_str();
    read.push_back({user, item, GetTime(where + "'s time", one[2])});
  }
  const InUse log(self.opened());
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_log_append_all(log.get(), read.data(), read.size(), &error); });
  Check(code, error);
}

nb::object History(const Log& self, const Recommender& recommender, nb::handle user, nb::handle limit) {
  const std::string text = UserKey("user", user);
  const InUse log(self.opened());
  const InUse model(recommender.opened());
  wisp_error error;
  wisp_model_info info = WISP_INIT(wisp_model_info);
  Check(wisp_model_info_read(model.get(), &info, &error), error);
  size_t count = limit.is_none() ? info.max_length : static_cast<size_t>(Integer("limit", limit, 0, 1 << 24));
  std::vector<int32_t> items(std::max<size_t>(count, 1));
  const wisp_code code =
      WithoutGil([&] { return wisp_log_history(log.get(), model.get(), text.c_str(), items.data(), &count, &error); });
  Check(code, error);
  NewArray<int32_t> out(count);
  std::copy_n(items.data(), count, out.data());
  return out.array();
}

nb::object Str(const char* text) {
  return nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "surrogateescape"));
}

nb::list Events(const Log& self, nb::handle user) {
  const std::string text = UserKey("user", user);
  std::vector<std::pair<std::string, int64_t>> read;
  {
    const InUse log(self.opened());
    wisp_error error;
    const wisp_on_event keep = [](void* list, const wisp_event* event) -> int32_t {
      static_cast<decltype(read)*>(list)->emplace_back(event->item_key, event->time);
      return 1;
    };
    const wisp_code code = WithoutGil([&] { return wisp_log_events(log.get(), text.c_str(), keep, &read, &error); });
    Check(code, error);
  }
  nb::list out;
  const nb::object who = nb::borrow(user);
  for (const auto& [item, time] : read) out.append(nb::make_tuple(who, Str(item.c_str()), time));
  return out;
}

uint64_t Erase(const Log& self, nb::handle user) {
  const std::string text = UserKey("user", user);
  const InUse log(self.opened());
  uint64_t erased = 0;
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_log_erase(log.get(), text.c_str(), &erased, &error); });
  Check(code, error);
  return erased;
}

uint64_t Prune(const Log& self, Dict dict) {
  Options given(std::move(dict), "Log.prune");
  wisp_prune_options options = WISP_INIT(wisp_prune_options);
  options.unit = ReadGivenUnit(given);
  options.has_before = given.Value("before").is_none() ? 0 : 1;
  options.before = given.Signed("before");
  options.newest_per_user = given.Count<uint64_t>("newest_per_user");
  options.session_gap = given.Signed("session_gap");
  options.times_per_second = given.Count<uint32_t>("times_per_second");
  given.End();
  const InUse log(self.opened());
  uint64_t pruned = 0;
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_log_prune(log.get(), &options, &pruned, &error); });
  Check(code, error);
  return pruned;
}

Dict Count(const Log& self) {
  const InUse log(self.opened());
  wisp_log_counts counts = WISP_INIT(wisp_log_counts);
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_log_count(log.get(), &counts, &error); });
  Check(code, error);
  Dict out;
  out["events"] = counts.events;
  out["users"] = counts.users;
  out["items"] = counts.items;
  out["oldest"] = counts.oldest;
  out["newest"] = counts.newest;
  out["unreadable"] = counts.unreadable;
  return out;
}

nb::str Users(const Log& self, nb::handle after, nb::handle limit) {
  const std::string text = UserKey("after", after);
  const auto most = static_cast<size_t>(Integer("limit", limit, 0, std::numeric_limits<int64_t>::max()));
  const InUse log(self.opened());
  return GiveText([&](char* out, size_t capacity, size_t* needed, wisp_error* error) {
    return wisp_log_users(log.get(), text.c_str(), most, out, capacity, needed, error);
  });
}

}  // namespace

void BindLog(nb::module_& module) {
  nb::class_<Log>(module, "Log", "What wisp.Log is made of.")
      .def("__init__", &Open, nb::arg("path").none())
      .def(
          "close", [](Log& self) { self.log.reset(); }, "Closes the file. Closing twice is allowed.")
      .def_prop_ro(
          "closed", [](const Log& self) { return self.log == nullptr; }, "Whether it was closed.")
      .def("append", &Append, nb::arg("user"), nb::arg("item_key"), nb::arg("time"),
           nb::sig("def append(self, user: str, item_key: str, time: int) -> None"),
           "Appends one event; it is on disk when the call returns. `time` in any unit that grows.")
      .def("append_all", &AppendAll, nb::arg("events"),
           nb::sig("def append_all(self, events: collections.abc.Iterable[tuple[str, str, int]]) -> None"),
           "Appends events (user, item_key, time), all of them or none, with one write to the disk.")
      .def(
          "history", &History, nb::arg("model"), nb::arg("user"), nb::arg("limit") = nb::none(),
          nb::sig("def history(self, model: Recommender, user: str, limit: int | None = None) -> "
                  "numpy.typing.NDArray[numpy.int32]"),
          "The newest items of the user that the model knows, oldest first: int32 of shape (count,), at most `limit`;\n"
          "None: as many as the model reads.")
      .def("events", &Events, nb::arg("user"), nb::sig("def events(self, user: str) -> list[tuple[str, str, int]]"),
           "All that the user did, as (user, item_key, time), the oldest first. Local only: not private.")
      .def("erase", &Erase, nb::arg("user"), nb::sig("def erase(self, user: str) -> int"),
           "Takes all events of the user away and overwrites them; returns how many. What models learned stays.")
      .def("_prune", &Prune, nb::arg("options"))
      .def("_count", &Count)
      .def("_users", &Users, nb::arg("after"), nb::arg("limit"));
}

}  // namespace wisp_python
