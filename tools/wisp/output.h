// What commands print: results on standard output as text or JSON, progress on standard error.
#ifndef WISP_TOOLS_WISP_OUTPUT_H_
#define WISP_TOOLS_WISP_OUTPUT_H_

#include <chrono>
#include <csignal>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/job.h"

namespace wisp::tools {

using Json = nlohmann::ordered_json;  // keeps the order in which fields were written

// A bar on a terminal; elsewhere a line at the first update, at each tenth, and where nothing was shown for ten
// seconds.
class Progress {
 public:
  explicit Progress(std::string title);
  ~Progress();
  void Update(uint64_t done, uint64_t total, const std::string& suffix);

 private:
  std::string title_;
  bool terminal_, drawn_ = false;
  uint64_t last_tenth_ = 0;
  std::optional<uint64_t> first_done_;  // of the first update, at start_
  std::chrono::steady_clock::time_point start_, shown_;
};

// Which step the newest checkpoint is of, behind the loss: ", saved 120 (every 10)"; nothing where none is written.
class SavesShown {
 public:
  // `every`: in words, where it is known. Says once on standard error why a checkpoint could not be written.
  explicit SavesShown(std::string every) : every_(std::move(every)) {}
  std::string Suffix(const std::optional<uint64_t>& saved, const std::string& failure);

 private:
  std::string every_, failure_;
};
// What --checkpoint-every is: 1 and above, and of use with --checkpoint alone.
Status CheckInterval(const std::string& checkpoint, const std::optional<uint64_t>& every);
// From now on the end of a run is asked for, by Ctrl-C or a signal to terminate, rather than done: until then it can be
// saved.
const volatile std::sig_atomic_t& CatchInterrupts();

// A sentence on standard error, as one line of which a terminal acts on nothing.
void Warn(const std::string& sentence);

// On standard output, as printf has it, with a '?' for each character that a terminal would act on: names of items,
// data sets and files come from anywhere. All text of the program passes here, and keeps its ends of lines and tabs.
[[gnu::format(printf, 1, 2)]] void PrintText(const char* format, ...);

// JSON as commands print and write it: what a terminal acts on stands as escapes, whatever keys, names and paths hold.
// With an indentation of kOneLine on one line. All JSON of the program passes here.
inline constexpr int kOneLine = -1;
std::string JsonText(const nlohmann::ordered_json& json, int indentation = kOneLine);
// On standard output, with an end of a line.
void PrintJson(const nlohmann::ordered_json& json, int indentation = 2);

std::string Fixed(double value, int digits);
// A lower bound as people read it, with four digits behind the point: never more than was found.
double Down(double bound);
// The last part of a path.
std::string FileName(const std::string& path);
// Makes the folder and those above it, if they are missing.
Status MakeFolder(const std::string& path);

// Of the figures that a private run prints: the names of those that were computed from the data without noise. No
// guarantee covers them; they are for the device's owner only.
// With judges that add no noise, so is what follows from their choice.
enum class Judged { kPrivately, kLocally };
std::vector<std::string> NotPrivate(const nlohmann::ordered_json& figures, Judged judged = Judged::kPrivately);
// As a sentence, for people: of figures with the key not_private what stands there.
std::string NotPrivateInWords(const nlohmann::ordered_json& figures);
// Every name: of what is computed from data or weights that nothing protects.
std::vector<std::string> AllOf(const nlohmann::ordered_json& figures);
// What stands below such figures, for people.
inline constexpr char kLocalOnly[] = "local only: computed from the data, not private, for this device's owner";

// Says on standard error that a run reads so many texts less, and why the first of them. Counted on the data.
void SayTextsLeftOut(uint64_t number, const std::string& first);

// Of a step, for its line of progress: "loss 1.234", "an empty batch", or nothing where no gradient is taken.
std::string LossInWords(const JobProgress& progress);
// Of a private run: "gradient_norm", the mean norm of its gradients before clipping, and "clipped", the share of them
// that was longer than the clipping norm. By these a clipping norm is chosen.
void AddGradients(const SeenBySteps& seen, nlohmann::ordered_json& figures);

// An argument as a shell reads it back.
std::string ShellWord(const std::string& text);

// How an adapter that a run wrote is used beside its base, for people. `use`: a command with what it needs besides.
std::string AdapterInWords(const std::string& use, const std::string& base, const std::string& adapter);

// Says on standard error, before anything is spent, that a run ends before its learning rate has risen.
void SayIfAllWarmup(const TrainingJob& job);

// Says on standard error what a run on one record is worth; nothing where there may be more.
void SayIfOneRecord(uint64_t num_records_public, privacy::PrivacyUnit unit);

// Says on standard error that a private run read more than twice, or less than half, of the texts that are declared.
// Counted on the data.
void SayIfOtherNumber(uint64_t texts, uint64_t num_records_public);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_OUTPUT_H_
