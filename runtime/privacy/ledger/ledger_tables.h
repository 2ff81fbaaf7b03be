// The tables and triggers of a ledger, character by character.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_TABLES_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_TABLES_H_

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger_database.h"

namespace wisp::privacy {

constexpr int64_t kLedgerApplicationId = 0x77697370;  // "wisp"
constexpr int64_t kLedgerVersion = 1;

// Creates the tables and triggers in an empty database.
Status MakeTables(Database& database);

// kInvalidData unless the database has exactly these tables and triggers: a view in place of a table would execute code
// of the file.
Status CheckTables(Database& database);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_TABLES_H_
