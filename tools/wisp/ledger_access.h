// How commands come to a ledger and its limit: the right one for the data, and no limit changed unnoticed.
//
//   WISP_ASSIGN_OR_RETURN(const std::string dataset, LedgerDataset(a.ledger, a.dataset, FileName(a.data.path)));
//   WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, OpenLedgerToTrain({.path = a.ledger, .dataset = dataset, ...}));
#ifndef WISP_TOOLS_WISP_LEDGER_ACCESS_H_
#define WISP_TOOLS_WISP_LEDGER_ACCESS_H_

#include <optional>
#include <string>

#include "runtime/privacy/ledger.h"
#include "runtime/train/job.h"

namespace wisp::tools {

// The name of the data set that the ledger at `path` is of. Of one that exists its own: kPrivacyRefused when `given`, what
// --dataset says, is another. Of one that does not: `given`, or else `otherwise`. Makes no ledger.
Result<std::string> LedgerDataset(const std::string& path, const std::string& given, const std::string& otherwise);

// Says on standard error if the limit is now higher than it was `before`.
Status SayIfRaised(const privacy::Ledger& ledger, const std::optional<privacy::EpsilonDelta>& before);

// All of --budget: checks, writes, says.
Status SetBudget(privacy::Ledger& ledger, const privacy::EpsilonDelta& limit);

struct LedgerToTrain {
  std::string path, dataset;
  privacy::PrivacyUnit unit;
  PrivacyGoal goal;
  uint32_t num_records_public = 0; // 0: not declared, which the run refuses
  std::optional<double> budget;   // --budget, at the goal's delta
};
// Opens or makes the ledger of a private run and sets its budget. kPrivacyRefused, with no limit changed, without a path, for a
// goal that no run may have, and for a budget below what is spent.
Result<privacy::Ledger> OpenLedgerToTrain(const LedgerToTrain& l);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_LEDGER_ACCESS_H_
