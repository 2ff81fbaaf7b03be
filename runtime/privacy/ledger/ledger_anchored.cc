#include "runtime/privacy/ledger/ledger_anchored.h"

#include <utility>

#include "runtime/core/text.h"

namespace wisp::privacy {
namespace {

bool IsWritten(const Database& database) { return !database.is_pending() && !database.display_only(); }

// nullopt if the caller already has the lock, or if nothing can be written.
Result<std::optional<Transaction>> WritersLock(Database& database) {
  std::optional<Transaction> lock;
  if (database.in_transaction() || !IsWritten(database)) return lock;
  WISP_ASSIGN_OR_RETURN(Transaction begun, Transaction::Begin(database));
  lock.emplace(std::move(begun));
  return lock;
}

std::string Named(const Database& database) { return "ledger '" + database.path() + "'"; }

// Adds the ledger's name to an error of its anchor. The anchor may be an app's own, which does not know that name.
Status Naming(const Database& database, const Status& fault) {
  return fault.ok() ? fault : Status(fault.code(), Named(database) + ": " + fault.message());
}

}  // namespace

Result<std::optional<AnchorValue>> Anchored::Read(const Database& database) const {
  if (anchor_ == nullptr) return std::optional<AnchorValue>();
  auto known = anchor_->Read();
  if (!known.ok()) return Naming(database, known.status());
  return known;
}

// A new ledger gets its anchor before its first row, so that a crash in between does not leave rows without an anchor.
// Another process may have begun it since the anchor was read, and charged.
Status Anchored::Begin(Database& database, const std::string& random_id, const LedgerPosition& position) {
  if (!IsWritten(database) && position.seq == 0) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const auto writers_lock, WritersLock(database));
  WISP_ASSIGN_OR_RETURN(const auto known, Read(database));
  if (known) {
    // The anchor may know rows that were added after ours were read: then they are in the file.
    LedgerPosition there = position;
    if (known->seq > there.seq && ReadChainAt(database, known->seq).ok()) there.seq = known->seq;
    return Check(known, database, random_id, there);
  }
  if (position.seq > 0 && !begin_) {
    return PrivacyRefused(Named(database), " has ", position.seq,
                          " rows and its anchor knows none, so it cannot be told whether it is an old copy; ",
                          "if it is not, say once that the anchor begins now (`begin` of the anchor)");
  }
  if (!IsWritten(database))
    return PrivacyRefused(Named(database),
                          " is only read: its anchor can begin where it can be written, in the version of this build");
  begins_ = position.seq > 0;
  return begins_ ? OkStatus() : Naming(database, anchor_->Write({random_id, position.seq, position.chain}));
}

Status Anchored::CheckGiven(const Database& database) const {
  if (anchor_ != nullptr || noted_.begun == 0) return OkStatus();
  return PrivacyRefused(Named(database), " has an anchor (", OneLine(name_),
                        "), which was not given (`anchor`), so an old copy would not be noticed; if it is lost, begin "
                        "another one (`begin` of the anchor): the statement says so from then on");
}

Status Anchored::Check(const std::optional<AnchorValue>& known, Database& database, const std::string& random_id,
                       const LedgerPosition& position) {
  begins_ = false;
  if (anchor_ == nullptr) return OkStatus();
  if (!known) return Begin(database, random_id, position);
  const std::string name = Named(database);
  if (database.is_pending()) {
    return PrivacyRefused(name, " is not there, and its anchor knows ", known->seq,
                          " rows of it: put the newest copy back; without it what was spent on the data is forgotten");
  }
  if (known->ledger_id != random_id)
    return PrivacyRefused(name,
                          " is not the one that its anchor is kept for: put that one back, or name its own anchor");
  if (known->seq <= position.seq) {
    WISP_ASSIGN_OR_RETURN(const ChainValue chain, ReadChainAt(database, known->seq));
    if (chain == known->chain) return OkStatus();
  }
  return PrivacyRefused(name, " is an old copy, or one that was changed: its anchor knows row ", known->seq,
                        ", which is ", (known->seq <= position.seq ? "another" : "missing"),
                        " here; what was spent since would be forgotten");
}

Status Anchored::Keep(Database& database, const std::string& random_id, const LedgerPosition& position) const {
  if (anchor_ == nullptr) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const auto writers_lock, WritersLock(database));
  WISP_ASSIGN_OR_RETURN(const auto known, Read(database));
  if (known && known->ledger_id != random_id)
    return PrivacyRefused("the anchor of ledger '", database.path(), "' is now that of another ledger");
  if (known && known->seq >= position.seq) return OkStatus();
  return Naming(database, anchor_->Write({random_id, position.seq, position.chain}));
}

}  // namespace wisp::privacy
