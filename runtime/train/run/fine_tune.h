// A training run from its start to the model file. It checks the start, opens the ledger, reserves disk space, trains,
// records what was spent in the model's provenance, and writes the model. The program and the C interface call it.
//
//   WISP_ASSIGN_OR_RETURN(FineTune run, FineTune::Begin({.base = &base, .base_path = "base.wisp", .dataset = "log.db",
//                                                        .run = "2026-05-01", .ledger = LedgerToTrain{...}}));
//   ... read the data ...
//   WISP_ASSIGN_OR_RETURN(JobResult result, run.Run(job, {.path = "out.wisp", .contents = {...}}));
#ifndef WISP_RUNTIME_TRAIN_RUN_FINE_TUNE_H_
#define WISP_RUNTIME_TRAIN_RUN_FINE_TUNE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/model/model_file.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/job.h"

namespace wisp {

// The ledger that a private run charges.
struct LedgerToTrain {
  std::string path;
  std::shared_ptr<privacy::LedgerAnchor> anchor;  // null: no anchor
  bool begin_anchor = false;                      // the anchor may still be missing
  privacy::RecordSpec record;                     // definition of one record of the run
  bool unit_chosen = false;                       // whoever started the run chose the unit
};

struct FineTuneStart {
  const ModelFile* base = nullptr;  // null: the run starts with fresh weights. Must outlive the run
  std::string base_path;
  std::string adapter_path;             // path of the adapter that `base` was opened with, for messages; or empty
  std::string dataset;                  // name of the data that the run trains on
  bool other_data = false;              // the user states that data of this name in the base's provenance is other data
  std::string run;                      // name in the ledger: unique on this device
  std::optional<LedgerToTrain> ledger;  // set for a private run, and only then
};

// Opens the ledger of a private run on `start.dataset`; the first charge creates a ledger that is missing.
// kPrivacyRefused, with nothing written: no path, an old copy that the anchor detects, a ledger of another data set, or
// a base that the run may not start from (CheckStart).
Result<privacy::Ledger> OpenLedgerToTrain(const FineTuneStart& start);

// The tensors of a base in front of everything that a run of `trained` with these options trains:
// TrainingOptions::base. `base` must outlive the result.
std::span<const StoredTensor> BaseBeside(const ModelFile& base, const Architecture& trained,
                                         const TrainingOptions& options);

// The start of such a run: BaseBeside, and the weights behind it, which are the base's or, where it has none,
// initialised.
struct StartBesideBase {
  std::span<const StoredTensor> base;
  std::vector<float> held = {};  // from FirstHeld on
};
StartBesideBase StartBeside(const ModelFile& base, const Architecture& trained, const TrainingOptions& options,
                            const InitialisationOptions& initialisation, uint64_t seed);

// The model to write. The run adds to `contents` weights, provenance, the bias's origin, the hash of a base, the lists
// of retired and untrained items, and allow_seen.
struct FineTuneOutput {
  std::string path;  // empty: nothing is written
  ModelContents contents;
  std::string description;  // describes the run in the provenance
  // Called after the model is written, before the checkpoint is removed. An error becomes the run's.
  std::function<Status(const JobResult&)> written;
  // Called before that with the rules of the lists that the model would serve, which stay valid until it returns.
  std::function<Status(const JobResult&, const ModelLists&)> scored = {};
};

class FineTune {
 public:
  // Refuses everything that can be refused before the data is read. Errors of OpenLedgerToTrain and CheckDatasetName.
  static Result<FineTune> Begin(FineTuneStart start);

  // The ledger that the run charges. Null if the run is not private.
  privacy::Ledger* ledger() { return ledger_ ? &*ledger_ : nullptr; }

  // The name under which the ledger knows the run, if `uncharged_tuning` is this.
  std::string RunName(const std::string& uncharged_tuning) const;

  // Call it once, or once for each run of a search. `job` has everything but ledger, run, base_model_hash, lists and
  // `write`, which are set here, and the start weights, which are the base's if none are given. A run of a search that
  // is paid for charges `of_run` instead, a ledger of its own. Errors of CheckTuning, RunTrainingJob and WriteModel.
  Result<JobResult> Run(TrainingJob job, FineTuneOutput output, privacy::Ledger* of_run = nullptr);
  // Writes the model of a result of Run whose output had no path. The result says what was charged for it.
  Status Write(TrainingJob job, FineTuneOutput output, const JobResult& result) const;

 private:
  explicit FineTune(FineTuneStart start) : start_(std::move(start)) {}
  // kIo if the ledger cannot be read.
  Result<ProvenanceEntry> Provenance(const TrainingJob& job, const std::string& description,
                                     const JobResult& result) const;
  ModelContents Contents(const TrainingJob& job, FineTuneOutput& output) const;
  void TakeFrom(const JobResult& result, ModelContents& contents) const;
  Status WriteContents(const TrainingJob& job, const FineTuneOutput& output, const JobResult& result,
                       ModelContents& contents) const;
  Status CheckAllowSeen(const TrainingJob& job, const FineTuneOutput& output) const;
  Status CheckAdapter(const Architecture& trained) const;

  FineTuneStart start_;
  std::optional<privacy::Ledger> ledger_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_FINE_TUNE_H_
