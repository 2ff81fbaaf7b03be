// The C interface for an app that embeds wisp (wisp_embed.h) and for a deployment (wisp_deployment.h), beside
// c_interface_fuzz.cc: models in memory and within files, allocators, plans, training sessions, anchors, catalogues,
// maintenance of a log.
#include "ports/c/wisp_deployment.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/fuzz/c_call.h"

namespace {

using wisp::fuzz::Choose;
using wisp::fuzz::Filled;
using wisp::fuzz::Input;
using wisp::fuzz::Require;
using wisp::fuzz::Resize;
using wisp::fuzz::Sized;

// An allocator that allows a number of calls; without a limit if the struct is too short to give one.
void* Allocate(void* left, size_t bytes, size_t alignment) {
  auto* const allocations = static_cast<int*>(left);
  if (allocations != nullptr && (*allocations)-- <= 0) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void Release(void*, void* memory, size_t) { std::free(memory); }

class Machine : wisp::fuzz::Caller {
 public:
  explicit Machine(const wisp::test::TemporaryFolder& folder) : folder_(folder) {
    wisp::fuzz::RemoveAll(folder_, {"log.db", "a.ledger", "out.wisp", "new.wisp", "out.wisp.candidate",
                                    "out.wisp.checkpoint", "out.wisp.start", "out.wisp.local", "out.wisp.lock"});
    Held(wisp_log_open((folder_ / "log.db").c_str(), &log_, &error_));
  }
  ~Machine() {
    wisp_model_close(model_);
    std::free(bytes_);
    wisp_log_close(log_);
  }

  void Call(Input& input) {
    switch (input.Byte() % 13) {
      case 0:
        return OpenMemory(input);
      case 1:
        return OpenDescriptor(input);
      case 2:
        return Tell(input);
      case 3:
        return AppendAll(input);
      case 4:
        return Prune(input);
      case 5:
        return Count(input);
      case 6:
        return Plan(input);
      case 7:
        return PlannedRun(input);
      case 8:
        return Budget(input);
      case 9:
        return Rebase(input);
      case 10:
        return Catalogue(input);
      case 11:
        return Evaluate(input);
      case 12:
        return Describe(input);
    }
  }

 private:
  const char* Path(Input& input) {
    static const std::string paths[] = {folder_ / "base.wisp", folder_ / "base.wisp",    folder_ / "tuned.wisp",
                                        folder_ / "new.wisp",  folder_ / "out.wisp",     folder_ / "log.db",
                                        folder_ / "a.ledger",  folder_ / "nothing.wisp", ""};
    const size_t choice = input.Byte() % (std::size(paths) + 1);
    return choice == std::size(paths) ? nullptr : paths[choice].c_str();
  }
  // Returns mostly the usual path.
  const char* Path(const std::string& usual, Input& input) { return input.Byte() < 220 ? usual.c_str() : Path(input); }

  // How a model is opened: with its own allocator, which fails at some point, a limit on memory, a missing device.
  struct How {
    Sized<wisp_open_options> options;
    Sized<wisp_allocator> allocator;
    Sized<wisp_device> device;
  };
  void Choices(How& how, Input& input) {
    wisp_open_options& o = how.options.options;
    const uint8_t choice = input.Byte();
    if (choice & 1) {
      how.allocator.options.allocate = choice & 2 ? Allocate : nullptr;
      how.allocator.options.release = choice & 4 ? Release : nullptr;
      allocations_ = input.Byte() % 32;
      how.allocator.options.data = &allocations_;
      Resize(how.allocator, input);
      o.allocator = &how.allocator.options;
    }
    if (choice & 8) {
      how.device.options.name = choice & 16 ? "cuda" : "abacus";
      how.device.options.arithmetic = choice & 32 ? "tf32" : nullptr;
      Resize(how.device, input);
      o.device = &how.device.options;
    }
    Choose(o.backend, 2, input);
    Choose(o.verify, 3, input);
    o.verified = choice & 64 ? &verified_ : nullptr;
    if (choice & 128) o.max_bytes = input.Number<uint32_t>();
    o.num_threads = input.Byte() % 3;
    o.float16_cache = input.Byte() % 4;
    Resize(how.options, input);
  }
  void Close() {
    wisp_model_close(model_);
    model_ = nullptr;
    std::free(bytes_);
    bytes_ = nullptr;
  }

  void OpenMemory(Input& input) {
    Close();
    std::ifstream file(folder_ / (input.Byte() % 2 == 0 ? "base.wisp" : "tuned.wisp"), std::ios::binary);
    std::string model(std::istreambuf_iterator<char>(file), {});
    if (const uint8_t damage = input.Byte(); damage > 128 && !model.empty())
      model[input.Number<uint32_t>() % model.size()] ^= static_cast<char>(damage);
    if (const uint8_t cut = input.Byte(); cut > 200) model.resize(model.size() * cut / 256);
    constexpr size_t kAlignment = 64;
    bytes_ =
        static_cast<char*>(std::aligned_alloc(kAlignment, (model.size() + 2 * kAlignment) / kAlignment * kAlignment));
    const size_t shift = input.Byte() > 240 ? input.Byte() % kAlignment : 0;
    std::memcpy(bytes_ + shift, model.data(), model.size());
    How how;
    Choices(how, input);
    const uint8_t given = input.Byte();
    Held(wisp_model_open_memory(given == 255 ? nullptr : "model", given == 254 ? nullptr : bytes_ + shift, model.size(),
                                given & 1 ? nullptr : &how.options.options, &model_, &error_));
  }
  void OpenDescriptor(Input& input) {
    Close();
    const char* path = Path(input);
    const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    How how;
    Choices(how, input);
    const uint64_t offset = input.Byte() < 200 ? 0 : input.Number<uint64_t>();
    const uint64_t length = input.Byte() < 200 ? 0 : input.Number<uint64_t>();
    Held(wisp_model_open_descriptor("model", file, offset, length, &how.options.options, &model_, &error_));
    if (file >= 0) close(file);
  }
  void Tell(Input& input) {
    (void)wisp_model_on_device(model_);
    Filled<wisp_model_info> info(input);
    Held(wisp_model_info_read(model_, info.get(), &error_));
    Filled<wisp_provenance> provenance(input);
    Held(wisp_model_provenance(model_, input.Byte() < 200 ? 0 : input.Number<uint32_t>(), provenance.get(), &error_));
    Filled<wisp_model_memory> memory(input);
    How how;
    Choices(how, input);
    Held(wisp_model_plan_memory_with(Path(input), &how.options.options, memory.get(), &error_));
    const std::vector<int32_t> history = Items(input);
    wisp_recommendation top[3];
    size_t count = 3;
    Held(wisp_recommend(model_, history.data(), history.size(), nullptr, top, &count, &error_));
  }

  void AppendAll(Input& input) {
    static const char* const users[] = {"user 0", "user 1", "user 2", "", "user\n3", nullptr};
    static const char* const keys[] = {"10", "9", "a", "b", "c", "unknown", nullptr};
    std::vector<wisp_event> events(input.Byte() % 16);
    for (wisp_event& event : events) {
      const uint8_t choice = input.Byte();
      event.user = users[choice < 220 ? choice % 3 : choice % std::size(users)];
      event.item_key = keys[choice < 220 ? choice % 5 : choice % std::size(keys)];
      event.time = choice % 7 == 0 ? input.Number<int64_t>() : 1'700'000'000 + choice * 997;
    }
    const uint8_t given = input.Byte();
    Held(wisp_log_append_all(given == 255 ? nullptr : log_, given == 254 ? nullptr : events.data(), events.size(),
                             &error_));
  }
  void Prune(Input& input) {
    uint64_t number = 0;
    const uint8_t choice = input.Byte();
    if (choice < 64) {
      Held(wisp_log_erase(choice == 0 ? nullptr : log_,
                          choice == 1  ? nullptr
                          : choice % 2 ? "user 1"
                                       : "",
                          &number, &error_));
      return;
    }
    Sized<wisp_prune_options> o;
    o.options.has_before = choice % 4;
    Choose(o.options.unit, 4, input);
    o.options.before = choice & 16 ? input.Number<int64_t>() : 1'700'100'000;
    o.options.newest_per_user = choice & 32 ? input.Number<uint64_t>() : input.Byte() % 4;
    o.options.session_gap = choice & 128 ? input.Number<int64_t>() : 1800;
    o.options.times_per_second = input.Byte() % 2 == 0 ? 1 : input.Number<uint32_t>();
    Resize(o, input);
    Held(
        wisp_log_prune(log_, input.Byte() == 255 ? nullptr : &o.options, choice % 8 == 7 ? nullptr : &number, &error_));
  }
  void Count(Input& input) {
    Filled<wisp_log_counts> counts(input);
    Held(wisp_log_count(input.Byte() == 255 ? nullptr : log_, counts.get(), &error_));
    std::vector<char> text(input.Byte());
    size_t needed = 0;
    const std::string after(input.Piece(input.Byte() % 8));
    const size_t limit = input.Byte() < 250 ? input.Byte() % 5 : std::numeric_limits<size_t>::max();
    if (Held(wisp_log_users(log_, after.c_str(), limit, text.empty() ? nullptr : text.data(), text.size(), &needed,
                            &error_)) == WISP_OK)
      Require(text.empty() || text[std::min(needed, text.size()) - 1] == '\0', "a list of users ends with a zero");
  }

  // An app's anchor: the input chooses its value, and when it fails.
  struct Anchor {
    Sized<wisp_anchor> options;
    std::vector<uint8_t> kept;
    uint8_t fails = 0;
    static int Read(void* data, uint8_t* bytes, size_t capacity, size_t* length) {
      Anchor& a = *static_cast<Anchor*>(data);
      if (a.fails == 1) return 1;
      *length = a.fails == 2 ? std::numeric_limits<size_t>::max() : a.kept.size();
      if (a.kept.size() <= capacity) std::copy(a.kept.begin(), a.kept.end(), bytes);
      return 0;
    }
    static int Write(void* data, const uint8_t* bytes, size_t length) {
      Anchor& a = *static_cast<Anchor*>(data);
      a.kept.assign(bytes, bytes + length);
      return a.fails == 3;
    }
  };
  const wisp_anchor* OpenAnchor(Input& input) {
    const uint8_t choice = input.Byte();
    if (choice < 100) return nullptr;
    anchor_.options = {};
    anchor_.options.options.read = choice == 255 ? nullptr : Anchor::Read;
    anchor_.options.options.write = choice == 254 ? nullptr : Anchor::Write;
    anchor_.options.options.user_data = &anchor_;
    anchor_.options.options.begin = choice % 4;
    anchor_.fails = input.Byte() % 8;
    if (anchor_.fails == 4) {
      const std::string_view piece = input.Piece(input.Byte() % 80);
      anchor_.kept.assign(piece.begin(), piece.end());
    }
    Resize(anchor_.options, input);
    return &anchor_.options.options;
  }

  // Only one plan of an input is sound, because the accountant takes most of the time.
  void Plan(Input& input) {
    Sized<wisp_plan_options> o;
    const uint8_t choice = input.Byte();
    const bool sound = (choice & 0x0f) == 0 && !planned_;
    planned_ = planned_ || sound;
    o.options.model_path = Path(base_, input);
    o.options.ledger_path = Path(ledger_, input);
    o.options.dataset = choice == 255 ? nullptr : "events";
    o.options.epsilon = sound ? 1 : input.Number<double>();
    o.options.delta = sound ? 1e-5 : input.Number<double>();
    o.options.num_records_public = sound ? 10 : input.Number<uint32_t>();
    o.options.runs = sound ? 2 : input.Number<uint16_t>();
    o.options.steps_per_run = sound ? 1 : input.Number<uint8_t>();
    Choose(o.options.unit, sound ? 1 : 4, input);
    Choose(o.options.evaluation, 2, input);
    if (sound)
      o.options.evaluation = WISP_EVALUATION_NONE;  // all records train at each step, for which calibration is fastest
    o.options.evaluations = input.Byte() % 3;
    o.options.session_gap = choice & 16 ? 0 : input.Number<int64_t>();
    o.options.times_per_second = choice & 32 ? 0 : input.Number<uint32_t>();
    o.options.expected_batch = sound ? 10 : choice & 64 ? 0 : input.Number<uint16_t>();
    o.options.learning_rate = choice & 128 ? 0 : input.Number<double>();
    o.options.num_threads = 1;
    o.options.anchor = OpenAnchor(input);
    // Only once does it complete: other targets are not numbers.
    if (!sound) o.options.epsilon = choice & 1 ? std::numeric_limits<double>::quiet_NaN() : -o.options.epsilon;
    if (!sound && o.options.epsilon > 0) o.options.epsilon = 0;
    Resize(o, input);
    Filled<wisp_plan> plan(input);
    if (input.Byte() % 2 == 0) {
      Held(wisp_plan_make(&o.options, plan.get(), &error_));
    } else {
      double factor = 0;
      Held(wisp_plan_change(&o.options, plan.get(), choice & 4 ? &factor : nullptr, &error_));
    }
  }
  void PlannedRun(Input& input) {
    Sized<wisp_run_options> o;
    const uint8_t choice = input.Byte();
    o.options.model_path = Path(base_, input);
    o.options.log_path = Path(folder_log_, input);
    o.options.output_path = Path(output_, input);
    o.options.ledger_path = Path(ledger_, input);
    o.options.dataset = choice & 1 ? "events" : nullptr;
    o.options.num_threads = choice & 2 ? 1 : input.Number<uint16_t>() % 2000;
    o.options.other_data = choice & 4;
    stop_at_ = input.Byte() % 4;
    o.options.progress = [](const wisp_progress* at, void* data) -> int {
      return at->step > static_cast<Machine*>(data)->stop_at_;
    };
    o.options.user_data = this;
    o.options.anchor = OpenAnchor(input);
    Sized<wisp_logger> logger;
    if (choice & 8) {
      logger.options.write = [](void*, wisp_log_level, const char* sentence) { wisp::fuzz::RequireSentence(sentence); };
      Resize(logger, input);
      o.options.logger = &logger.options;
    }
    if (choice & 16) o.options.max_bytes = input.Number<uint32_t>();
    Resize(o, input);
    Filled<wisp_run_result> result(input);
    Held(wisp_run_planned(input.Byte() == 255 ? nullptr : &o.options, result.get(), &error_));
  }
  void Budget(Input& input) {
    const double delta = input.Byte() < 128 ? 1e-5 : input.Number<double>();
    Filled<wisp_budget> budget(input);
    const char* path = Path(ledger_, input);
    const wisp_anchor* anchor = OpenAnchor(input);
    Held(wisp_budget_read(path, anchor, delta, budget.get(), &error_));
    std::vector<char> text(input.Byte());
    size_t needed = 0;
    wisp_statement_format format{};
    Choose(format, 1, input);
    Held(wisp_privacy_statement_anchored(path, anchor, delta, format, text.empty() ? nullptr : text.data(), text.size(),
                                         &needed, &error_));
  }
  void Rebase(Input& input) {
    const uint8_t choice = input.Byte();
    const char* const from = Path(input);
    const char* const to = Path(input);
    const char* const output = Path(output_, input);
    if (choice % 2 == 0) {
      Filled<wisp_rebase_result> result(input);
      Sized<wisp_rebase_options> o;
      o.options.from_path = from;
      o.options.to_path = to;
      o.options.output_path = output;
      o.options.ledger_path = Path(ledger_, input);
      o.options.start_over = choice / 2 % 2;
      Resize(o, input);
      Held(wisp_rebase(&o.options, result.get(), &error_));
    } else {
      Held(wisp_rebase_adapter(from, Path(input), to, output, &error_));
    }
  }
  void Catalogue(Input& input) {
    static const char* const keys[] = {"e", "f", "10", "a", "", nullptr};
    const uint8_t choice = input.Byte();
    const char* path = Path(base_, input);
    const char* out = Path(folder_new_, input);
    std::vector<std::string> names(input.Byte() % 4);
    if (choice & 1) {
      std::vector<wisp_new_item> items(names.size());
      for (size_t i = 0; i < items.size(); ++i) {
        const uint8_t item = input.Byte();
        names[i] = input.Piece(item % 12);
        items[i] = {item < 128 ? keys[item % std::size(keys)] : names[i].c_str(), item & 1 ? names[i].c_str() : nullptr,
                    item & 2 ? keys[item % std::size(keys)] : nullptr};
      }
      Held(wisp_catalogue_add(path, choice == 255 ? nullptr : items.data(), items.size(), out, &error_));
      return;
    }
    std::vector<const char*> retired(names.size());
    for (const char*& key : retired) key = keys[input.Byte() % std::size(keys)];
    Held(wisp_catalogue_retire(path, choice == 254 ? nullptr : retired.data(), retired.size(), choice % 8, out,
                               &error_));
  }
  void Evaluate(Input& input) {
    const char* const model = Path(base_, input);
    const char* const log = Path(folder_log_, input);
    Filled<wisp_quality> quality(input);
    Held(wisp_evaluate(model, log, input.Byte() % 3, quality.get(), &error_));
  }
  void Describe(Input& input) {
    Require(wisp_version() != nullptr, "a version");
    Sized<wisp_device> device;
    static const char* const names[] = {"cpu", "cuda", "", "abacus", nullptr};
    device.options.name = names[input.Byte() % std::size(names)];
    device.options.arithmetic = input.Byte() % 2 == 0 ? nullptr : "float32";
    Resize(device, input);
    std::vector<char> text(input.Byte());
    size_t needed = 0;
    Held(wisp_device_describe(input.Byte() == 255 ? nullptr : &device.options, text.empty() ? nullptr : text.data(),
                              text.size(), &needed, &error_));
  }

  const wisp::test::TemporaryFolder& folder_;
  const std::string base_ = folder_ / "base.wisp", ledger_ = folder_ / "a.ledger", output_ = folder_ / "out.wisp",
                    folder_log_ = folder_ / "log.db", folder_new_ = folder_ / "new.wisp";
  wisp_model* model_ = nullptr;
  char* bytes_ = nullptr;
  wisp_log* log_ = nullptr;
  wisp_verified verified_ = {};
  Anchor anchor_;
  int allocations_ = 0;
  bool planned_ = false;
  uint64_t stop_at_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const wisp::test::TemporaryFolder folder;
  wisp::fuzz::WriteModels(folder);  // for each input, because calls may replace them
  return wisp::fuzz::CallAll<Machine>(folder, data, size);
}
