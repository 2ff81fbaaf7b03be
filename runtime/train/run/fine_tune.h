// A training run from its start to the model file: checks what it may begin with, opens the ledger, keeps room on the
// disk, trains, says in the model's provenance what was spent, writes it. The program and the C interface call it.
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
  std::shared_ptr<privacy::LedgerAnchor> anchor;  // none: null
  bool begin_anchor = false;                      // there may be none yet
  privacy::RecordSpec record;                     // what one record of the run is
  bool unit_chosen = false;                       // by whoever started the run
};

struct FineTuneStart {
  const ModelFile* base = nullptr;  // null: the run begins with fresh weights. Must outlive the run
  std::string base_path;
  std::string adapter_path;             // of the adapter that `base` was opened with, which refusals name; or empty
  std::string dataset;                  // what the run trains on, by name
  bool other_data = false;              // the user's word that data of this name in the base's provenance is other data
  std::string run;                      // names it in the ledger: unique on this device
  std::string tuning;                   // what was chosen on the same data without a charge; empty: nothing
  std::optional<LedgerToTrain> ledger;  // of a private run, and only then
};

// Opens the ledger of a private run on `start.dataset`; one that is not there is made by its first charge.
// kPrivacyRefused, with nothing written: no path, an old copy that its anchor gives away, a ledger of another data set,
// a base that the run may not begin with (CheckStart).
Result<privacy::Ledger> OpenLedgerToTrain(const FineTuneStart& start);

// Of a base what stands before all that a run of `trained` and these options trains, where it lies:
// TrainingOptions::base. `base` must outlive it.
std::span<const StoredTensor> BaseBeside(const ModelFile& base, const Architecture& trained,
                                         const TrainingOptions& options);

// What such a run starts from: BaseBeside, and the weights behind it, the base's or, where it has none, initialised.
struct StartBesideBase {
  std::span<const StoredTensor> base;
  std::vector<float> held = {};  // from FirstHeld on
};
StartBesideBase StartBeside(const ModelFile& base, const Architecture& trained, const TrainingOptions& options,
                            const InitialisationOptions& initialisation, uint64_t seed);

// What is written. `contents` has all but weights, provenance, the bias's origin, the hash of a base, which items are
// retired or untrained, and allow_seen.
struct FineTuneOutput {
  std::string path;  // empty: nothing is written
  ModelContents contents;
  // ModelFile::lists, where the owner chooses anew. Not set: as the base says; without a base they may not be shown.
  std::optional<bool> allow_seen = {};
  std::string description;  // of the run, in the provenance
  // Called when the model is written, before the checkpoint is removed. Its error is the run's.
  std::function<Status(const JobResult&)> written;
};

class FineTune {
 public:
  // Whatever can be refused before the data is read. Errors of OpenLedgerToTrain, CheckDatasetName, CheckTuning.
  static Result<FineTune> Begin(FineTuneStart start);

  // Of a private run, or null.
  privacy::Ledger* ledger() { return ledger_ ? &*ledger_ : nullptr; }

  // Once. `job` has all but ledger, run, base_model_hash, lists and `write`, which are set here. Errors of
  // RunTrainingJob and WriteModel.
  Result<JobResult> Run(TrainingJob job, FineTuneOutput output);

 private:
  explicit FineTune(FineTuneStart start) : start_(std::move(start)) {}
  // kIo where the ledger cannot be read.
  Result<ProvenanceEntry> Provenance(const TrainingJob& job, const std::string& description,
                                     const JobResult& result) const;
  ModelContents Contents(const TrainingJob& job, FineTuneOutput& output) const;
  Status CheckAllowSeen(const FineTuneOutput& output) const;
  Status CheckAdapter(const Architecture& trained) const;

  FineTuneStart start_;
  std::optional<privacy::Ledger> ledger_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_FINE_TUNE_H_
