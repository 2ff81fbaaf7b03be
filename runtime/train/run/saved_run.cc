#include "runtime/train/run/saved_run.h"

#include <algorithm>
#include <cstdio>

#include "runtime/core/platform.h"
#include "runtime/core/text.h"

namespace wisp {
namespace {

// A charge takes a row of some 300 bytes with its index and its part of the journal; the rest is the journal's.
constexpr uint64_t kChargeBytes = 400, kLedgerBytes = 256 << 10;

}  // namespace

Status SavedRun::Claim(const std::string& path) {
  if (path.empty()) return OkStatus();
  auto begun = FileReplacement::Begin(path);
  const Status status = begun.ok() ? begun->CheckOnlyWriter() : begun.status();
  if (!status.ok()) return {status.code(), status.message() + "; nothing was charged"};
  path_ = path;
  claim_.emplace(*std::move(begun));
  return OkStatus();
}

Status SavedRun::Reserve(const SavedRunOptions& options) {
  options_ = options;
  if (!is_on()) return OkStatus();
  const bool is_there = platform::IsThere(path_);
  for (std::optional<FileReplacement>* room : {&next_, is_there ? nullptr : &after_}) {
    if (room == nullptr) continue;
    TakeRoom(*room);
    if (room->has_value()) continue;
    next_.reset();
    return IoError(failure_, "; nothing was charged");
  }
  return OkStatus();
}

void SavedRun::TakeRoom(std::optional<FileReplacement>& room) {
  auto begun = FileReplacement::Begin(path_);
  const Status status = begun.ok() ? begun->Reserve(options_.bytes) : begun.status();
  if (status.ok()) {
    room.emplace(*std::move(begun));
  } else {
    failure_ = status.message();
  }
}

std::string SavedRun::LedgerRoomOf(const std::string& ledger_path) {
  const std::string resolved = platform::FindRealPath(ledger_path);
  return (resolved.empty() ? ledger_path : resolved) + "-room";
}

Status SavedRun::ReserveLedger(const std::string& ledger_path, uint64_t num_charges) {
  auto begun = FileReplacement::Begin(LedgerRoomOf(ledger_path));
  if (!begun.ok()) return begun.status();
  if (const Status status = begun->Reserve(kLedgerBytes + num_charges * kChargeBytes); !status.ok())
    return IoError(status.message(), "; nothing was charged");
  ledger_room_.emplace(*std::move(begun));
  return OkStatus();
}

bool SavedRun::GiveUpLedgerRoom() {
  const bool had = ledger_room_.has_value();
  ledger_room_.reset();
  return had;
}

bool SavedRun::Due(uint64_t step, bool at_end_of_charge) const {
  return is_on() && (options_.every > 0 ? step % options_.every == 0 : at_end_of_charge);
}

void SavedRun::Save(const Checkpoint& checkpoint, Again again) {
  if (!is_on() || (step_ == checkpoint.step && again == Again::kNo)) return;
  const Status status = WriteCheckpoint(path_, checkpoint, next_ ? &*next_ : nullptr);
  next_.reset();
  failure_ = status.message();
  if (status.ok()) step_ = checkpoint.step;
  if (after_) {
    next_.emplace(*std::move(after_));
    after_.reset();
  } else if (status.ok()) {
    // Reserves the space of the checkpoint that was replaced. If another process was faster, the next one uses what is
    // left.
    TakeRoom(next_);
    failure_.clear();
  }
}

void SavedRun::Remove() {
  next_.reset();
  after_.reset();
  if (is_on()) platform::Remove(path_);
  claim_.reset();  // released last, so that nobody resumes a complete run
  step_.reset();
}

std::string EndedEarly(uint64_t end, uint64_t planned, const Status& refusal) {
  return "the run ends after step " + std::to_string(end) + " of " + std::to_string(planned) +
         ", because more was not allowed: " + refusal.message();
}

Charged FindCharged(const privacy::Ledger& ledger, const std::string& run, uint64_t steps) {
  if (steps > 0) return {.steps = steps, .any = true};
  const auto entries = ledger.Entries();
  const auto is_ours = [&](const privacy::LedgerEntry& e) { return e.run == run; };
  return {.any = !entries.ok() || std::any_of(entries->begin(), entries->end(), is_ours)};
}

std::string DescribeSavedState(const SavedRun& saved, const Charged& charged) {
  std::string text = charged.steps > 0 ? CountedWere(charged.steps, "step") + " charged and " : "";
  if (charged.any) text += "what was charged stays charged, and ";
  if (saved.step()) {
    text += saved.path() + " resumes from step " + std::to_string(*saved.step());
    return saved.failure().empty() ? text : text + ", because a later one could not be saved: " + saved.failure();
  }
  return text + "nothing was saved to resume from" +
         (saved.is_on() ? (saved.failure().empty() ? "" : ": " + saved.failure()) : " (`checkpoint_path`)");
}

std::string ScopeChargeMessage(std::string message) {
  constexpr std::string_view kNothing = "nothing was charged";
  const size_t at = message.find(kNothing);
  return at == std::string::npos ? message : message.replace(at, kNothing.size(), "this was not charged");
}

Status AddSavedState(const Status& status, const SavedRun& saved, const Charged& charged) {
  const std::string message = charged.any ? ScopeChargeMessage(status.message()) : status.message();
  return {status.code(), message + "; before it, " + DescribeSavedState(saved, charged)};
}

}  // namespace wisp
