// The C interface as a state machine: bytes choose calls in any order, with handles that are open or NULL, structs of
// any size, and arguments out of range. It meets the header's requirements for callers: handles live as long as their
// users, and lists are as long as stated.
// Needs PRIVATE_SAMPLING.
#include <algorithm>
#include <cmath>

#include "tests/fuzz/c_call.h"

namespace {

using wisp::fuzz::Input;
using wisp::fuzz::kItems;
using wisp::fuzz::Require;
using wisp::fuzz::Resize;
using wisp::fuzz::Sized;

class Machine : wisp::fuzz::Caller {
 public:
  explicit Machine(const wisp::test::TemporaryFolder& folder) : folder_(folder) {
    wisp::fuzz::RemoveAll(folder_, {"log.db", "a.ledger", "b.ledger", "out.wisp"});
  }
  ~Machine() {
    wisp_private_recommender_close(recommender_);
    for (wisp_model* model : models_) wisp_model_close(model);
    wisp_log_close(log_);
  }

  void Call(Input& input) {
    switch (input.Byte() % 13) {
      case 0:
        return OpenModel(input);
      case 1:
        return CloseModel(input);
      case 2:
        return Plan(input);
      case 3:
        return Ask(input);
      case 4:
        return Recommend(input);
      case 5:
        return Batch(input);
      case 6:
        return OpenRecommender(input);
      case 7:
        return Sample(input);
      case 8:
        return OpenLog(input);
      case 9:
        return Append(input);
      case 10:
        return History(input);
      case 11:
        return Personalise(input);
      case 12:
        return State(input);
    }
  }

 private:
  wisp_model*& Model(Input& input) { return models_[input.Byte() % models_.size()]; }
  const char* Path(Input& input) {
    static const std::string paths[] = {folder_ / "base.wisp",    folder_ / "base.wisp", folder_ / "tuned.wisp",
                                        folder_ / "out.wisp",     folder_ / "log.db",    folder_ / "a.ledger",
                                        folder_ / "nothing.wisp", folder_.path(),        ""};
    const size_t choice = input.Byte() % (std::size(paths) + 1);
    return choice == std::size(paths) ? nullptr : paths[choice].c_str();
  }
  void OpenModel(Input& input) {
    Sized<wisp_open_options> how;
    const uint8_t choice = input.Byte();
    const int32_t backend = choice < 250 ? (choice % 3) : input.Number<int8_t>();
    std::memcpy(&how.options.backend, &backend, sizeof(backend));
    const int32_t verify = choice == 249 ? input.Number<int8_t>() : choice % 4;
    std::memcpy(&how.options.verify, &verify, sizeof(verify));
    how.options.verified = choice & 4 ? nullptr : &verified_;
    Resize(how, input);
    wisp_model*& model = Model(input);
    CloseAround(model);
    const char* path = Path(input);
    if (choice & 1)
      Held(wisp_model_open(path, &model, &error_));
    else
      Held(wisp_model_open_with(path, choice & 2 ? &how.options : nullptr, &model, &error_));
  }
  // A recommender's models stay open as long as the recommender.
  void CloseAround(wisp_model*& model) {
    if (model != nullptr && (model == sampled_from_ || model == base_)) {
      wisp_private_recommender_close(recommender_);
      recommender_ = nullptr;
    }
    wisp_model_close(model);
    model = nullptr;
  }
  void CloseModel(Input& input) { CloseAround(Model(input)); }

  void Plan(Input& input) {
    Sized<wisp_model_memory> memory;
    Resize(memory, input);
    Held(wisp_model_plan_memory(Path(input), input.Byte() == 255 ? nullptr : &memory.options, &error_));
    Require(memory.behind[127] == 0 || memory.behind[127] == 1, "nothing behind a struct is written");
    Sized<wisp_personalise_options> options;
    options.options.model_path = Path(input);
    options.options.num_records_public = input.Number<uint32_t>();
    options.options.num_threads = input.Number<uint16_t>();
    options.options.expected_batch = input.Number<uint32_t>();
    Resize(options, input);
    Sized<wisp_personalise_memory> training;
    Resize(training, input);
    Held(wisp_personalise_plan_memory(&options.options, &training.options, &error_));
  }

  void Ask(Input& input) {
    wisp_model* model = Model(input);
    if (model == nullptr) return;
    const std::string key(input.Piece(input.Byte() % 12));
    const int32_t found = wisp_model_find_item(model, key.c_str());
    Require(found >= -1 && found < static_cast<int32_t>(wisp_model_num_items(model)), "an item, or -1");
    const auto item = input.Number<int32_t>();
    for (int32_t i : {item, found, 0})
      Require(wisp_model_item_key(model, i) != nullptr && wisp_model_item_name(model, i) != nullptr, "a text, or \"\"");
    (void)wisp_model_find_item(model, nullptr);
  }

  // Returns the options of both kinds of call; the lists live in `lists`.
  Sized<wisp_recommend_options> Options(Input& input, std::array<std::vector<int32_t>, 2>& lists) {
    Sized<wisp_recommend_options> o;
    const uint8_t choice = input.Byte();
    if (choice & 1) lists[0] = Items(input);
    if (choice & 2) lists[1] = Items(input);
    if (choice & 1) o.options.excluded = lists[0].data();
    if (choice & 2) o.options.candidates = lists[1].data();
    o.options.num_excluded = lists[0].size();
    o.options.num_candidates = lists[1].size();
    if ((choice & 0xf0) == 0xf0) o.options.num_excluded = 3, o.options.excluded = nullptr;
    o.options.allow_seen = choice >> 2 & 3;  // 3 is refused
    Resize(o, input);
    return o;
  }

  void Recommend(Input& input) {
    wisp_model* model = Model(input);
    std::array<std::vector<int32_t>, 2> lists;
    const Sized<wisp_recommend_options> o = Options(input, lists);
    const std::vector<int32_t> history = Items(input);
    std::vector<wisp_recommendation> out(input.Byte() % 16);
    size_t count = out.size();
    if (Held(wisp_recommend(model, history.data(), history.size(), input.Byte() & 1 ? &o.options : nullptr, out.data(),
                            &count, &error_)) != WISP_OK)
      return;
    Require(count <= out.size(), "no more than was asked for");
    for (size_t i = 0; i < count; ++i) {
      Require(out[i].item >= 0 && out[i].item < static_cast<int32_t>(wisp_model_num_items(model)),
              "a recommended item is one of the model's");
      Require(std::isfinite(out[i].score) && (i == 0 || out[i].score <= out[i - 1].score), "best first");
    }
  }

  static void RunBackwards(void*, size_t num_tasks, wisp_task task, void* task_data) {
    for (size_t i = num_tasks; i-- > 0;) task(task_data, i);
  }

  void Batch(Input& input) {
    wisp_model* model = Model(input);
    std::array<std::vector<int32_t>, 2> lists;
    const Sized<wisp_recommend_options> o = Options(input, lists);
    std::vector<std::vector<int32_t>> histories(input.Byte() % 5);
    std::vector<const int32_t*> pointers(histories.size());
    std::vector<size_t> lengths(histories.size());
    for (size_t i = 0; i < histories.size(); ++i) {
      histories[i] = Items(input);
      pointers[i] = histories[i].data();
      lengths[i] = histories[i].size();
    }
    Sized<wisp_batch_options> how;
    const uint8_t choice = input.Byte();
    how.options.num_threads = choice < 250 ? choice % 4 : input.Number<uint32_t>();
    how.options.run_tasks = choice & 16 ? RunBackwards : nullptr;
    Resize(how, input);
    const size_t count = input.Byte() % 8;
    std::vector<wisp_recommendation> out(histories.size() * count);
    std::vector<size_t> found(histories.size());
    Held(wisp_recommend_batch(model, pointers.data(), lengths.data(), histories.size(),
                              choice & 32 ? &o.options : nullptr, choice & 64 ? &how.options : nullptr, count,
                              out.data(), found.data(), &error_));
  }

  void OpenRecommender(Input& input) {
    wisp_private_recommender_close(recommender_);
    recommender_ = nullptr;
    Sized<wisp_private_options> o;
    const uint8_t choice = input.Byte();
    const int32_t decoding = choice < 240 ? choice % 3 : input.Number<int8_t>();
    std::memcpy(&o.options.decoding, &decoding, sizeof(decoding));
    static const std::string ledger = folder_ / "b.ledger";
    o.options.ledger_path = choice & 64 ? nullptr : ledger.c_str();
    sampled_from_ = Model(input);
    base_ = choice & 32 ? Model(input) : nullptr;
    o.options.base_model = base_;
    const char* const names[] = {"synthetic", input.Byte() & 1 ? "events" : nullptr};
    o.options.public_datasets = names;
    o.options.num_public_datasets = input.Byte() % 3;
    // Targets make the accountant work for seconds, so they are rare.
    const uint8_t cost = input.Byte();
    if (cost & 1) o.options.lambda = input.Number<double>();
    if (cost & 2) o.options.clip = input.Number<double>();
    if (cost & 4) o.options.epsilon_per_sample = input.Number<double>();
    if (cost == 255) o.options.epsilon = 1, o.options.planned_samples = 5;
    o.options.delta = cost & 8 ? 1e-6 : input.Number<double>();
    o.options.num_records_public = cost & 16 ? 100 : input.Number<uint32_t>();
    o.options.temperature = cost & 32 ? input.Number<double>() : 0;
    o.options.top_k = input.Byte() % 8;
    o.options.top_p = cost & 64 ? input.Number<double>() : 0;
    o.options.samples_per_charge = input.Byte();
    Resize(o, input);
    Held(wisp_private_recommender_open(sampled_from_, &o.options, &recommender_, &error_));
  }

  void Sample(Input& input) {
    if (recommender_ != nullptr) (void)wisp_private_recommender_is_free(recommender_);
    std::array<std::vector<int32_t>, 2> lists;
    const Sized<wisp_recommend_options> o = Options(input, lists);
    const std::vector<int32_t> history = Items(input);
    std::vector<int32_t> items(input.Byte() % 4);
    size_t count = items.size();
    if (Held(wisp_private_recommend(recommender_, history.data(), history.size(),
                                    input.Byte() & 1 ? &o.options : nullptr, items.data(), &count, &error_)) != WISP_OK)
      return;
    Require(count <= items.size(), "no more than was asked for");
    for (size_t i = 0; i < count; ++i)
      Require(items[i] >= 0 && items[i] < static_cast<int32_t>(kItems), "a sampled item is one of the model's");
  }

  void OpenLog(Input& input) {
    wisp_log_close(log_);
    log_ = nullptr;
    static const std::string paths[] = {folder_ / "log.db", folder_ / "log.db", folder_ / "log.db",
                                        folder_ / "base.wisp", folder_.path()};
    const uint8_t choice = input.Byte();
    Held(wisp_log_open(choice == 255 ? nullptr : paths[choice % std::size(paths)].c_str(), &log_, &error_));
  }

  void Append(Input& input) {
    static const std::vector<std::string> keys = {"10", "9", "a", "b", "unknown"};
    const uint8_t choice = input.Byte();
    const std::string user =
        choice < 200 ? "user " + std::to_string(choice % 3) : std::string(input.Piece(choice % 16));
    const std::string item =
        choice & 1 ? keys[input.Byte() % keys.size()] : std::string(input.Piece(input.Byte() % 16));
    Held(wisp_log_append(log_, user.c_str(), item.c_str(), input.Number<int64_t>(), &error_));
  }

  void History(Input& input) {
    std::vector<int32_t> items(input.Byte() % 8);
    size_t count = items.size();
    if (Held(wisp_log_history(log_, Model(input), input.Byte() & 1 ? "user 1" : "user 0", items.data(), &count,
                              &error_)) == WISP_OK) {
      Require(count <= items.size(), "no more than was asked for");
    }
  }

  // Only one run of an input may take a step, because the accountant takes most of the time.
  void Personalise(Input& input) {
    static const std::string log = folder_ / "log.db", output = folder_ / "out.wisp", ledger = folder_ / "a.ledger";
    Sized<wisp_personalise_options> o;
    const uint8_t choice = input.Byte();
    o.options.model_path = choice & 1 ? Path(input) : models_path_.c_str();
    o.options.log_path = choice & 2 ? Path(input) : log.c_str();
    o.options.output_path = output.c_str();
    o.options.ledger_path = choice & 4 ? Path(input) : ledger.c_str();
    const bool sound = (choice & 0xbc) == 0x94 && !personalised_;
    if (sound) o.options.ledger_path = ledger.c_str();
    // One step of all records, for which calibration is fastest.
    o.options.epsilon = sound ? 1 : input.Number<double>();
    o.options.delta = sound ? 1e-5 : input.Number<double>();
    o.options.unit = WISP_UNIT_USER;
    o.options.num_records_public = sound ? 10 : input.Number<uint32_t>();
    o.options.expected_batch = 10;
    o.options.epochs = 1;
    o.options.num_threads = 1 + input.Byte() % 2;
    o.options.dataset = choice & 64 ? "events" : nullptr;
    if (!sound) {
      // The run never completes: its target is far off, or it has no model.
      o.options.model_path = nullptr;
      if (choice & 128)
        o.options.epsilon = std::numeric_limits<double>::quiet_NaN(), o.options.model_path = models_path_.c_str();
    }
    personalised_ = personalised_ || sound;
    stop_at_ = input.Byte();
    o.options.progress = [](const wisp_progress* progress, void* machine) -> int {
      return progress->step >= static_cast<Machine*>(machine)->stop_at_ / 32u + 1;
    };
    o.options.user_data = this;
    Resize(o, input);
    Sized<wisp_personalise_result> result;
    Resize(result, input);
    Held(wisp_personalise(&o.options, &result.options, &error_));
  }

  void State(Input& input) {
    static const std::string ledgers[] = {folder_ / "a.ledger", folder_ / "b.ledger", folder_ / "base.wisp",
                                          folder_ / "none.ledger"};
    const uint8_t choice = input.Byte();
    std::vector<char> text(input.Byte());
    size_t needed = 0;
    const int32_t number = choice & 0x40 ? input.Number<int8_t>() : choice & 1;
    wisp_statement_format format;
    std::memcpy(&format, &number, sizeof(format));
    const double delta = choice & 0x80 ? input.Number<double>() : 1e-5;
    if (Held(wisp_privacy_statement(ledgers[(choice >> 1) % std::size(ledgers)].c_str(), delta, format,
                                    text.empty() ? nullptr : text.data(), text.size(), &needed, &error_)) == WISP_OK) {
      Require(needed > 1 && (text.empty() || text[std::min(needed, text.size()) - 1] == '\0'),
              "a statement ends with a zero");
    }
  }

  const wisp::test::TemporaryFolder& folder_;
  const std::string models_path_ = folder_ / "base.wisp";
  std::array<wisp_model*, 2> models_{};
  wisp_model *sampled_from_ = nullptr, *base_ = nullptr;
  wisp_private_recommender* recommender_ = nullptr;
  wisp_log* log_ = nullptr;
  bool personalised_ = false;
  wisp_verified verified_ = {};
  uint8_t stop_at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const wisp::test::TemporaryFolder folder;
  static const bool written = (wisp::fuzz::WriteModels(folder), true);
  (void)written;
  return wisp::fuzz::CallAll<Machine>(folder, data, size);
}
