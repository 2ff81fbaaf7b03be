// Keeps what an interrupted run has paid for: a checkpoint, and disk space reserved for it and for the ledger.
//
// Space is reserved before anything is charged, so a disk that is too full refuses the run rather than ending it. A
// checkpoint that later cannot be written does not end the run: failure() says why, and the next one that is due tries
// again.
//
//   SavedRun saved;
//   WISP_RETURN_IF_ERROR(saved.Claim("run.ckpt"));
//   ... read it, if it is there ...
//   WISP_RETURN_IF_ERROR(saved.Reserve({.every = 0, .bytes = most}));
//   ... charge, step ...
//   if (saved.Due(step, trainer->at_end_of_charge())) saved.Save(trainer->Save());
//   saved.Remove();                                   // when the run is complete
#ifndef WISP_RUNTIME_TRAIN_RUN_SAVED_RUN_H_
#define WISP_RUNTIME_TRAIN_RUN_SAVED_RUN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/file.h"
#include "runtime/model/checkpoint.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

struct SavedRunOptions {
  // Steps between checkpoints; 0: whenever a charge is used up, so that a kill costs at most one charge.
  uint64_t every = 0;
  uint64_t bytes = 0;  // largest size of a checkpoint
};

class SavedRun {
 public:
  // Claims the checkpoint's path for this run alone until it ends; empty: no checkpoint. Call it before reading the
  // checkpoint, because another run would resume from it too, and both would be paid for. kIo: another run has it.
  Status Claim(const std::string& path);
  // Reserves space for the checkpoint and, if none exists yet, for the one that replaces it. kIo: there is too little;
  // nothing is left behind.
  Status Reserve(const SavedRunOptions& options);
  // Reserves space beside the ledger for so many charges. GiveUpLedgerRoom frees it for a charge that the disk refuses.
  Status ReserveLedger(const std::string& ledger_path, uint64_t num_charges);
  // The file of that space: beside the ledger itself, on its disk, not beside a symbolic link to it.
  static std::string LedgerRoomOf(const std::string& ledger_path);
  // Frees the ledger's space. True if there was some: then the charge may be tried again.
  bool GiveUpLedgerRoom();

  bool Due(uint64_t step, bool at_end_of_charge) const;
  // A step that was saved is saved again only if more than steps was paid for.
  enum class Again { kNo, kYes };
  void Save(const Checkpoint& checkpoint, Again again = Again::kNo);
  // Records that an existing checkpoint is resumed from.
  void Found(uint64_t step) { step_ = step; }
  // Removes the checkpoint of a complete run.
  void Remove();

  bool is_on() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  std::optional<uint64_t> step() const { return step_; }   // step of the newest checkpoint
  const std::string& failure() const { return failure_; }  // message of the last Save; empty: it succeeded

 private:
  void TakeRoom(std::optional<FileReplacement>& room);

  std::string path_;
  SavedRunOptions options_;
  std::optional<FileReplacement> claim_, next_, after_, ledger_room_;
  std::optional<uint64_t> step_;
  std::string failure_;
};

// Says where a run ends that was paid for only a part of its steps, and why.
std::string EndedEarly(uint64_t end, uint64_t planned, const Status& refusal);

struct Charged {
  uint64_t steps = 0;  // by this call
  bool any = false;    // the ledger has a charge to the run: steps, or a release that came before them
};

// Asks the ledger for a release, which `steps` leave out. If the ledger cannot be read, there may be one.
Charged FindCharged(const privacy::Ledger& ledger, const std::string& run, uint64_t steps);

// Says for messages what an ended run leaves behind: "40 steps were charged and what was charged stays charged, and
// run.ckpt resumes from step 37".
std::string DescribeSavedState(const SavedRun& saved, const Charged& charged);

// Makes "nothing was charged" in a message refer only to its own subject, because something was charged before.
std::string ScopeChargeMessage(std::string message);

// Adds DescribeSavedState to the reason why a step could not be taken; `status` speaks of the step alone.
Status AddSavedState(const Status& status, const SavedRun& saved, const Charged& charged);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_SAVED_RUN_H_
