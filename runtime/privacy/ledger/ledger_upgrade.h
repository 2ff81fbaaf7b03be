// Ledgers of version 1 become version 2, without losing an entry or a limit.
//
// Version 1 (until November 2026) had no chain and no plans, and kept its latest charges in a write-ahead log beside
// the file.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_UPGRADE_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_UPGRADE_H_

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger_database.h"

namespace wisp::privacy {

// That tables and triggers are those that version 1 made, letter by letter: a view in place of a table, say, would run
// what the file says.
Status CheckTablesOfVersion1(Database& database);

// Inside a transaction, which the caller commits: the tables of version 1 are read, checked, and written anew. Entries
// keep their order, their identifiers, times and states and have no plan; limits keep theirs. A limit and an entry are
// ordered by their times, the limit first within a second, since a program sets it before it charges. The unit counts
// as chosen where it is not the one that version 1 took by default. kInvalidData where entries are missing, or the
// tables are others: then nothing has been changed.
Status UpgradeFromVersion1(Database& database);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_UPGRADE_H_
