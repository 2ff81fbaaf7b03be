// How commands come to a ledger and its limit: the right one for the data, and no limit changed unnoticed.
//
//   WISP_ASSIGN_OR_RETURN(LedgerToTrain ledger, LedgerOf(a.ledger, a.anchor, record, unit_chosen));
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

// Says on standard error if the limit is now higher than it was `before`; nothing where it cannot be read.
void SayIfRaised(const privacy::Ledger& ledger, const std::optional<privacy::EpsilonDelta>& before);

// What all charges together come to, for people: "epsilon 7.9 of 8 at delta 0.001". Empty without a guarantee.
std::string SpentInWords(const privacy::Ledger& ledger, double delta);

// The same for machines: {"epsilon", "delta", "limit", "limit_is_passed"}; null without a guarantee. `limit`: the
// epsilon that the ledger enforces at that delta, or null. One that was set after a charge may be passed: it promises
// nothing.
nlohmann::ordered_json SpentAsJson(const privacy::Ledger& ledger, double delta);

// Says on standard error what all charges together come to, where a run was not the first on a ledger without a limit.
void SayIfUnlimited(const privacy::Ledger& ledger, double delta);

// Says on standard error if a run that went on from a checkpoint cost more than its target, and what keeps one from it.
void SayIfAboveTarget(const JobResult& run, const PrivacyGoal& goal);

// What --budget asks for, if it was given: a limit to be set by what spends.
Result<std::optional<privacy::EpsilonDelta>> NewLimit(const std::optional<double>& budget, double delta);

// What --anchor names, nothing without it; it must be another file than the ledger.
Result<std::shared_ptr<privacy::LedgerAnchor>> AnchorOf(const AnchorArguments& a, const std::string& ledger);

// What --ledger and --anchor name, for a run that trains on such records. `unit_chosen`: by a recipe or an
// option.
Result<LedgerToTrain> LedgerOf(const std::string& path, const AnchorArguments& a, const privacy::RecordSpec& record,
                               bool unit_chosen);

// Where the program reads those events.
privacy::RecordSpec::Source SourceOf(const DataArguments& data);
// What one record is of a run of that recipe: of texts, or of the events of `data`.
Result<privacy::RecordSpec> RecordOf(const Recipe& recipe, const DataArguments& data);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_LEDGER_ACCESS_H_
