// Checks a ledger against its anchor when it is read, and updates the anchor when a row was added. Without an anchor it
// refuses to add rows to a ledger that notes one, and does nothing else.
//
//   // before the rows: a program that adds rows writes the anchor after them
//   WISP_ASSIGN_OR_RETURN(const auto known, anchored.Read(database));
//   ... read the ledger up to `position`, and Take its notes ...
//   WISP_RETURN_IF_ERROR(anchored.Check(known, database, random_id, position));
//   WISP_RETURN_IF_ERROR(anchored.CheckGiven(database));
//   ... add a row, after a Note that IsDue, commit ...
//   WISP_RETURN_IF_ERROR(anchored.Keep(database, random_id, position));
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHORED_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHORED_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/ledger/ledger_anchor.h"
#include "runtime/privacy/ledger/ledger_database.h"
#include "runtime/privacy/ledger/ledger_rows.h"

namespace wisp::privacy {

class Anchored {
 public:
  // `begin`: the anchor may still be missing although the ledger has rows.
  Anchored(std::shared_ptr<LedgerAnchor> anchor, bool begin) : anchor_(std::move(anchor)), begin_(begin) {
    noted_.compared = anchor_ != nullptr;
  }

  // Reads the anchor; errors name the ledger.
  Result<std::optional<AnchorValue>> Read(const Database& database) const;
  // kPrivacyRefused if the ledger lacks what `known` states, or if the anchor is missing although the ledger has rows.
  Status Check(const std::optional<AnchorValue>& known, Database& database, const std::string& random_id,
               const LedgerPosition& position);
  // Moves the anchor to `position`, and never back: a process that wrote later may have come first. It runs under the
  // writers' lock, which it takes unless the caller has it, so that of two processes that added rows the later row
  // remains in the anchor.
  Status Keep(Database& database, const std::string& random_id, const LedgerPosition& position) const;

  // kPrivacyRefused if the ledger notes an anchor and none was given.
  Status CheckGiven(const Database& database) const;

  // Takes a note of the ledger's, in the order of rows.
  void Take(const LedgerResult& note) {
    ++noted_.begun;
    name_ = note.text;
  }
  // True if the next row comes after a note that this anchor begins. The ledger has the note before the anchor has a
  // value, so that a crash in between leaves a ledger that misses its anchor.
  bool IsDue() const { return begins_ || (anchor_ != nullptr && noted_.begun == 0); }
  bool begins() const { return begins_; }
  std::string name() const { return anchor_->Name(); }
  const NotedAnchors& noted() const { return noted_; }

 private:
  Status Begin(Database& database, const std::string& random_id, const LedgerPosition& position);

  std::shared_ptr<LedgerAnchor> anchor_;
  bool begin_;
  bool begins_ = false;  // the ledger has rows, and the anchor begins with the next one
  NotedAnchors noted_;
  std::string name_;  // of the newest
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHORED_H_
