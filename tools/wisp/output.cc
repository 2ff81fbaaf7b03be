#include "tools/wisp/output.h"

#include <cmath>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/core/native_path.h"
#include "runtime/core/platform.h"
#include "runtime/core/text.h"
#include "runtime/privacy/json.h"
#include "runtime/train/run/records.h"
#include "tools/wisp/option_names.h"
#include "tools/wisp/system.h"

namespace wisp::tools {

Progress::Progress(std::string title) : title_(std::move(title)), terminal_(IsErrorTerminal()) {}

Progress::~Progress() {
  if (terminal_ && drawn_) std::fputc('\n', stderr);
}

void Progress::Update(uint64_t done, uint64_t total, const std::string& suffix) {
  // The clock starts at the first update: earlier work, such as calibrating the noise, is not repeated for each step.
  if (!first_done_) first_done_ = done, start_ = std::chrono::steady_clock::now();
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double steps = static_cast<double>(done - std::min(done, *first_done_));
  // There is no estimate before a step was timed.
  const std::string left =
      steps == 0 && done < total
          ? ""
          : Fixed(steps == 0 ? 0 : elapsed / steps * static_cast<double>(total - done), 0) + " s left";
  const std::string behind = suffix.empty() || left.empty() ? suffix + left : suffix + ", " + left;
  const uint64_t tenth = total == 0 ? 10 : done * 10 / total;
  if (terminal_) {
    constexpr uint64_t kWidth = 30;
    const uint64_t filled = total == 0 ? kWidth : done * kWidth / total;
    const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    std::fprintf(stderr, "\r%s [%s] %llu/%llu %s \x1b[K", title_.c_str(), bar.c_str(),
                 static_cast<unsigned long long>(done), static_cast<unsigned long long>(total), behind.c_str());
    std::fflush(stderr);
    drawn_ = true;
    return;
  }
  // The first line is shown at once: a run of hours that shows nothing before a tenth is done looks stuck.
  constexpr std::chrono::seconds kLongest{10};
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && tenth == last_tenth_ && now - shown_ < kLongest) return;
  drawn_ = true;
  last_tenth_ = tenth;
  shown_ = now;
  std::fprintf(stderr, "%s %llu/%llu %s\n", title_.c_str(), static_cast<unsigned long long>(done),
               static_cast<unsigned long long>(total), behind.c_str());
}

void Warn(const std::string& sentence) {
  std::fprintf(stderr, "wisp: %s\n", OneLine(InProgramWords(sentence)).c_str());
}

std::string JsonText(const Json& json, int indentation) {
  return privacy::EscapedJson(json.dump(indentation, ' ', false, Json::error_handler_t::replace));
}

void PrintText(const char* format, ...) {
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  std::string text(static_cast<size_t>(std::max(0, std::vsnprintf(nullptr, 0, format, values))), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(values);
  for (size_t begin = 0; begin < text.size();) {
    const size_t tab = std::min(text.find('\t', begin), text.size());
    std::fputs(Printable(text.substr(begin, tab - begin)).c_str(), stdout);
    if (tab < text.size()) std::fputc('\t', stdout);
    begin = tab + 1;
  }
}

void PrintJson(const Json& json, int indentation) { std::printf("%s\n", JsonText(json, indentation).c_str()); }

std::string SavesShown::Suffix(const std::optional<uint64_t>& saved, const std::string& failure) {
  if (!failure.empty() && failure != failure_) Warn(failure + "; the run continues and will try the next checkpoint");
  failure_ = failure;
  return saved ? ", saved " + std::to_string(*saved) + " (" + every_ + ")" : "";
}

Status CheckInterval(const std::string& checkpoint, const std::optional<uint64_t>& every) {
  if (!every || (*every >= 1 && !checkpoint.empty())) return OkStatus();
  return InvalidArgument(checkpoint.empty() ? "--checkpoint-every is given without --checkpoint"
                                            : "--checkpoint-every is 0, allowed are 1 step and more");
}

namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

const volatile std::sig_atomic_t& CatchInterrupts() {
  for (int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { interrupted = 1; });
  return interrupted;
}

double Down(double bound) { return std::floor(bound * 1e4) / 1e4; }

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(NativePath(path), error);
  return error ? IoError(path, ": the folder cannot be made: ", error.message()) : OkStatus();
}

std::string FileName(const std::string& path) { return path.substr(platform::FindName(path)); }

namespace {

// The figures of a private run that were counted or measured on its records. Seconds and bytes belong to them too: they
// reveal how many records took part.
constexpr const char* kExact[] = {"records",       "records_dropped", "gradient_norm", "clipped",          "seconds",
                                  "planned_bytes", "validation",      "test",          "evaluation_events"};
constexpr const char* kLocalEvaluationFields[] = {"verdict", "evidence", "threshold", "serves", "changed"};

}  // namespace

std::vector<std::string> NotPrivate(const nlohmann::ordered_json& figures, Evaluated evaluated) {
  std::vector<std::string> names;
  const auto add = [&](const char* name) {
    if (figures.contains(name)) names.emplace_back(name);
  };
  std::for_each(std::begin(kExact), std::end(kExact), add);
  if (evaluated == Evaluated::kLocally)
    std::for_each(std::begin(kLocalEvaluationFields), std::end(kLocalEvaluationFields), add);
  return names;
}

std::string NotPrivateInWords(const nlohmann::ordered_json& figures) {
  const auto listed = figures.find("not_private");
  const auto names = listed == figures.end() ? NotPrivate(figures) : listed->get<std::vector<std::string>>();
  std::string words = "local only, not private, for this device's owner: loss";
  for (const std::string& name : names) words += ", " + name;
  return words;
}

std::vector<std::string> ListFigureNames(const nlohmann::ordered_json& figures) {
  std::vector<std::string> names;
  for (const auto& [name, value] : figures.items()) names.push_back(name);
  return names;
}

void SayTextsLeftOut(uint64_t number, const std::string& first) {
  Warn(Counted(number, "text") + " left out, the first: " + first + " (local only)");
}

std::string LossInWords(const JobProgress& p) {
  if (p.batch == 0) return "an empty batch";
  if (p.mean_loss == 0) return "";
  std::string loss = "loss " + Fixed(p.mean_loss, 3);
  if (p.mean_norm == 0) return loss;
  return loss + ", gradient norm " + Fixed(p.mean_norm, p.mean_norm < 1 ? 3 : 1) + ", " + Fixed(100 * p.clipped, 0) +
         " % clipped";
}

void AddGradients(const SeenBySteps& seen, nlohmann::ordered_json& figures) {
  if (seen.num_gradients == 0) return;
  figures["gradient_norm"] = seen.mean_norm;
  figures["clipped"] = static_cast<double>(seen.num_clipped) / static_cast<double>(seen.num_gradients);
}

void WarnIfAllWarmup(const TrainingJob& job) {
  const TrainingOptions& o = job.spec.training;
  const bool is_private = IsPrivate(o);
  // The records of a private run are not counted: it is refused without a public number.
  const size_t counted = job.sequences != nullptr ? job.sequences->num_users() : job.records.size();
  const bool declared = is_private || (o.sampling == Sampling::kPoisson && o.num_records_public > 0);
  const double records = declared ? o.num_records_public : static_cast<double>(counted);
  const Result<uint64_t> of_epochs = EpochsToSteps(job.spec.epochs, records, o.expected_batch);
  const uint64_t steps = o.num_steps > 0 || !of_epochs.ok() ? o.num_steps : *of_epochs;
  if (o.method == Method::kDpFp || steps == 0 || o.optimizer.warmup_steps < steps) return;
  std::fprintf(stderr,
               "wisp: warning: the run has %s and a warm-up of %llu: the learning rate rises to its end, towards %s; "
               "take fewer warmup_steps, or more epochs%s\n",
               Counted(steps, "step").c_str(), static_cast<unsigned long long>(o.optimizer.warmup_steps),
               privacy::ShortText(o.optimizer.learning_rate).c_str(), is_private ? "" : " (local only)");
}

void WarnIfOneRecord(uint64_t num_records_public, privacy::PrivacyUnit unit) {
  if (num_records_public != 1) return;
  std::fprintf(stderr,
               "wisp: there is one record, one %s: whatever sets it apart from no data at all is hidden, so the model "
               "can learn almost nothing "
               "(docs/privacy.md says what to do on one person's device)\n",
               std::string(privacy::ToText(unit)).c_str());
}

void WarnIfOtherNumber(uint64_t texts, uint64_t num_records_public) {
  if (texts <= 2 * num_records_public && 2 * texts >= num_records_public) return;
  std::fprintf(stderr, "wisp: %s read, %llu %s declared (--num-records-public) (local only)\n",
               (Counted(texts, "text") + (texts == 1 ? " was" : " were")).c_str(),
               static_cast<unsigned long long>(num_records_public), num_records_public == 1 ? "is" : "are");
}

std::string ShellWord(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-' || c == '/';
  });
  return plain ? text : InShell(text);
}

std::string AdapterInWords(const std::string& use, const std::string& base, const std::string& adapter) {
  return adapter + " is an adapter, used beside its base: wisp " + use + " --model " + ShellWord(base) + " --adapter " +
         ShellWord(adapter) + "; wisp convert --adapter makes one model of both";
}

}  // namespace wisp::tools
