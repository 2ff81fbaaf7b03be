// wisp for C++: the C interface (wisp.h) with handles that close themselves, spans, and errors as one exception. C++20.
//
//   wisp::api::Model model = wisp::api::Model::Open("cafe.wisp");
//   wisp::api::Session session(model);
//   session.Add(*model.Find("tea-mint"));
//   for (const wisp_recommendation& r : session.Recommend(10)) std::cout << model.Name(r.item) << "\n";
//
// All is inline and calls the C headers alone: what is not used asks for no symbol. Options and results are their
// structs; Init makes them. What fails throws Error. What a callback throws ends the call and comes out of it.
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
#include "wisp_life.h"
#include "wisp_text.h"

namespace wisp::api {
static_assert(__cplusplus > 201703L, "wisp.hpp needs C++20 (-std=c++20); for C99 and C++11 there is wisp.h");

// The library's sentence, and its code.
struct Error : std::runtime_error {
  Error(wisp_code of, const std::string& sentence) : std::runtime_error(sentence), code(of) {}  // a call's
  wisp_code code;  // what C would have returned
};

// Becomes any struct, its size set and all else zero, the default: `wisp_open_options options = wisp::api::Init();`
struct Init {
  template <class Struct>
  operator Struct() const {  // the struct that is asked for; NOLINT(google-explicit-constructor)
    return WISP_INIT(Struct);
  }
};

namespace internal {
// Calls a function of wisp.h, whose last argument is the wisp_error; throws where it fails, or where a callback did.
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
Struct Read(Function* function, Arguments... arguments) {  // what a function of wisp.h fills
  Struct filled = Init();
  Check(function, arguments..., &filled);
  return filled;
}
inline const char* Terminated(const std::string& text) {  // a text for C, which would end at a zero within
  if (text.find('\0') != text.npos) throw Error(WISP_INVALID_ARGUMENT, "a text has a zero byte; none is allowed");
  return text.c_str();
}

// Owns a handle; one that was moved away is refused, never passed on.
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

// A callback of the app. No exception may pass the C library: it is kept, and thrown behind the call.
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

struct RecommendOptions {                                   // as wisp_recommend_options
  std::span<const int32_t> excluded = {};                   // never recommended
  std::optional<std::span<const int32_t>> candidates = {};  // if given, only these; an empty span is nothing at all
  std::optional<bool> allow_seen = {};  // may items of the history come back? If not given, as the model says
};

class Model : public internal::Handle<wisp_model, wisp_model_close> {  // a recommender; closes itself
 public:
  using Handle::Handle;
  static Model Open(const std::string& path, const wisp_open_options& options = Init()) {  // as wisp_model_open_with
    return Model(wisp_model_open_with, internal::Terminated(path), &options);
  }
  // `bytes` start on 64 bytes and outlive the model; `name` is for sentences.
  static Model OpenMemory(const std::string& name, std::span<const std::byte> bytes,
                          const wisp_open_options& options = Init()) {
    return Model(wisp_model_open_memory, internal::Terminated(name), bytes.data(), bytes.size(), &options);
  }
  size_t NumItems() const { return wisp_model_num_items(get()); }  // retired ones included
  wisp_model_info Info() const { return internal::Read<wisp_model_info>(wisp_model_info_read, get()); }  // what it is
  std::optional<int32_t> Find(const std::string& key) const {  // the item's index; empty: no such key
    const int32_t item = wisp_model_find_item(get(), internal::Terminated(key));
    return item < 0 ? std::nullopt : std::optional(item);
  }
  // Empty where the model has none. Valid until the model is closed.
  std::string_view Key(int32_t item) const { return wisp_model_item_key(get(), item); }
  std::string_view Name(int32_t item) const { return wisp_model_item_name(get(), item); }  // as Key
  // The best `count` items; fewer where there are not so many.
  Ranking Recommend(History history, size_t count, const RecommendOptions& how = {}) {
    const wisp_recommend_options options = OptionsOf(how);
    count = std::min(count, NumItems());
    Ranking best(count + 1);  // room for none too
    internal::Check(wisp_recommend, get(), history.data(), history.size(), &options, best.data(), &count);
    best.resize(count);
    return best;
  }
  // The same for each history of one item at least, to the bit. Without `threads` no thread is made.
  std::vector<Ranking> RecommendBatch(std::span<const History> histories, size_t count,
                                      const RecommendOptions& how = {}, const wisp_batch_options* threads = nullptr) {
    const wisp_recommend_options options = OptionsOf(how);
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
  static const int32_t* Place(History items) {  // of none too
    static constexpr int32_t kNone = 0;
    return items.empty() ? &kNone : items.data();
  }
  static wisp_recommend_options OptionsOf(const RecommendOptions& how) {
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

// A history that grows; one more event costs one position. The model must outlive it and stay where it is.
struct Session {
  explicit Session(Model& of) : model(&of) {}          // begins with no event
  void Add(int32_t item) { history.push_back(item); }  // the newest event, which Recommend checks
  // The best after what was added.
  Ranking Recommend(size_t count, const RecommendOptions& how = {}) { return model->Recommend(history, count, how); }
  Model* model;                  // which answers
  std::vector<int32_t> history;  // oldest first
};

// ---- Texts (in libwisp and libwisp-text) ----------------------------------------------------------------------------

struct Generated {                             // as wisp_generated, and stays valid
  std::string text;                            // without the prompt
  uint32_t num_tokens = 0, prompt_tokens = 0;  // that were generated; that were read
  wisp_ended ended = WISP_ENDED_LENGTH;        // why it ended
};

class TextModel : public internal::Handle<wisp_text_model, wisp_text_close> {  // an encoder, a classifier or a decoder
 public:
  using Handle::Handle;
  static TextModel Open(const std::string& path, const wisp_open_options& options = Init()) {  // as wisp_text_open
    return TextModel(wisp_text_open, internal::Terminated(path), &options);
  }
  wisp_text_info Info() const { return internal::Read<wisp_text_info>(wisp_text_info_read, get()); }  // what it is
  std::string_view ClassName(uint32_t index) const { return wisp_text_class_name(get(), index); }     // empty: none
  // The vector of a text.
  std::vector<float> Embed(const std::string& text) { return Numbers(wisp_text_embed, text, Info().width); }
  // The probability of each class.
  std::vector<float> Classify(const std::string& text) { return Numbers(wisp_text_classify, text, Info().num_classes); }
  // `on_text` is given what is new, and returns false to end.
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
    std::vector<float> numbers(count), none(1);  // there is room for no number too
    internal::Check(of, get(), internal::Terminated(text), (count > 0 ? numbers : none).data(), count);
    return numbers;
  }
};

// ---- The device's log, private training, and what it cost (in libwisp alone) ----------------------------------------

class Log : public internal::Handle<wisp_log, wisp_log_close> {  // what happens on the device
 public:
  using Handle::Handle;
  static Log Open(const std::string& path) { return Log(wisp_log_open, internal::Terminated(path)); }  // or makes it
  void Append(std::span<const wisp_event> events) {  // all of them or none
    internal::Check(wisp_log_append_all, get(), events.data(), events.size());
  }
  // The newest items of a user that the model knows, oldest first.
  std::vector<int32_t> HistoryOf(const Model& model, const std::string& user, size_t most) const {
    std::vector<int32_t> items((most = std::min<size_t>(most, 1 << 24)) + 1);  // an empty one has no address
    internal::Check(wisp_log_history, get(), model.get(), internal::Terminated(user), items.data(), &most);
    items.resize(most);
    return items;
  }
};

using Progress = std::function<bool(const wisp_progress&)>;  // false: stop

namespace internal {
// Runs what has `progress` and `user_data` in its options.
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

// `progress`, if given, takes the place of the options' own.
inline wisp_personalise_result Personalise(const wisp_personalise_options& options, Progress progress = {}) {
  return internal::WithProgress(wisp_personalise, options, std::move(progress));
}
inline wisp_plan PlanLife(const wisp_plan_options& options) {  // makes the plan, or finds it
  return internal::Read<wisp_plan>(wisp_plan_life, &options);
}
// A device's life, one call a night.
inline wisp_night_result PersonaliseNight(const wisp_night_options& options, Progress progress = {}) {
  return internal::WithProgress(wisp_personalise_night, options, std::move(progress));
}
// What is left of the ledger's limit and plan, at `delta` where it has no limit.
inline wisp_budget Budget(const std::string& ledger, double delta, const wisp_anchor* anchor = nullptr) {
  return internal::Read<wisp_budget>(wisp_budget_read, internal::Terminated(ledger), anchor, delta);
}
// What everything in the ledger may cost, at `delta`, in words or as JSON.
inline std::string Statement(const std::string& ledger, double delta, wisp_statement_format format = {},
                             const wisp_anchor* anchor = nullptr) {
  std::string text;
  for (size_t needed = 1; text.size() != needed;) {
    text.resize(needed);  // once more where the ledger has changed since it was asked
    internal::Check(wisp_privacy_statement_anchored, internal::Terminated(ledger), anchor, delta, format, text.data(),
                    text.size(), &needed);
  }
  text.pop_back();  // the final zero
  return text;
}

}  // namespace wisp::api

#endif  // WISP_PORTS_CPP_WISP_HPP_
