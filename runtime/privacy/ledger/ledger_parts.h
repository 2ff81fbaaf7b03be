// What a ledger's rows mean for its budget: that of all records, or, once they are divided, that of each part.
//
// Records are in one part each. What reads one part only costs those of the other nothing, so the data set's delta at
// an epsilon is the largest of its parts', at one delta for all. What reads all records, everything before the split
// too, counts in each. docs/algorithms.md, section 11, has the proof and its conditions. A limit holds for each part.
//
// What it is not: aware of files. ledger.cc feeds it the rows and asks.
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
  // Rows, in the order of their seq.
  Status Take(const LedgerLimit& limit);
  Status Take(const LedgerSplit& split);
  Status Take(const LedgerPlan& plan);
  Status Take(const LedgerEntry& entry);
  Status Take(const LedgerResult&) { return OkStatus(); }  // paid for by its entry

  const std::optional<LedgerSplit>& split() const { return split_; }
  // What one record is: of the first charge that says so, or before it of the newest plan. Nothing where none does.
  const std::optional<RecordSpec>& record() const { return record_; }
  // What a charge, or a plan, is to say of its records: `asked`, or where nobody asks what was said before.
  // kPrivacyRefused where these differ, or there is neither; a plan may differ from a plan before it that nothing was
  // charged under. `path` names the ledger.
  enum class Says { kCharge, kPlan };
  Result<RecordSpec> RecordToSay(const std::string& path, const std::optional<RecordSpec>& asked, Says who) const;
  std::optional<EpsilonDelta> limit() const { return budgets_.front().limit(); }

  // kInvalidArgument: charges of a part where records are not divided, or charges of different parts.
  Status CheckParts(std::span<const ChargeRequest> charges) const;
  // Of charges that passed CheckParts: kPrivacyRefused where their noise and what is charged do not go together.
  Status CheckNoise(std::span<const ChargeRequest> charges) const;

  // As LedgerBudget's, of the budgets for which the charges, or charges of the part, count.
  uint64_t PlanFor(const ChargeRequest& charge) const;
  bool Covers(std::span<const ChargeRequest> charges) const;
  bool MayPlan(RecordPart part) const;
  bool MayPlanRun(RecordPart part) const;
  LedgerParts After(std::span<const ChargeRequest> charges) const;
  LedgerParts AfterCharge(const ChargeRequest& charge) const;
  // Whether `after`, this with charges of `part`, passes a limit: then kPrivacyRefused as LedgerBudget::Refusal has it.
  // `instead`: as LedgerBudget::FindBreach.
  Status CheckLimits(const std::string& who, const LedgerParts& after, RecordPart part,
                     const std::optional<EpsilonDelta>& instead = {}) const;
  // Whether what counts for `part` passes a limit.
  Result<bool> IsBeyond(RecordPart part, const std::optional<EpsilonDelta>& instead = {}) const;

  // Those of the part that has the largest epsilon; `parts` has each, where records are divided.
  Result<LedgerFigures> Figures(const Delta& delta) const;
  // As LedgerBudget's, without `parts`.
  Result<LedgerFigures> Stated(const Delta& delta) const;

 private:
  static constexpr RecordPart kParts[] = {RecordPart::kTraining, RecordPart::kJudging};
  // Calls `use` with each budget for which `part` counts.
  template <typename Budgets, typename Use>
  static void ForEach(Budgets& budgets, RecordPart part, const Use& use);
  std::string Name(size_t budget) const;
  Status TakeRecord(const std::optional<RecordSpec>& record, bool is_charge);
  static LedgerFigures Largest(std::span<const LedgerFigures> each);

  std::vector<LedgerBudget> budgets_ = std::vector<LedgerBudget>(1);  // then one of each of kParts
  std::optional<LedgerSplit> split_;
  std::optional<RecordSpec> record_;
  bool record_is_charged_ = false;  // a charge says so, not a plan alone
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_PARTS_H_
