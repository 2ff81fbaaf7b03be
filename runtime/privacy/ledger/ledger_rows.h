// The rows of a ledger: its tables, reading and adding rows, and the check that none is missing or changed.
//
// Limits, plans, entries and results share one count, `seq`: 1, 2, 3, ... in the order in which they were
// written. Each row carries the chain value (ledger_chain.h) up to itself; seq 0 is the row of the data set. `head`
// repeats the last pair. Rows are read with these checks only, and added at the head only.
//
//   WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
//   WISP_ASSIGN_OR_RETURN(LedgerRows news, ReadRowsAfter(database, position));     // what others added meanwhile
//   LedgerEntry entry{.run = "a", .mechanism = steps};
//   WISP_ASSIGN_OR_RETURN(position, Append(database, news.end, entry));            // sets seq, id and time
//   WISP_RETURN_IF_ERROR(transaction.Commit());
//
// It knows nothing of the cost of a charge (ledger_composition.h).
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ROWS_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/ledger/ledger_chain.h"
#include "runtime/privacy/ledger/ledger_database.h"

namespace wisp::privacy {

// The row of the data set.
struct LedgerSubject {
  std::string dataset;
  PrivacyUnit unit = PrivacyUnit::kSession;
  Adjacency adjacency = Adjacency::kAddRemove;
  bool unit_chosen = false;  // somebody chose the unit, not a default
  std::string created_utc;
  std::string random_id;  // 16 random bytes
};

// A position up to which a ledger has been read, or written.
struct LedgerPosition {
  uint64_t seq = 0;
  ChainValue chain{};    // up to seq
  ChargeId last_id = 0;  // id of the last entry up to seq
  bool operator==(const LedgerPosition&) const = default;
};

// Each list is in the order of seq.
struct LedgerRows {
  std::vector<LedgerLimit> limits;
  std::vector<LedgerPlan> plans;
  std::vector<LedgerEntry> entries;
  std::vector<LedgerResult> results;
  LedgerPosition end;
};

// Calls `take` with each row of `rows`, in the order of seq; an error Status ends it.
template <typename Rows, typename Take>
Status InOrder(Rows& rows, const Take& take) {
  size_t l = 0, p = 0, e = 0, r = 0;
  const auto seq = [](const auto& list, size_t i) { return i < list.size() ? list[i].seq : UINT64_MAX; };
  for (;;) {
    const uint64_t next =
        std::min({seq(rows.limits, l), seq(rows.plans, p), seq(rows.entries, e), seq(rows.results, r)});
    if (next == UINT64_MAX) return OkStatus();
    if (next == seq(rows.limits, l)) {
      WISP_RETURN_IF_ERROR(take(rows.limits[l++]));
    } else if (next == seq(rows.plans, p)) {
      WISP_RETURN_IF_ERROR(take(rows.plans[p++]));
    } else if (next == seq(rows.entries, e)) {
      WISP_RETURN_IF_ERROR(take(rows.entries[e++]));
    } else {
      WISP_RETURN_IF_ERROR(take(rows.results[r++]));
    }
  }
}

// Creates the tables and the row of the data set in an empty database, inside a transaction.
Status CreateTables(Database& database, const LedgerSubject& subject);
// Reads the row of the data set, and sets `start` to the position before everything else.
Result<LedgerSubject> ReadSubject(Database& database, LedgerPosition* start);
// All rows after `after`, of one snapshot. kInvalidData if a row or the head does not continue from there.
Result<LedgerRows> ReadRowsAfter(Database& database, const LedgerPosition& after);
// The chain value at `seq`, which must be at most that of the head; for rows that ReadRowsAfter has verified.
Result<ChainValue> ReadChainAt(Database& database, uint64_t seq);
// The chain value at the newest entry of `run` up to `newest`; empty if there is no entry. For rows that ReadRowsAfter
// has verified.
Result<Receipt> ReadReceipt(Database& database, const std::string& run, ChargeId newest);
// True if an entry has that chain value; for verified rows too.
Result<bool> HasReceipt(Database& database, const Receipt& receipt);
// See Ledger::FindFirstCharge.
Result<uint64_t> ReadFirstCharge(Database& database, const Receipt& receipt);

// Add a row at the head, inside a transaction. They set seq, an entry's id, and the time if it is empty. They return
// the position after the row.
Result<LedgerPosition> Append(Database& database, const LedgerPosition& at, LedgerLimit& limit);
Result<LedgerPosition> Append(Database& database, const LedgerPosition& at, LedgerPlan& plan);
Result<LedgerPosition> Append(Database& database, const LedgerPosition& at, LedgerEntry& entry);
Result<LedgerPosition> Append(Database& database, const LedgerPosition& at, LedgerResult& result);

// The time as 2026-05-01T12:00:00.000000Z. The microseconds ensure that two copies of a ledger that continue separately
// have no chain value in common from there on.
std::string UtcNow();
Result<std::string> NewRandomId();
// "ledger '/a/b' is damaged: ", followed by `what`; it cannot be told what was spent.
Status Damaged(const Database& database, const std::string& what);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_ROWS_H_
