// How commands come to a ledger and its limit: the right one for the data, and no limit changed unnoticed.
//
//   WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, OpenLedgerToTrain({.path = a.ledger, .dataset = dataset, ...}));
//   WISP_ASSIGN_OR_RETURN(job.new_limit, NewLimit(a.budget, goal.delta));
#ifndef WISP_TOOLS_WISP_LEDGER_ACCESS_H_
#define WISP_TOOLS_WISP_LEDGER_ACCESS_H_

#include <memory>
#include <optional>
#include <string>

#include "runtime/model/model_file.h"
#include "runtime/privacy/ledger.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {

// Says on standard error if the limit is now higher than it was `before`; nothing where it cannot be read.
void SayIfRaised(const privacy::Ledger& ledger, const std::optional<privacy::EpsilonDelta>& before);

// What all charges together come to, for people: "epsilon 7.9 of 8 at delta 0.001". Empty without a guarantee.
std::string SpentInWords(const privacy::Ledger& ledger, double delta);

// What --budget asks for, if it was given: a limit to be set by what spends.
Result<std::optional<privacy::EpsilonDelta>> NewLimit(const std::optional<double>& budget, double delta);

// What --anchor names, nothing without it; it must be another file than the ledger.
Result<std::shared_ptr<privacy::LedgerAnchor>> AnchorOf(const AnchorArguments& a, const std::string& ledger);

struct LedgerToTrain {
  std::string path, dataset;  // dataset: --dataset, or the file's name
  AnchorArguments anchor;
  privacy::PrivacyUnit unit;
  bool unit_chosen;                 // by a recipe or an option
  const ModelFile* base = nullptr;  // what the run begins with
  std::string base_path;
  bool other_data = false;  // StartOptions
};
// The ledger of a private run; one that is not there is made by its first charge. kPrivacyRefused, with nothing
// written: no path, an old copy that its anchor gives away, a ledger of another data set, a base that the run may not
// begin with (CheckStart).
Result<privacy::Ledger> OpenLedgerToTrain(const LedgerToTrain& l);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_LEDGER_ACCESS_H_
