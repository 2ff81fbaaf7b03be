// One night of a device's life: trains a little, judges when it is time, and changes what people are served only where
// a candidate was found better than the base. All that it needs to know stands in the ledger and in the files beside
// the output, so it may be stopped at any moment: the next night goes on from there. What was charged is used once.
//
//   WISP_ASSIGN_OR_RETURN(const NightResult night, RunNight({.base_path = "base.wisp", .output = "mine.wisp",
//       .ledger = {.path = "log.ledger"}, .read = [&](const data::ReadOptions& o) {
//         return data::ReadLog("log.db", o); }}));
//   if (night.changed) session = Open("mine.wisp");
//
// The ledger has the plan already (WriteLifetime). Nothing depends on the clock: how much is done follows from what the
// ledger was charged.
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
  std::string output;     // what people are served; the files beside it are in night_files.h
  NightLedger ledger;
  // What it reads besides, as the caller calls it: none of these is replaced by a file of the night.
  struct FileRead {
    const char* name;  // "log_path"
    std::string path;
  };
  std::vector<FileRead> reads = {};
  std::string dataset = {};  // name of the data; empty: the ledger's
  bool other_data = false;   // FineTuneStart
  std::string run;           // names the night in the ledger
  std::string created_by = {};
  privacy::RecordSpec::Source source = {};  // where `read` reads
  // Reads the log with what is given here: known items, units, and that the run is private.
  std::function<Result<data::ReadResult>(const data::ReadOptions&)> read;
  uint32_t num_threads = 0;  // as TrainingOptions; may differ from night to night
  Executor executor = {};
  kernels::Device device = kernels::BestOps();  // of the training
  uint64_t max_bytes = 0;  // kInvalidArgument where a run would hold more (MemoryOfRun); 0: no ceiling
  // Where the plan has trained before and there is nothing at `output`: kRefused is kInvalidArgument, with nothing
  // written or charged, for those who may have mistyped it.
  enum class Anew { kBegins, kRefused } anew = Anew::kBegins;
  // Sentences about what is done, of what may be known to all who know plan, ledger and models.
  enum class Says { kInfo, kWarning };
  std::function<void(Says, const std::string&)> say = {};
  // After each step; false: stop, with what is paid for in the checkpoint.
  std::function<bool(const JobProgress&)> progress = {};
};

struct NightResult {
  LifetimeSettings settings;
  LifetimeLeft left;            // after the night
  uint64_t steps = 0;           // trained in this night; 0: the plan has none left
  uint64_t steps_of_model = 0;  // that the candidate has in all
  std::optional<JobResult> training;
  data::ReadReport log;  // local only
  bool judged = false;
  uint64_t events_that_judged = 0;  // of a night that judged; local only
  Verdict verdict;                  // after the newest judging; of a plan that judges locally it is not private
  enum class Serves { kBase, kEarlierCandidate, kNewestCandidate } serves = Serves::kBase;
  bool changed = false;  // the output is another file than before the night
};

// Damaged files beside the output do not end a life (night_heal.h); a damaged base or ledger is kInvalidData.
// kPrivacyRefused: no ledger, no plan in it, or what FineTune refuses. kInvalidArgument: files that are not of this
// life. kIo: the disk; another night is running. kCancelled. After an error the output is a whole model, that of before
// or the one that it was to become; or none, where there was none and the log could not be read.
Result<NightResult> RunNight(const NightOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_NIGHT_H_
