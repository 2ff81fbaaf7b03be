#include "runtime/privacy/ledger/ledger_anchored.h"

namespace wisp::privacy {

Result<std::optional<AnchorValue>> Anchored::Read() const {
  if (anchor_ == nullptr) return std::optional<AnchorValue>();
  return anchor_->Read();
}

// A new ledger gets its anchor before its first row: after a crash in between it is not one that has rows and no
// anchor.
Status Anchored::Begin(const Database& database, const std::string& random_id, const LedgerPosition& position) const {
  const std::string name = "ledger '" + database.path() + "'";
  if (position.seq > 0 && !begin_) {
    return PrivacyRefused(
        name, " has ", position.seq,
        " rows and its anchor knows none, so it cannot be told whether it is an old copy; ",
        "if it is not, say once that the anchor begins now (--begin-anchor, or `begin` of wisp_anchor)");
  }
  if (!database.is_pending() && !database.display_only())
    return anchor_->Write({random_id, position.seq, position.chain});
  if (position.seq == 0) return OkStatus();
  return PrivacyRefused(name,
                        " is only read: its anchor can begin where it can be written, in the version of this build");
}

Status Anchored::Check(const std::optional<AnchorValue>& known, Database& database, const std::string& random_id,
                       const LedgerPosition& position) const {
  if (anchor_ == nullptr) return OkStatus();
  if (!known) return Begin(database, random_id, position);
  const std::string name = "ledger '" + database.path() + "'";
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
  WISP_ASSIGN_OR_RETURN(const Transaction writers_lock, Transaction::Begin(database));
  WISP_ASSIGN_OR_RETURN(const auto known, anchor_->Read());
  if (known && known->ledger_id != random_id)
    return PrivacyRefused("the anchor of ledger '", database.path(), "' is now that of another ledger");
  if (known && known->seq >= position.seq) return OkStatus();
  return anchor_->Write({random_id, position.seq, position.chain});
}

}  // namespace wisp::privacy
