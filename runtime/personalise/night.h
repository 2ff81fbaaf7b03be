// One night of the plan: trains a little, evaluates when an evaluation is due, and changes what people are served only
// if a candidate was found better than the base. All its state is in the ledger and in the files beside the output, so
// it may be stopped at any moment, and the next night resumes. No charge is used twice.
//
//   WISP_ASSIGN_OR_RETURN(const NightResult night, RunNight({.base_path = "base.wisp", .output = "mine.wisp",
//       .ledger = {.path = "log.ledger"}, .read = [&](const data::ReadOptions& o) {
//         return data::ReadLog("log.db", o); }}));
//   if (night.changed) session = Open("mine.wisp");
//
// The ledger must already have the plan (WriteLifetime). Nothing depends on the clock: the amount of work follows from
// what the ledger was charged.
#ifndef WISP_RUNTIME_PERSONALISE_NIGHT_H_
#define WISP_RUNTIME_PERSONALISE_NIGHT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/threads.h"
#include "runtime/data/sequences.h"
#include "runtime/personalise/judge_rule.h"
#include "runtime/personalise/lifetime.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/job.h"

namespace wisp {

struct NightLedger {
  std::string path;
  std::shared_ptr<privacy::LedgerAnchor> anchor = {};
  bool begin_anchor = false;
};

struct NightOptions {
  std::string base_path;  // the model as shipped
  std::string output;     // the served model; night_files.h has the files beside it
  NightLedger ledger;
  // Other files that the night reads, with the caller's names for them: the night's own files must not replace any of
  // them.
  struct FileRead {
    const char* name;  // "log_path"
    std::string path;
  };
  std::vector<FileRead> reads = {};
  std::string dataset = {};  // name of the data; empty: the ledger's
  bool other_data = false;   // FineTuneStart
  std::string run;           // name of the night in the ledger
  std::string created_by = {};
  privacy::RecordSpec::Source source = {};  // table and columns that `read` uses
  // Reads the log with the given options: known items, units, and the flag of a private run.
  std::function<Result<data::ReadResult>(const data::ReadOptions&)> read;
  uint32_t num_threads = 0;  // TrainingOptions::num_threads; may differ from night to night
  Executor executor = {};
  kernels::Device device = kernels::BestOps();  // for training
  uint64_t max_bytes = 0;                       // kInvalidArgument if a run would hold more (MemoryOfRun); 0: no limit
  // If the plan has trained before but nothing is at `output`: kRefused returns kInvalidArgument, with nothing written
  // or charged, for callers whose user may have mistyped the path.
  enum class Anew { kBegins, kRefused } anew = Anew::kBegins;
  // Receives sentences about what is done. They reveal nothing beyond plan, ledger and models.
  enum class Says { kInfo, kWarning };
  std::function<void(Says, const std::string&)> say = {};
  // Called after each step; false stops the night, with what is paid for in the checkpoint.
  std::function<bool(const JobProgress&)> progress = {};
};

struct NightResult {
  LifetimeSettings settings;
  LifetimeLeft left;            // left after the night
  uint64_t steps = 0;           // trained in this night; 0: the plan has none left
  uint64_t steps_of_model = 0;  // steps of the candidate over all nights
  std::optional<JobResult> training;
  data::ReadReport log;  // local only
  bool judged = false;
  uint64_t events_that_judged = 0;  // set if this night evaluated; local only
  Verdict verdict;                  // after the newest evaluation; with local evaluation it is not private
  enum class Serves { kBase, kEarlierCandidate, kNewestCandidate } serves = Serves::kBase;
  bool changed = false;  // the output file was replaced
};

// Damaged files beside the output do not end a plan (night_heal.h); a damaged base or ledger is kInvalidData.
// kPrivacyRefused: no ledger, no plan in it, or a refusal of FineTune. kInvalidArgument: files that do not belong to
// this plan. kIo: the disk, or another night is running. kCancelled. After an error the output is a whole model, either
// the old or the new one; if there was no model before and the log could not be read, there is still no model.
Result<NightResult> RunNight(const NightOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_NIGHT_H_
