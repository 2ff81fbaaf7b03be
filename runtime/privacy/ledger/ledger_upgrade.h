// Ledgers of earlier versions become ones of this version, without losing a row.
//
// Version 1 (until November 2026) had no chain and no plans, and kept its latest charges in a write-ahead log beside
// the file. Version 2 had no parts of records, no settings of plans and no results,
// and its charges did not say what one record is. There is no version 3.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_UPGRADE_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_UPGRADE_H_

#include <cstdint>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger_database.h"

namespace wisp::privacy {

// That tables and triggers are those that this version made, letter by letter: a view in place of a table, say, would
// run what the file says.
Status CheckTablesOf(Database& database, int64_t version);

// Inside a transaction, which the caller commits: the tables of an earlier version are read, checked, and written anew.
// kInvalidData where rows are missing or changed, or the tables are others: then nothing has been changed.
//
// From version 1: entries keep their order, their identifiers, times and states and have no plan; limits keep theirs. A
// limit and an entry are ordered by their times, the limit first within a second, since a program sets it before it
// charges. The unit counts as chosen where it is not the one that version 1 took by default.
// From version 2: all rows keep their chain values, so anchors and receipts stay good.
Status Upgrade(Database& database, int64_t version);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_UPGRADE_H_
