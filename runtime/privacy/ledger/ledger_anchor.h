// An anchor: the ledger's progress, stored elsewhere, so that an old copy that is put back in its place is noticed.
//
// A ledger cannot know by itself that it is a copy from last month. One number and one hash can be stored where
// restoring files does not restore them too (the platform's key store, another disk). They state that the ledger must
// have that row, with that chain value.
//
// The anchor is written after a charge is on disk and before the charge counts as made. After a crash in between, or if
// several processes charge at once, it may be some rows behind, which is allowed: a ledger may be ahead of its anchor.
// So an old copy is noticed if it lacks a row that the anchor knows. A ledger that has rows but no anchor is refused,
// unless the caller says that the anchor begins now. The ledger notes each anchor that begins, and is not charged
// without it. It does not help against somebody who can change both.
//
//   Ledger::Open(path, {.dataset = "history", .record = record, .anchor = FileAnchor("/elsewhere/history.anchor")})
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHOR_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger_chain.h"

namespace wisp::privacy {

struct AnchorValue {
  std::string ledger_id;  // 16 random bytes, created with the ledger
  uint64_t seq = 0;       // number of rows of the ledger
  ChainValue chain{};     // up to the last of these rows
};

// Called with the ledger's mutex held, and while it is locked against other processes; must not use the ledger.
// Processes that share a ledger share one anchor.
class LedgerAnchor {
 public:
  virtual ~LedgerAnchor() = default;
  // nullopt if none has been written yet. Called whenever the ledger is read.
  virtual Result<std::optional<AnchorValue>> Read() = 0;
  // Replaces the value, all or nothing; it is durable on return. Called once for each row of the ledger.
  virtual Status Write(const AnchorValue& value) = 0;
  // A name for people, which the ledger notes.
  virtual std::string Name() const { return "kept by the app"; }
};

// An anchor in a file of one line, readable by its owner only, replaced atomically.
std::shared_ptr<LedgerAnchor> FileAnchor(const std::string& path);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHOR_H_
