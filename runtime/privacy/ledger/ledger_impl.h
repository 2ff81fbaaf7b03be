// The internals of a Ledger, shared by ledger.cc, which has the functions that write, and ledger_reads.cc, which has
// those that only read.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_IMPL_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_IMPL_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/core/text.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/ledger/ledger_anchored.h"
#include "runtime/privacy/ledger/ledger_budget.h"
#include "runtime/privacy/ledger/ledger_composition.h"
#include "runtime/privacy/ledger/ledger_database.h"
#include "runtime/privacy/ledger/ledger_rows.h"

namespace wisp::privacy {

using LedgerRow = std::variant<LedgerLimit, LedgerPlan, LedgerEntry, LedgerResult>;

struct Ledger::Impl {
  Impl(Database d, const LedgerOptions& options)
      : database(std::move(d)), anchored(options.anchor, options.begin_anchor), opened_as(options.record) {}

  // Reads the row of the data set, and all rows from the first on.
  Status Start() {
    position = {};
    WISP_ASSIGN_OR_RETURN(subject, ReadSubject(database, &position));
    random_id = subject.random_id;
    WISP_RETURN_IF_ERROR(Refresh());
    if (!anchored.begins()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(Transaction transaction, BeginWriting(/*make=*/false));
    return anchored.begins() ? Write(transaction, std::span<LedgerRow>()) : OkStatus();
  }

  // Reads what was written since, also for a ledger that may have been created meanwhile.
  Status ReadNew() {
    WISP_RETURN_IF_ERROR(Attach(/*make=*/false));
    return Refresh();
  }

  // Reads and checks all rows again.
  Result<LedgerRows> ReadAll() {
    WISP_RETURN_IF_ERROR(Attach(/*make=*/false));
    LedgerPosition start;
    WISP_RETURN_IF_ERROR(ReadSubject(database, &start).status());
    return ReadRowsAfter(database, start);
  }

  Status CheckUnit(const LedgerSubject& there, PrivacyUnit unit, Adjacency adjacency) const {
    if (there.unit == unit && there.adjacency == adjacency) return OkStatus();
    return PrivacyRefused("ledger '", database.path(), "' protects one ", ToText(there.unit), " under ",
                          ToText(there.adjacency), ", asked for was one ", ToText(unit), " under ", ToText(adjacency),
                          ": costs of different units do not add up");
  }

  // The definition of a record that a charge or a plan states; nullopt if it costs the same for all records.
  Result<std::optional<RecordSpec>> FindStatedRecord(LedgerBudget::Says who) const {
    if (opened_as && opened_as->is_any()) return std::optional<RecordSpec>();
    WISP_ASSIGN_OR_RETURN(RecordSpec record, budget.FindStatedRecord(database.path(), opened_as, who));
    return std::optional(std::move(record));
  }

  Status CheckDataset(const LedgerSubject& there, const std::string& dataset) const {
    if (there.dataset.empty() || dataset.empty() || there.dataset == dataset) return OkStatus();
    return PrivacyRefused(
        "ledger '", database.path(), "' is of the data set '", OneLine(there.dataset),
        "', and what is to be charged is '", OneLine(dataset),
        "': what is spent on one must not be counted for the other (the same data in a file of another name: "
        "`dataset` ",
        InShell(OneLine(there.dataset)), ")");
  }

  // Call this before the database is read or, with `make`, written. A ledger that was missing may exist by now, and
  // another process may have created it for something else. Then nothing is read from it or charged to it, now or
  // later.
  Status Attach(bool make) {
    WISP_RETURN_IF_ERROR(mismatch);
    if (!database.is_pending()) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const bool attached, database.Attach(make));
    if (!attached) return OkStatus();
    // This error stays unless all of the following succeeds.
    mismatch = InvalidData("ledger '", database.path(), "' could not be read when it was made");
    LedgerPosition start;
    WISP_ASSIGN_OR_RETURN(const LedgerSubject there, ReadSubject(database, &start));
    mismatch = CheckUnit(there, subject.unit, subject.adjacency);
    if (mismatch.ok()) mismatch = CheckDataset(there, subject.dataset);
    position = start;
    random_id = there.random_id;
    return mismatch;
  }

  // Updates the rows kept here with what this and other processes have written.
  Status Refresh() {
    // Read before the rows, because a program that adds rows writes the anchor after them.
    WISP_ASSIGN_OR_RETURN(const auto known, anchored.Read(database));
    WISP_ASSIGN_OR_RETURN(const LedgerRows rows, ReadRowsAfter(database, position));
    const Status taken = InOrder(rows, [&](const auto& row) { return Take(row); });
    if (!taken.ok()) return Damaged(database, taken.message());
    position = rows.end;
    return anchored.Check(known, database, random_id, position);
  }

  // Takes the row after `position`.
  template <typename Row>
  Status Take(const Row& row) {
    WISP_RETURN_IF_ERROR(budget.Take(row));
    if constexpr (std::is_same_v<Row, LedgerEntry>) {
      if (asked) asked->Take(row);
    }
    if constexpr (std::is_same_v<Row, LedgerResult>) {
      if (row.entry == 0) anchored.Take(row);
    }
    return OkStatus();
  }

  // Checks, in a transaction, that what is to be written follows from all existing rows.
  Status CheckNewest(uint64_t newest_row) const {
    if (newest_row == position.seq) return OkStatus();
    return PrivacyRefused("ledger '", database.path(), "' has ", position.seq,
                          " rows, and what is to be written follows from ", newest_row,
                          " of them: another process wrote meanwhile, and nothing was written here");
  }

  // Checks a charge by itself, whatever else was charged.
  Status CheckAlone(const ChargeRequest& charge) const {
    if (charge.mechanism.adjacency() != subject.adjacency) {
      return PrivacyRefused("the mechanism is private under ", std::string(ToText(charge.mechanism.adjacency())),
                            ", the data set of ledger '", database.path(), "' is protected under ",
                            std::string(ToText(subject.adjacency)));
    }
    return CheckAccountable({&charge.mechanism, 1});
  }

  // Checks all charges, except for their cost.
  Status CheckEach(std::span<const ChargeRequest> charges) const {
    for (const ChargeRequest& charge : charges) WISP_RETURN_IF_ERROR(CheckAlone(charge));
    return budget.CheckNoise(charges);
  }

  // Excludes other writers, reads what they wrote, and checks that the ledger may be written. `make` as in Attach.
  Result<Transaction> BeginWriting(bool make) {
    WISP_RETURN_IF_ERROR(Attach(make));
    WISP_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
    WISP_RETURN_IF_ERROR(Refresh());
    WISP_RETURN_IF_ERROR(anchored.CheckGiven(database));
    return transaction;
  }

  // Writes rows, in this order and all or none, after a note that is due; then the anchor. Sets the fields that Append
  // sets.
  Status Write(Transaction& transaction, std::span<LedgerRow> rows) {
    LedgerPosition after = position;
    LedgerResult note;
    if (anchored.IsDue()) {
      note.text = anchored.name();
      WISP_ASSIGN_OR_RETURN(after, Append(database, after, note));
    }
    for (LedgerRow& row : rows) {
      WISP_ASSIGN_OR_RETURN(after, std::visit([&](auto& r) { return Append(database, after, r); }, row));
    }
    // If the commit fails after all, the rows may or may not be there; then Refresh finds them.
    WISP_RETURN_IF_ERROR(transaction.Commit());
    num_written += rows.size();
    if (note.seq > 0) anchored.Take(note);
    for (const LedgerRow& row : rows) {
      WISP_RETURN_IF_ERROR(std::visit([&](const auto& r) { return Take(r); }, row));
    }
    position = after;
    return anchored.Keep(database, random_id, position);
  }
  Status Write(Transaction& transaction, LedgerRow row) { return Write(transaction, std::span(&row, 1)); }

  // Ledger::SetUp, and the row of a plan that may be made now and keeps the limits of `before`.
  Status SetUp(const LedgerSetup& setup);
  Result<LedgerRow> PlanRow(const PlanRequest& request, const LedgerBudget& before) const;

  Result<ChargeId> Charge(const ChargeRequest& charge) {
    WISP_RETURN_IF_ERROR(CheckAlone(charge));
    WISP_ASSIGN_OR_RETURN(Transaction transaction, BeginWriting(/*make=*/true));
    WISP_RETURN_IF_ERROR(budget.CheckNoise({&charge, 1}));
    if (budget.limit()) {
      WISP_RETURN_IF_ERROR(
          budget.CheckLimits("charging " + charge.mechanism.Describe() + " to run '" + OneLine(charge.run) + "'",
                             budget.AfterCharge(charge)));
    }
    LedgerEntry entry{.run = charge.run,
                      .purpose = charge.purpose,
                      .mechanism = charge.mechanism,
                      .noise = charge.noise,
                      .loss_slack = charge.loss_slack,
                      .plan = budget.PlanFor(charge)};
    WISP_ASSIGN_OR_RETURN(entry.record, FindStatedRecord(LedgerBudget::Says::kCharge));
    WISP_RETURN_IF_ERROR(Write(transaction, entry));
    return position.last_id;
  }

  // Adds to a charge's error what the run was charged before, which stays spent.
  Status AddPriorCharges(const Status& error, const std::string& run) {
    const Result<LedgerRows> rows = ReadAll();
    uint64_t steps = 0;
    if (rows.ok()) {
      for (const LedgerEntry& e : rows->entries) steps += e.run == run ? e.mechanism.steps() : 0;
    }
    if (steps == 0) return error;
    return Status(error.code(), error.message() + "; charged to run '" + OneLine(run) +
                                    "' before, and spent: " + Counted(steps, "step"));
  }

  uint64_t num_written = 0;
  std::mutex mutex;
  Database database;
  Anchored anchored;
  std::string random_id;                // name of the file, empty while it does not exist
  std::optional<RecordSpec> opened_as;  // nullopt: the ledger's own definition
  LedgerSubject subject;                // as it was opened: never changed, so read without the mutex
  Status mismatch;                      // why the file that was created meanwhile is the wrong one
  // The state after the rows up to `position`, which never change.
  LedgerPosition position;
  LedgerBudget budget;
  // The charges to the run whose cost was asked for last: a run that is under way asks again and again.
  struct ChargesToRun {
    void Take(const LedgerEntry& e) {
      if (e.run == run) composition.Add(e.mechanism, e.noise, e.loss_slack);
    }
    std::string run;
    Composition composition;
  };
  std::optional<ChargesToRun> asked;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_IMPL_H_
