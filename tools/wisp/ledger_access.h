// How commands open a ledger and set its limit. They get the ledger that belongs to the data, and no limit changes
// unnoticed.
//
//   WISP_ASSIGN_OR_RETURN(LedgerToTrain ledger, OpenRunLedger(a.ledger, a.anchor, record, unit_chosen));
//   WISP_ASSIGN_OR_RETURN(job.new_limit, NewLimit(a.budget, goal.delta));
#ifndef WISP_TOOLS_WISP_LEDGER_ACCESS_H_
#define WISP_TOOLS_WISP_LEDGER_ACCESS_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/fine_tune.h"
#include "runtime/train/run/job.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/recipe/recipe.h"

namespace wisp::tools {

// Warns on standard error if the limit is now higher than `before`. Says nothing if it cannot be read.
void WarnIfRaised(const privacy::Ledger& ledger, const std::optional<privacy::EpsilonDelta>& before);

// Returns the total of all charges, for people: "epsilon 7.9 of 8 at delta 0.001". Empty without a guarantee.
std::string SpentInWords(const privacy::Ledger& ledger, double delta);

// Returns the total of all charges as JSON: {"epsilon", "delta", "limit", "limit_is_passed"}; null without a guarantee.
// `limit` is the epsilon that the ledger enforces at that delta, or null. A limit that was set after a charge may
// already be passed; it then promises nothing.
nlohmann::ordered_json SpentAsJson(const privacy::Ledger& ledger, double delta);

// Says the total of all charges on standard error if the ledger has no limit and the run was not its first.
void ReportIfUnlimited(const privacy::Ledger& ledger, double delta);

// Says on standard error if a run that resumed from a checkpoint cost more than its target, and how to prevent that.
void WarnIfAboveTarget(const JobResult& run, const PrivacyGoal& goal);

// Returns the limit that --budget asks for, if it is given. The command that spends sets it.
Result<std::optional<privacy::EpsilonDelta>> NewLimit(const std::optional<double>& budget, double delta);

// Opens the anchor of --anchor; null without it. The anchor must be another file than the ledger.
Result<std::shared_ptr<privacy::LedgerAnchor>> OpenAnchor(const AnchorArguments& a, const std::string& ledger);

// Opens --ledger and --anchor for a run that trains on records of this kind. `unit_chosen`: a recipe or an option named
// the unit.
Result<LedgerToTrain> OpenRunLedger(const std::string& path, const AnchorArguments& a,
                                    const privacy::RecordSpec& record, bool unit_chosen);

// Returns the source from which the program reads those events.
privacy::RecordSpec::Source GetSource(const DataArguments& data);
// Returns what one record is in a run of that recipe: of texts, or of the events of `data`.
Result<privacy::RecordSpec> MakeRecordSpec(const RunSpec& recipe, const DataArguments& data);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_LEDGER_ACCESS_H_
