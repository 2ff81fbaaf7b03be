// wisp for C++: the C interface (wisp.h) with handles that close themselves, spans, and errors as one exception. C++20.
//
//   wisp::api::Model model = wisp::api::Model::Open("cafe.wisp");
//   wisp::api::Session session(model);
//   session.Add(*model.Find("tea-mint"));
//   for (const wisp_recommendation& r : session.Recommend(10)) std::cout << model.Name(r.item) << "\n";
//
// Everything is inline and calls only the C headers: an unused function needs no symbol. Options and results are C's
// structs; Init makes them. A call that fails throws Error; an exception of a callback ends the call and leaves it.
#ifndef WISP_PORTS_CPP_WISP_HPP_
#define WISP_PORTS_CPP_WISP_HPP_

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wisp.h"
#include "wisp_embed.h"
#include "wisp_deployment.h"
#include "wisp_text.h"

namespace wisp::api {
static_assert(__cplusplus > 201703L, "wisp.hpp needs C++20 (-std=c++20); for C99 and C++11 there is wisp.h");

// A failed call: the library's sentence, and its code.
struct Error : std::runtime_error {
  Error(wisp_code of, const std::string& sentence) : std::runtime_error(sentence), code(of) {}  // with this code
  wisp_code code;  // the code that C would have returned
};

// Converts to any options struct, its size set and the rest default: `wisp_open_options options = wisp::api::Init();`
struct Init {
  template <class Struct>
  operator Struct() const {  // the struct that is asked for; NOLINT(google-explicit-constructor)
    return WISP_INIT(Struct);
  }
};

namespace internal {
// Calls a function of wisp.h, whose last argument is the wisp_error. Throws if it fails, or if a callback threw.
template <class Function, class... Arguments>
void CheckThrown(const std::exception_ptr& thrown, Function* function, Arguments... arguments) {
  wisp_error error{};
  const wisp_code code = function(arguments..., &error);
  if (thrown != nullptr) std::rethrow_exception(thrown);
  if (code != WISP_OK) throw Error(code, error.message);
}
template <class Function, class... Arguments>
void Check(Function* function, Arguments... arguments) {
  CheckThrown(nullptr, function, arguments...);
}
template <class Struct, class Function, class... Arguments>
Struct Read(Function* function, Arguments... arguments) {  // returns the struct that the function fills
  Struct filled = Init();
  Check(function, arguments..., &filled);
  return filled;
}
inline const char* Terminated(const std::string& text) {  // refuses a text with a zero inside, at which C would end it
  if (text.find('\0') != text.npos) throw Error(WISP_INVALID_ARGUMENT, "a text has a zero byte; none is allowed");
  return text.c_str();
}

// Owns a handle. Using an object that was moved from throws; a null handle never reaches C.
template <class T, void (*close)(T*)>
class Handle {
 public:
  template <class Function, class... Arguments>
  explicit Handle(Function* open, Arguments... arguments) {
    T* handle = nullptr;
    Check(open, arguments..., &handle);
    handle_.reset(handle);
  }
  T* get() const {
    if (handle_ == nullptr) throw Error(WISP_INVALID_ARGUMENT, "the handle was moved away: there is nothing to use");
    return handle_.get();
  }

 private:
  std::unique_ptr<T, void (*)(T*)> handle_{nullptr, close};
};

// A callback of the app. No exception may pass through the C library: it is stored, and rethrown after the call.
template <class... Arguments>
struct Callback {
  bool GoesOn(Arguments... arguments) noexcept {
    try {
      return !function || function(arguments...);
    } catch (...) {
      return thrown = std::current_exception(), false;
    }
  }
  std::function<bool(Arguments...)> function;
  std::exception_ptr thrown = nullptr;
};
}  // namespace internal

// ---- Recommending ---------------------------------------------------------------------------------------------------

using History = std::span<const int32_t>;          // items, oldest first
using Ranking = std::vector<wisp_recommendation>;  // best first

struct RecommendOptions {                                   // wisp_recommend_options in C++
  std::span<const int32_t> excluded = {};                   // never recommended
  std::optional<std::span<const int32_t>> candidates = {};  // if given, only these, even if there are none
  std::optional<bool> allow_seen = {};  // may items of the history come again? Empty: as the model says
};

class Model : public internal::Handle<wisp_model, wisp_model_close> {  // a recommender; closes itself
 public:
  using Handle::Handle;
  static Model Open(const std::string& path, const wisp_open_options& options = Init()) {  // as wisp_model_open_with
    return Model(wisp_model_open_with, internal::Terminated(path), &options);
  }
  // `bytes` must start on a multiple of 64 and outlive the model; `name` is used in messages.
  static Model OpenMemory(const std::string& name, std::span<const std::byte> bytes,
                          const wisp_open_options& options = Init()) {
    return Model(wisp_model_open_memory, internal::Terminated(name), bytes.data(), bytes.size(), &options);
  }
  size_t NumItems() const { return wisp_model_num_items(get()); }  // retired items included
  wisp_model_info Info() const { return internal::Read<wisp_model_info>(wisp_model_info_read, get()); }  // properties
  std::optional<int32_t> Find(const std::string& key) const {  // the item's index; empty: no such key
    const int32_t item = wisp_model_find_item(get(), internal::Terminated(key));
    return item < 0 ? std::nullopt : std::optional(item);
  }
  // Empty if the model has no keys. Valid until the model is closed.
  std::string_view Key(int32_t item) const { return wisp_model_item_key(get(), item); }
  std::string_view Name(int32_t item) const { return wisp_model_item_name(get(), item); }  // empty and valid like Key
  // The best `count` items, or fewer if there are not as many.
  Ranking Recommend(History history, size_t count, const RecommendOptions& how = {}) {
    const wisp_recommend_options options = MakeOptions(how);
    count = std::min(count, NumItems());
    Ranking best(count + 1);  // one more, so that the pointer is not null for count 0
    internal::Check(wisp_recommend, get(), history.data(), history.size(), &options, best.data(), &count);
    best.resize(count);
    return best;
  }
  // Recommend for histories of at least one item each, equal to the bit. Without `threads` no thread is created.
  std::vector<Ranking> RecommendBatch(std::span<const History> histories, size_t count,
                                      const RecommendOptions& how = {}, const wisp_batch_options* threads = nullptr) {
    const wisp_recommend_options options = MakeOptions(how);
    const size_t n = histories.size();
    count = std::min(count, NumItems());
    std::vector<const int32_t*> items(n + 1);
    std::vector<size_t> lengths(n + 1), found(n + 1);
    for (size_t i = 0; i < n; ++i) items[i] = Place(histories[i]), lengths[i] = histories[i].size();
    Ranking best(n * count + 1);
    internal::Check(wisp_recommend_batch, get(), items.data(), lengths.data(), n, &options, threads, count, best.data(),
                    found.data());
    std::vector<Ranking> result(n);
    for (size_t i = 0; i < n; ++i) result[i].assign(best.data() + i * count, best.data() + i * count + found[i]);
    return result;
  }

 private:
  static const int32_t* Place(History items) {  // not null, even for an empty history
    static constexpr int32_t kNone = 0;
    return items.empty() ? &kNone : items.data();
  }
  static wisp_recommend_options MakeOptions(const RecommendOptions& how) {
    wisp_recommend_options options = Init();
    options.excluded = how.excluded.data();
    options.num_excluded = how.excluded.size();
    if (how.candidates) {
      options.candidates = Place(*how.candidates);
      options.num_candidates = how.candidates->size();
    }
    options.allow_seen = !how.allow_seen ? 0 : *how.allow_seen ? 1 : 2;
    return options;
  }
};

// A history that grows; a new event computes only one position. The model must outlive the session and must not move.
struct Session {
  explicit Session(Model& of) : model(&of) {}          // starts empty
  void Add(int32_t item) { history.push_back(item); }  // the newest event, which Recommend checks
  // The best items after those that were added.
  Ranking Recommend(size_t count, const RecommendOptions& how = {}) { return model->Recommend(history, count, how); }
  Model* model;                  // the model that recommends
  std::vector<int32_t> history;  // oldest first
};

// ---- Texts (in libwisp and libwisp-text) ----------------------------------------------------------------------------

struct Generated {                             // wisp_generated, with its own copy of the text
  std::string text;                            // without the prompt
  uint32_t num_tokens = 0, prompt_tokens = 0;  // tokens generated; tokens of the prompt
  wisp_ended ended = WISP_ENDED_LENGTH;        // why it ended
};

class TextModel : public internal::Handle<wisp_text_model, wisp_text_close> {  // an encoder, a classifier or a decoder
 public:
  using Handle::Handle;
  static TextModel Open(const std::string& path, const wisp_open_options& options = Init()) {  // as wisp_text_open
    return TextModel(wisp_text_open, internal::Terminated(path), &options);
  }
  wisp_text_info Info() const { return internal::Read<wisp_text_info>(wisp_text_info_read, get()); }  // properties
  std::string_view ClassName(uint32_t index) const { return wisp_text_class_name(get(), index); }     // may be empty
  // The vector of a text.
  std::vector<float> Embed(const std::string& text) { return Numbers(wisp_text_embed, text, Info().width); }
  // The probability of each class.
  std::vector<float> Classify(const std::string& text) { return Numbers(wisp_text_classify, text, Info().num_classes); }
  // `on_text` receives what is new, and returns false to end.
  Generated Generate(const std::string& prompt, const wisp_generate_options& options = Init(),
                     std::function<bool(std::string_view)> on_text = {}) {
    internal::Callback<std::string_view> callback{std::move(on_text)};
    wisp_generated generated = Init();
    const wisp_on_text pass_on = [](void* data, const char* text, size_t bytes) -> int32_t {
      return static_cast<internal::Callback<std::string_view>*>(data)->GoesOn({text, bytes});
    };
    internal::CheckThrown(callback.thrown, wisp_text_generate, get(), internal::Terminated(prompt), &options, pass_on,
                          &callback, &generated);
    return {{generated.text, generated.text_bytes}, generated.num_tokens, generated.prompt_tokens, generated.ended};
  }

 private:
  std::vector<float> Numbers(decltype(wisp_text_embed)* of, const std::string& text, size_t count) {
    std::vector<float> numbers(count), none(1);  // never empty, so that the pointer is not null
    internal::Check(of, get(), internal::Terminated(text), (count > 0 ? numbers : none).data(), count);
    return numbers;
  }
};

// ---- The device's log, private training, and what it cost (in libwisp alone) ----------------------------------------

class Log : public internal::Handle<wisp_log, wisp_log_close> {  // the events of the device
 public:
  using Handle::Handle;
  static Log Open(const std::string& path) { return Log(wisp_log_open, internal::Terminated(path)); }  // or makes it
  void Append(std::span<const wisp_event> events) {  // all of them or none
    internal::Check(wisp_log_append_all, get(), events.data(), events.size());
  }
  // The user's newest items that the model knows, oldest first.
  std::vector<int32_t> GetHistory(const Model& model, const std::string& user, size_t most) const {
    std::vector<int32_t> items((most = std::min<size_t>(most, 1 << 24)) + 1);  // never empty: no null pointer
    internal::Check(wisp_log_history, get(), model.get(), internal::Terminated(user), items.data(), &most);
    items.resize(most);
    return items;
  }
};

using Progress = std::function<bool(const wisp_progress&)>;  // false: stop

namespace internal {
// Runs a function whose options have `progress` and `user_data`.
template <class Result, class Options>
Result WithProgress(wisp_code (*run)(const Options*, Result*, wisp_error*), Options options, Progress progress) {
  Callback<const wisp_progress&> callback{std::move(progress)};
  Result result = Init();
  if (callback.function) {
    options.progress = [](const wisp_progress* at, void* data) {
      return static_cast<decltype(callback)*>(data)->GoesOn(*at) ? 0 : 1;
    };
    options.user_data = &callback;
  }
  CheckThrown(callback.thrown, run, &options, &result);
  return result;
}
}  // namespace internal

// `progress`, if given, replaces the options' own.
inline wisp_personalise_result Personalise(const wisp_personalise_options& options, Progress progress = {}) {
  return internal::WithProgress(wisp_personalise, options, std::move(progress));
}
inline wisp_plan MakePlan(const wisp_plan_options& options) {  // makes the plan, or finds the existing one
  return internal::Read<wisp_plan>(wisp_plan_make, &options);
}
// One run of the plan.
inline wisp_run_result RunPlanned(const wisp_run_options& options, Progress progress = {}) {
  return internal::WithProgress(wisp_run_planned, options, std::move(progress));
}
// Returns what is left of the ledger's limit and plan; `delta` is used if it has no limit.
inline wisp_budget Budget(const std::string& ledger, double delta, const wisp_anchor* anchor = nullptr) {
  return internal::Read<wisp_budget>(wisp_budget_read, internal::Terminated(ledger), anchor, delta);
}
// The privacy statement over everything in the ledger, at `delta`, in words or as JSON.
inline std::string Statement(const std::string& ledger, double delta, wisp_statement_format format = {},
                             const wisp_anchor* anchor = nullptr) {
  std::string text;
  for (size_t needed = 1; text.size() != needed;) {
    text.resize(needed);  // repeats if the ledger has changed since the size was asked
    internal::Check(wisp_privacy_statement_anchored, internal::Terminated(ledger), anchor, delta, format, text.data(),
                    text.size(), &needed);
  }
  text.pop_back();  // the final zero
  return text;
}

}  // namespace wisp::api

#endif  // WISP_PORTS_CPP_WISP_HPP_
