// A ledger held to its anchor: what must agree when the ledger is read, and what is kept when a row was added. Without
// an anchor it does nothing.
//
//   // before the rows: who adds rows writes the anchor after them
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
  // `begin`: there may be no anchor yet though the ledger has rows.
  Anchored(std::shared_ptr<LedgerAnchor> anchor, bool begin) : anchor_(std::move(anchor)), begin_(begin) {}

  // Errors name the ledger.
  Result<std::optional<AnchorValue>> Read(const Database& database) const;
  // kPrivacyRefused where something is missing that `known` is of, or where nothing is known though the ledger has
  // rows.
  Status Check(const std::optional<AnchorValue>& known, Database& database, const std::string& random_id,
               const LedgerPosition& position) const;
  // The anchor knows what is up to `position` from now on. Never takes it back: who wrote later may have come first.
  // Under the writers' lock, which it takes where the caller has none: of two that added rows, the later row is what
  // the anchor knows in the end.
  Status Keep(Database& database, const std::string& random_id, const LedgerPosition& position) const;

 private:
  Status Begin(Database& database, const std::string& random_id, const LedgerPosition& position) const;

  std::shared_ptr<LedgerAnchor> anchor_;
  bool begin_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ANCHORED_H_
