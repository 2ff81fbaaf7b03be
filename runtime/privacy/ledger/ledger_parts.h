// Interprets a ledger's rows for its budget: that of all records or, once they are divided, that of each part.
//
// Each record is in one part. A mechanism that reads only one part costs the other nothing, so the data set's delta at
// an epsilon is the largest of its parts', at one delta for all. A mechanism that reads all records, and everything
// before the split, counts in each. docs/algorithms.md, section 11, has the proof and its conditions. A limit holds for
// each part.
//
// It knows nothing of files: ledger.cc passes the rows.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_PARTS_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_PARTS_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger_budget.h"

namespace wisp::privacy {

class LedgerParts {
 public:
  // Takes the rows in the order of their seq.
  Status Take(const LedgerLimit& limit);
  Status Take(const LedgerSplit& split);
  Status Take(const LedgerPlan& plan);
  Status Take(const LedgerEntry& entry);
  Status Take(const LedgerResult&) { return OkStatus(); }  // its entry has paid for it

  const std::optional<LedgerSplit>& split() const { return split_; }
  // The definition of one record, from the first charge that has one or, before it, the newest plan; nullopt if none
  // does.
  const std::optional<RecordSpec>& record() const { return record_; }
  // The definition that a charge, or a plan, must state: `asked` or, if that is empty, the earlier one. kPrivacyRefused
  // if these differ, or if there is neither; a plan may differ from an earlier plan that nothing was charged under.
  // `path` names the ledger.
  enum class Says { kCharge, kPlan };
  Result<RecordSpec> FindStatedRecord(const std::string& path, const std::optional<RecordSpec>& asked, Says who) const;
  std::optional<EpsilonDelta> limit() const { return budgets_.front().limit(); }

  // kInvalidArgument: charges of a part although records are not divided, or charges of different parts.
  Status CheckParts(std::span<const ChargeRequest> charges) const;
  // For charges that passed CheckParts: kPrivacyRefused if their noise and that of earlier charges do not go together.
  Status CheckNoise(std::span<const ChargeRequest> charges) const;

  // These call LedgerBudget's functions of the same names, on each budget in which the charges or the part count.
  uint64_t PlanFor(const ChargeRequest& charge) const;
  bool Covers(std::span<const ChargeRequest> charges) const;
  bool MayPlan(RecordPart part) const;
  bool MayPlanRun(RecordPart part) const;
  LedgerParts After(std::span<const ChargeRequest> charges) const;
  LedgerParts AfterCharge(const ChargeRequest& charge) const;
  // Checks `after`, which is this object with new charges of `part`. Returns LedgerBudget::Refusal (kPrivacyRefused) if
  // it exceeds a limit. `instead` is as in LedgerBudget::FindBreach.
  Status CheckLimits(const std::string& who, const LedgerParts& after, RecordPart part,
                     const std::optional<EpsilonDelta>& instead = {}) const;
  // True if what counts for `part` passes a limit.
  Result<bool> IsBeyond(RecordPart part, const std::optional<EpsilonDelta>& instead = {}) const;

  // The figures of the part that has the largest epsilon; `parts` has each part's, if records are divided.
  Result<LedgerFigures> Figures(const Delta& delta) const;
  // LedgerBudget::Stated, without `parts`.
  Result<LedgerFigures> Stated(const Delta& delta) const;

 private:
  static constexpr RecordPart kParts[] = {RecordPart::kTraining, RecordPart::kEvaluation};
  // Calls `use` with each budget for which `part` counts.
  template <typename Budgets, typename Use>
  static void ForEach(Budgets& budgets, RecordPart part, const Use& use);
  std::string Name(size_t budget) const;
  Status TakeRecord(const std::optional<RecordSpec>& record, bool is_charge);
  static LedgerFigures Largest(std::span<const LedgerFigures> each);

  std::vector<LedgerBudget> budgets_ = std::vector<LedgerBudget>(1);  // after a split, one per part in kParts
  std::optional<LedgerSplit> split_;
  std::optional<RecordSpec> record_;
  bool record_is_charged_ = false;  // a charge states the record, not only a plan
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_PARTS_H_
