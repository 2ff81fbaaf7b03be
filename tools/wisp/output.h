// Output of the commands: results on standard output as text or JSON, progress on standard error.
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

// Shows a bar on a terminal. Elsewhere it prints a line at the first update, at each tenth, and after ten seconds
// without one.
class Progress {
 public:
  explicit Progress(std::string title);
  ~Progress();
  void Update(uint64_t done, uint64_t total, const std::string& suffix);

 private:
  std::string title_;
  bool terminal_, drawn_ = false;
  uint64_t last_tenth_ = 0;
  std::optional<uint64_t> first_done_;  // the progress at the first update, which was at start_
  std::chrono::steady_clock::time_point start_, shown_;
};

// Shows after the loss the step of the newest checkpoint: ", saved 120 (every 10)". Shows nothing if none is written.
class SavesShown {
 public:
  // `every` is the interval in words, if it is known. Warns once on standard error if a checkpoint could not be
  // written.
  explicit SavesShown(std::string every) : every_(std::move(every)) {}
  std::string Suffix(const std::optional<uint64_t>& saved, const std::string& failure);

 private:
  std::string every_, failure_;
};
// Checks --checkpoint-every: it is at least 1, and needs --checkpoint.
Status CheckInterval(const std::string& checkpoint, const std::optional<uint64_t>& every);
// From this call on, Ctrl-C and a termination signal only request the end of the run, so that the run can be saved
// first.
const volatile std::sig_atomic_t& CatchInterrupts();

// Prints a sentence on standard error as one line, without characters that a terminal would act on.
void Warn(const std::string& sentence);

// Prints to standard output like printf, with a '?' for each character that a terminal would act on: names of items,
// data sets and files come from anywhere. All text of the program passes here. Line ends and tabs are kept.
#if defined(_WIN32)  // where printf means Microsoft's to the compiler, and the C++ library calls GNU's
[[gnu::format(gnu_printf, 1, 2)]]
#else
[[gnu::format(printf, 1, 2)]]
#endif
void PrintText(const char* format, ...);

// Returns JSON as commands print and write it. Characters that a terminal would act on are escaped, because keys, names
// and paths come from anywhere. The indentation kOneLine gives one line. All JSON of the program passes here.
inline constexpr int kOneLine = -1;
std::string JsonText(const nlohmann::ordered_json& json, int indentation = kOneLine);
// Prints the JSON to standard output, with a line end.
void PrintJson(const nlohmann::ordered_json& json, int indentation = 2);

std::string Fixed(double value, int digits);
// Rounds a lower bound down to four decimals, so that people never read more than was found.
double Down(double bound);
// Returns the last part of a path.
std::string FileName(const std::string& path);
// Makes the folder and those above it, if they are missing.
Status MakeFolder(const std::string& path);

// Returns the names of those figures of a private run that were computed from the data without noise. No guarantee
// covers them; they are for the device's owner only. Local evaluation adds no noise, so with it the figures that follow
// from its choice are among these.
enum class Evaluated { kPrivately, kLocally };
std::vector<std::string> NotPrivate(const nlohmann::ordered_json& figures, Evaluated evaluated = Evaluated::kPrivately);
// Returns the sentence for people on figures that JSON lists under the key not_private.
std::string NotPrivateInWords(const nlohmann::ordered_json& figures);
// Returns every name, for figures computed from data or weights that nothing protects.
std::vector<std::string> ListFigureNames(const nlohmann::ordered_json& figures);
// The line below such figures, for people.
inline constexpr char kLocalOnly[] = "local only: computed from the data, not private, for this device's owner";

// Says on standard error how many texts a run left out, and why the first of them. The number is counted on the data.
void SayTextsLeftOut(uint64_t number, const std::string& first);

// Describes a step for its line of progress: "loss 1.234", "an empty batch", or nothing if no gradient is taken.
std::string LossInWords(const JobProgress& progress);
// Adds the figures by which a clipping norm is chosen, for a private run: "gradient_norm" is the mean norm of its
// gradients before clipping, "clipped" the share of them that was longer than the clipping norm.
void AddGradients(const SeenBySteps& seen, nlohmann::ordered_json& figures);

// Quotes an argument so that a shell reads it back.
std::string ShellWord(const std::string& text);

// Explains to people how to use an adapter that a run wrote with its base. `use` is a command with its other options.
std::string AdapterInWords(const std::string& use, const std::string& base, const std::string& adapter);

// Warns on standard error, before anything is spent, if a run ends before its learning rate has risen fully.
void WarnIfAllWarmup(const TrainingJob& job);

// Warns on standard error how little a run on one record is worth. Says nothing if there may be more records.
void WarnIfOneRecord(uint64_t num_records_public, privacy::PrivacyUnit unit);

// Says on standard error if a private run read more than twice, or less than half, of the declared number of texts. The
// number is counted on the data.
void WarnIfOtherNumber(uint64_t texts, uint64_t num_records_public);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_OUTPUT_H_
