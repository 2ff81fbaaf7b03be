// Checks a ledger against its anchor when it is read, and updates the anchor when a row was added. Without an anchor it
// does nothing.
//
//   // before the rows: a program that adds rows writes the anchor after them
//   WISP_ASSIGN_OR_RETURN(const auto known, anchored.Read(database));
//   ... read the ledger up to `position` ...
//   WISP_RETURN_IF_ERROR(anchored.Check(known, database, random_id, position));
//   ... add a row, commit ...
//   WISP_RETURN_IF_ERROR(anchored.Keep(database, random_id, position));
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHORED_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHORED_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger_anchor.h"
#include "runtime/privacy/ledger/ledger_database.h"
#include "runtime/privacy/ledger/ledger_rows.h"

namespace wisp::privacy {

class Anchored {
 public:
  // `begin`: the anchor may still be missing although the ledger has rows.
  Anchored(std::shared_ptr<LedgerAnchor> anchor, bool begin) : anchor_(std::move(anchor)), begin_(begin) {}

  // Reads the anchor; errors name the ledger.
  Result<std::optional<AnchorValue>> Read(const Database& database) const;
  // kPrivacyRefused if the ledger lacks what `known` states, or if the anchor is missing although the ledger has rows.
  Status Check(const std::optional<AnchorValue>& known, Database& database, const std::string& random_id,
               const LedgerPosition& position) const;
  // Moves the anchor to `position`, and never back: a process that wrote later may have come first. It runs under the
  // writers' lock, which it takes unless the caller has it, so that of two processes that added rows the later row
  // remains in the anchor.
  Status Keep(Database& database, const std::string& random_id, const LedgerPosition& position) const;

 private:
  Status Begin(Database& database, const std::string& random_id, const LedgerPosition& position) const;

  std::shared_ptr<LedgerAnchor> anchor_;
  bool begin_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHORED_H_
