// An anchor: how far a ledger has got, kept elsewhere, so that an old copy that is put back in its place is noticed.
//
// A ledger cannot know by itself that it is a copy from last month. Where one number and one hash can be kept that
// whoever restores files does not restore too (the platform's key store, another disk), they say so: the ledger must
// have that row, with that chain value. It is written after a charge is on disk and before the charge counts as made.
// After a crash in between, or where several processes charge at once, it may be some rows behind, which is allowed: a
// ledger may be ahead of its anchor. So an old copy is noticed if it lacks a row that the anchor knows. A ledger that
// has rows and no anchor is refused, unless it is said that the anchor begins now. What it is not: proof against who
// can change both.
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
  std::string ledger_id;  // 16 bytes, random, made with the ledger
  uint64_t seq = 0;       // rows of the ledger
  ChainValue chain{};     // up to the last of them
};

// Called with the ledger's mutex held, and while it is locked against other processes; must not use the ledger. Several
// processes with one ledger have one anchor.
class LedgerAnchor {
 public:
  virtual ~LedgerAnchor() = default;
  // Nothing where none has been written yet. Called whenever the ledger is read.
  virtual Result<std::optional<AnchorValue>> Read() = 0;
  // On return it lasts. Whole or not at all. Called once for each row of the ledger.
  virtual Status Write(const AnchorValue& value) = 0;
};

// A file of one line, for its owner only, replaced at once.
std::shared_ptr<LedgerAnchor> FileAnchor(const std::string& path);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHOR_H_
