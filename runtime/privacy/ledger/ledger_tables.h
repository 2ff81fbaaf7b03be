// The tables and triggers of a ledger, letter by letter.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_TABLES_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_TABLES_H_

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger_database.h"

namespace wisp::privacy {

constexpr int64_t kLedgerApplicationId = 0x77697370;  // "wisp"
constexpr int64_t kLedgerVersion = 4;

// Version 2: without parts of records, and charges and plans do not say what one record is.
extern const char kTablesOfVersion2[];

// Makes those of kLedgerVersion in an empty database.
Status MakeTables(Database& database);

// kInvalidData unless the database has those of kLedgerVersion, or those that `sql` makes, and no others.
Status CheckTables(Database& database);
Status CheckTables(Database& database, const char* sql);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_TABLES_H_
