// What an interruption must not cost a run: a checkpoint of what is paid for, and room on the disk for it and for the
// ledger.
//
// Room is taken before anything is charged, so a disk that is too full refuses the run rather than ending it. A
// checkpoint that cannot be written later ends nothing: failure() says why, and the next one that is due tries again.
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
  // Steps between checkpoints; 0: where a charge is used up, so that a kill costs one charge at most.
  uint64_t every = 0;
  uint64_t bytes = 0;  // of a checkpoint, at most
};

class SavedRun {
 public:
  // The path of the checkpoint, for this run alone until it ends; empty: none is written. To be called before the
  // checkpoint is read: another run would go on from it too, and both would be paid for. kIo: another run has it.
  Status Claim(const std::string& path);
  // Room for the checkpoint and, where there is none yet, for the one that replaces it. kIo: there is none; nothing is
  // left behind.
  Status Reserve(const SavedRunOptions& options);
  // Room beside the ledger for so many charges: given up by GiveUpLedgerRoom, for the charge that the disk refuses.
  Status ReserveLedger(const std::string& ledger_path, uint64_t num_charges);
  // The file of that room: beside the ledger itself, on its disk, not beside a symbolic link to it.
  static std::string LedgerRoomOf(const std::string& ledger_path);
  // Whether there was room to give up: then the charge may be tried again.
  bool GiveUpLedgerRoom();

  bool Due(uint64_t step, bool at_end_of_charge) const;
  void Save(const Checkpoint& checkpoint);
  // A checkpoint that was there and is gone on with.
  void Found(uint64_t step) { step_ = step; }
  // The run is complete: there is nothing to go on with.
  void Remove();

  bool is_on() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  std::optional<uint64_t> step() const { return step_; }   // of the checkpoint that there is
  const std::string& failure() const { return failure_; }  // of the last Save; empty: it went well

 private:
  void TakeRoom(std::optional<FileReplacement>& room);

  std::string path_;
  SavedRunOptions options_;
  std::optional<FileReplacement> claim_, next_, after_, ledger_room_;
  std::optional<uint64_t> step_;
  std::string failure_;
};

// Of a run that was paid for a part of its steps: where it ends, and why.
std::string EndedEarly(uint64_t end, uint64_t planned, const Status& refusal);

// "40 steps were charged to it and stay charged, and run.ckpt goes on from step 37": what an end of a run leaves, for
// messages.
std::string WhatStays(const SavedRun& saved, uint64_t steps_charged);

// The message, in which "nothing was charged" is said of what it speaks of alone: something was, before.
std::string ThisWasNotCharged(std::string message);

// The same behind the reason why a step could not be taken; `status` speaks of the step alone.
Status WithWhatStays(const Status& status, const SavedRun& saved, uint64_t steps_charged);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_SAVED_RUN_H_
