// One run of the plan: trains a little, evaluates when an evaluation is due, and changes what people are served only
// if a candidate was found better than the base. All its state is in the ledger and in the files beside the output, so
// it may be stopped at any moment, and the next run resumes. No charge is used twice.
//
//   WISP_ASSIGN_OR_RETURN(const PlannedRunResult run, RunPlanned({.base_path = "base.wisp", .output = "mine.wisp",
//       .ledger = {.path = "log.ledger"}, .read = [&](const data::ReadOptions& o) {
//         return data::ReadLog("log.db", o); }}));
//   if (run.changed) session = Open("mine.wisp");
//
// The ledger must already have the plan (WriteDeployment). The amount of work does not depend on the clock: it follows
// from what the ledger was charged. Only a run that comes too early is refused (CheckDue).
#ifndef WISP_RUNTIME_PERSONALISE_PLANNED_RUN_H_
#define WISP_RUNTIME_PERSONALISE_PLANNED_RUN_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/threads.h"
#include "runtime/data/sequences.h"
#include "runtime/personalise/evaluation_rule.h"
#include "runtime/personalise/deployment.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/job.h"

namespace wisp {

struct PlanLedger {
  std::string path;
  std::shared_ptr<privacy::LedgerAnchor> anchor = {};
  bool begin_anchor = false;
};

struct PlannedRunOptions {
  std::string base_path;  // the model as shipped
  std::string output;     // the served model; plan_files.h has the files beside it
  PlanLedger ledger;
  // Other files that the run reads, with the caller's names for them: the run's own files must not replace any of
  // them.
  struct FileRead {
    const char* name;  // "log_path"
    std::string path;
  };
  std::vector<FileRead> reads = {};
  std::string dataset = {};  // name of the data; empty: the ledger's
  bool other_data = false;   // FineTuneStart
  std::string run;           // name of the run in the ledger
  std::string created_by = {};
  privacy::RecordSpec::Source source = {};  // table and columns that `read` uses
  // Reads the log with the given options: known items, units, and the flag of a private run.
  std::function<Result<data::ReadResult>(const data::ReadOptions&)> read;
  uint32_t num_threads = 0;  // TrainingOptions::num_threads; may differ from run to run
  Executor executor = {};
  kernels::Device device = kernels::BestOps();  // for training
  uint64_t max_bytes = 0;  // kInvalidArgument if a run would hold more (CountRunMemory); 0: no limit
  // If the plan has trained before but nothing is at `output`: kRefused returns kInvalidArgument, with nothing written
  // or charged, for callers whose user may have mistyped the path.
  enum class StartOver { kAllowed, kRefused } start_over = StartOver::kAllowed;
  bool early = false;  // runs although CheckDue says that it is too early
  // Receives sentences about what is done. They reveal nothing beyond plan, ledger and models.
  enum class Says { kInfo, kWarning };
  std::function<void(Says, const std::string&)> say = {};
  // Called after each step; false stops the run, with what is paid for in the checkpoint.
  std::function<bool(const JobProgress&)> progress = {};
  std::function<bool()> cancelled = {};  // TrainingJob::cancelled
};

struct PlannedRunResult {
  DeploymentSettings settings;
  DeploymentLeft left;  // left after the run
  uint64_t steps = 0;   // trained in this run; 0: the plan has none left
  // Steps of the candidate over all runs since the last that had no checkpoint to resume: it counts from 0 again after
  // a lost checkpoint, a rebase, or a change of the plan that costs noise, although what was learned stays.
  uint64_t steps_of_model = 0;
  std::optional<JobResult> training;
  data::ReadReport log;  // local only
  bool evaluated = false;
  uint64_t evaluation_events = 0;  // the events that this run's evaluation used; local only
  Verdict verdict;                 // after the newest evaluation; with local evaluation it is not private
  // kWeighedBase: the base with another weight of its bias.
  enum class Serves { kBase, kEarlierCandidate, kNewestCandidate, kWeighedBase } serves = Serves::kBase;
  bool changed = false;  // the output file was replaced
};

// Damaged files beside the output do not end a plan (heal_plan.h); a damaged base or ledger is kInvalidData.
// kPrivacyRefused: no ledger, no plan in it, or a refusal of FineTune. kInvalidArgument: files that do not belong to
// this plan. kIo: the disk, or another run is running. kTooEarly: damaged files were healed, and nothing was charged.
// kCancelled. After an error the output is a whole model, either
// the old or the new one; if there was no model before and the log could not be read, there is still no model.
Result<PlannedRunResult> RunPlanned(const PlannedRunOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_PLANNED_RUN_H_
