// Calls every function of wisp.hpp once, over real models, compares results with the C interface, and checks refusals.
// It is built against a library, or against the amalgamation. It prints its recommendations, scores to the bit.
//
//   cpp_app CAFE.wisp                                           the library that only recommends
//   cpp_app CAFE.wisp ENCODER CLASSIFIER DECODER                WITH_TEXT
//   cpp_app CAFE.wisp ENCODER CLASSIFIER DECODER LOG.db FOLDER  WITH_TRAINING: writes ledgers and models to the folder
#include <wisp.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

namespace api = wisp::api;

namespace {

void Hold(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "cpp_app: it does not hold that %s\n", what);
  std::exit(1);
}

// The call must throw an Error of this code, whose sentence has the word.
template <class Call>
void Refused(wisp_code code, const char* word, Call&& call) {
  try {
    call();
  } catch (const api::Error& e) {
    if (e.code == code && std::strstr(e.what(), word) != nullptr) return;
    std::fprintf(stderr, "cpp_app: code %d, '%s'; expected %d, '%s'\n", e.code, e.what(), code, word);
    std::exit(1);
  }
  std::fprintf(stderr, "cpp_app: nothing was thrown, where '%s' was expected\n", word);
  std::exit(1);
}

bool Same(const api::Ranking& a, const api::Ranking& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = a[i].item == b[i].item && a[i].score == b[i].score;
  return same;
}

void Recommend(const std::string& path) {
  api::Model model = api::Model::Open(path);
  const std::vector<int32_t> history = {12, 7, 31};
  const api::Ranking best = model.Recommend(history, 10);
  Hold(best.size() == 10, "ten items come");
  for (const wisp_recommendation& r : best) {
    const std::string_view name = model.Name(r.item);
    std::printf("%d %a %.*s\n", r.item, r.score, static_cast<int>(name.size()), name.data());
  }

  const std::string key(model.Key(12));
  Hold(model.Find(key) == 12 && !model.Find("no such key"), "keys are found");
  Hold(model.Info().num_items == model.NumItems() && model.Recommend(history, size_t{1} << 40).size() > 10,
       "more than there is may be asked for");
  api::Session session(model);
  for (int32_t item : history) session.Add(item);
  Hold(Same(session.Recommend(10), best), "a session recommends as its history does");
  Hold(model.Info().allow_seen == 1 && Same(session.Recommend(480, {.allow_seen = true}), session.Recommend(480)),
       "seen items may come back where the model says so");
  Hold(session.Recommend(480, {.allow_seen = false}).size() == 480 - history.size(), "seen items may be left out");

  const api::History histories[] = {history, api::History(history).first(2)}, empty[] = {history, {}};
  wisp_batch_options threads = api::Init();
  threads.num_threads = 2;
  for (const wisp_batch_options* how : {static_cast<wisp_batch_options*>(nullptr), &threads}) {
    const std::vector<api::Ranking> all = model.RecommendBatch(histories, 10, {}, how);
    Hold(all.size() == 2 && Same(all[0], best) && Same(all[1], model.Recommend(histories[1], 10)),
         "a batch recommends what each history does alone");
  }
  Hold(model.Recommend({}, 10).size() == 10, "a user without history gets what is popular");
  Refused(WISP_INVALID_ARGUMENT, "history 1 is empty", [&] { model.RecommendBatch(empty, 10); });
  Hold(model.RecommendBatch({}, 10).empty() && model.Recommend(history, 0).empty(), "nothing may be asked for");
  const int32_t few[] = {best[1].item, best[3].item, best[0].item}, not_this[] = {best[0].item};
  const api::Ranking chosen = model.Recommend(history, 10, {.excluded = not_this, .candidates = few});
  Hold(chosen.size() == 2 && chosen[0].item == best[1].item, "candidates without what is excluded");
  Hold(model.Recommend(history, 10, {.candidates = std::span<const int32_t>()}).empty(), "no candidates, no items");

  // The memory starts on 64 bytes.
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const size_t size = static_cast<size_t>(file.tellg());
  void* bytes = ::operator new (size, std::align_val_t{64});
  file.seekg(0).read(static_cast<char*>(bytes), static_cast<std::streamsize>(size));
  {
    api::Model in_memory = api::Model::OpenMemory("cafe", {static_cast<std::byte*>(bytes), size});
    Hold(Same(in_memory.Recommend(history, 10), best), "a model in memory recommends the same");
    Refused(WISP_INVALID_ARGUMENT, "64", [&] {
      api::Model::OpenMemory("cafe", {static_cast<std::byte*>(bytes) + 8, size - 8});
    });
  }
  ::operator delete (bytes, std::align_val_t{64});

  Refused(WISP_IO, "no-such-file.wisp", [] { api::Model::Open("no-such-file.wisp"); });
  Refused(WISP_INVALID_ARGUMENT, "NULL", [] { api::Model(wisp_model_open, static_cast<const char*>(nullptr)); });
  Refused(WISP_INVALID_ARGUMENT, "zero byte", [&] { api::Model::Open(path + std::string(1, '\0') + "x"); });
  wisp_open_options options = api::Init();
  options.size = 4;  // a size that no version had
  Refused(WISP_INVALID_ARGUMENT, "wisp_open_options", [&] { api::Model::Open(path, options); });
  Refused(WISP_INVALID_ARGUMENT, "item", [&] { model.Recommend(std::vector<int32_t>{-1}, 10); });
  api::Model moved = std::move(model);
  Hold(Same(moved.Recommend(history, 10), best), "a moved model recommends the same");
  Refused(WISP_INVALID_ARGUMENT, "moved away", [&] { model.Recommend(history, 10); });
  Refused(WISP_INVALID_ARGUMENT, "moved away", [&] { model.NumItems(); });
  model = std::move(moved);
  Hold(Same(model.Recommend(history, 10), best), "a model that came back recommends the same");
  static_assert(!std::is_copy_constructible_v<api::Model> && std::is_nothrow_move_constructible_v<api::Model>);
}

#if defined(WITH_TEXT) || defined(WITH_TRAINING)
void Texts(char** paths) {
  api::TextModel encoder = api::TextModel::Open(paths[0]);
  const std::vector<float> vector = encoder.Embed("word5 word7");
  Hold(vector.size() == encoder.Info().width && vector == encoder.Embed("word5 word7"), "a text has one vector");
  std::vector<float> direct(vector.size());
  wisp_error error;
  Hold(wisp_text_embed(encoder.get(), "word5 word7", direct.data(), direct.size(), &error) == WISP_OK &&
           direct == vector,
       "it is that of the C interface");
  Refused(WISP_INVALID_ARGUMENT, "has no classes", [&] { encoder.Classify("word5"); });
  Refused(WISP_INVALID_ARGUMENT, "zero byte", [&] { encoder.Embed(std::string("a\0b", 3)); });

  api::TextModel classifier = api::TextModel::Open(paths[1]);
  const std::vector<float> classes = classifier.Classify("word5 word31 word6");
  Hold(classes.size() == 2 && std::abs(classes[0] + classes[1] - 1) < 1e-5f && classifier.ClassName(1) == "good",
       "classes have probabilities");

  api::TextModel decoder = api::TextModel::Open(paths[2]);
  wisp_generate_options options = api::Init();
  options.max_new_tokens = 8, options.greedy = 1;
  std::string heard;
  const api::Generated made = decoder.Generate("Once", options, [&](std::string_view text) {
    heard += text;
    return true;
  });
  Hold(made.text == heard && made.num_tokens > 0 && made.num_tokens <= 8, "what is new is heard");
  Hold(decoder.Generate("Once", options).text == made.text, "a greedy text comes again");
  Hold(decoder.Generate("Once", options, [](std::string_view) { return false; }).ended == WISP_ENDED_CALLER,
       "the caller may end a text");
  try {
    decoder.Generate("Once", options, [](std::string_view) -> bool { throw 7; });
    Hold(false, "what a callback throws comes out");
  } catch (int thrown) {
    Hold(thrown == 7, "what a callback throws comes out");
  }
  Refused(WISP_INVALID_ARGUMENT, "", [&] { api::TextModel::Open(paths[-1]); });
}
#endif

#ifdef WITH_TRAINING
void Runs(const std::string& model, const std::string& log, const std::string& folder) {
  const std::string ledger = folder + "/deployment.ledger", served = folder + "/served.wisp";
  wisp_plan_options plan = api::Init();
  plan.model_path = model.c_str(), plan.ledger_path = ledger.c_str(), plan.dataset = "guests";
  plan.epsilon = 4, plan.delta = 1e-4, plan.runs = 3, plan.unit = WISP_UNIT_USER, plan.num_records_public = 300;
  plan.steps_per_run = 2;
  Hold(api::MakePlan(plan).runs == 3, "a deployment is planned");
  wisp_run_options planned_run = api::Init();
  planned_run.model_path = model.c_str(), planned_run.log_path = log.c_str(), planned_run.output_path = served.c_str();
  planned_run.ledger_path = ledger.c_str(), planned_run.num_threads = 1;
  uint64_t steps = 0;
  const wisp_run_result result = api::RunPlanned(planned_run, [&](const wisp_progress&) { return ++steps, true; });
  Hold(result.steps == 2 && steps >= 2 && result.runs_left == 2, "a run has its steps");
  Hold(api::Budget(ledger, 1e-4).runs_left == 2, "what is left is told");
}

void Train(const std::string& model_path, const std::string& log_path, const std::string& folder) {
  const std::string ledger = folder + "/run.ledger", tuned = folder + "/tuned.wisp", own = folder + "/own.db";
  api::Model model = api::Model::Open(model_path);
  api::Log log = api::Log::Open(own);
  const std::string key(model.Key(12));
  const wisp_event events[] = {{"guest", key.c_str(), 1}, {"guest", key.c_str(), 2}};
  log.Append(events);
  Hold(log.GetHistory(model, "guest", 100) == std::vector<int32_t>{12, 12}, "a log has its events");
  Hold(log.GetHistory(model, "guest", 1).size() == 1, "the newest events can be had alone");

  wisp_personalise_options options = api::Init();
  options.model_path = model_path.c_str(), options.log_path = log_path.c_str(), options.output_path = tuned.c_str();
  options.ledger_path = ledger.c_str(), options.epsilon = 3, options.delta = 1e-4, options.budget_epsilon = 8;
  options.num_records_public = 300, options.unit = WISP_UNIT_USER, options.epochs = 1, options.num_threads = 1;
  Refused(WISP_CANCELLED, "", [&] { api::Personalise(options, [](const wisp_progress&) { return false; }); });
  try {
    api::Personalise(options, [](const wisp_progress&) -> bool { throw std::runtime_error("of the app"); });
    Hold(false, "what a callback throws comes out");
  } catch (const std::runtime_error& e) {
    Hold(std::strcmp(e.what(), "of the app") == 0, "what a callback throws comes out");
  }
  const double before = api::Budget(ledger, 1e-4).epsilon_stated;
  uint64_t steps = 0;
  const wisp_personalise_result result = api::Personalise(options, [&](const wisp_progress&) { return ++steps, true; });
  const wisp_budget budget = api::Budget(ledger, 1e-4);
  Hold(result.num_steps == steps && steps > 1, "each step is told");
  Hold(before > 0 && budget.epsilon_stated > before && budget.epsilon_stated <= 8 && budget.epsilon_limit == 8,
       "runs are charged, those that stopped too");
  Hold(api::Statement(ledger, 1e-4).find("epsilon") != std::string::npos, "there is a statement");
  const std::string json = api::Statement(ledger, 1e-4, WISP_STATEMENT_JSON);
  Hold(json.front() == '{' && json.find('\0') == json.npos, "and as JSON");
  Hold(api::Model::Open(tuned).NumItems() == model.NumItems(), "the tuned model opens");
  Refused(WISP_IO, "no.ledger", [&] { api::Budget(folder + "/no.ledger", 1e-4); });
  options.epsilon = 8;
  Refused(WISP_PRIVACY_REFUSED, "", [&] { api::Personalise(options); });
  Refused(WISP_INVALID_ARGUMENT, "", [] { api::Personalise(api::Init()); });
  api::Log moved = std::move(log);
  Refused(WISP_INVALID_ARGUMENT, "moved away", [&] { log.Append(events); });
}
#endif

}  // namespace

int main(int argc, char** argv) {
#if defined(WITH_TRAINING)
  constexpr int kArguments = 7;
#elif defined(WITH_TEXT)
  constexpr int kArguments = 5;
#else
  constexpr int kArguments = 2;
#endif
  Hold(argc == kArguments, "the arguments are those of the first lines");
  try {
    Recommend(argv[1]);
#if defined(WITH_TEXT) || defined(WITH_TRAINING)
    Texts(argv + 2);
#endif
#ifdef WITH_TRAINING
    Runs(argv[1], argv[5], argv[6]);
    Train(argv[1], argv[5], argv[6]);
#endif
  } catch (const api::Error& e) {
    std::fprintf(stderr, "cpp_app: %s\n", e.what());
    return 1;
  }
}
