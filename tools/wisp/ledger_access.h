// How commands come to a ledger and its limit: the right one for the data, and no limit changed unnoticed.
//
//   WISP_ASSIGN_OR_RETURN(const std::string dataset, LedgerDataset(a.ledger, a.dataset, FileName(a.data.path)));
//   WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, privacy::Ledger::Open(a.ledger, {.dataset = dataset, .unit = unit}));
//   WISP_RETURN_IF_ERROR(SetBudget(ledger, limit));
#ifndef WISP_TOOLS_WISP_LEDGER_ACCESS_H_
#define WISP_TOOLS_WISP_LEDGER_ACCESS_H_

#include <optional>
#include <string>

#include "runtime/privacy/ledger.h"

namespace wisp::tools {

// The name of the data set that the ledger at `path` is of. Of one that exists its own: kPrivacyRefused when `given`, what
// --dataset says, is another. Of one that does not: `given`, or else `otherwise`. Makes no ledger.
Result<std::string> LedgerDataset(const std::string& path, const std::string& given, const std::string& otherwise);

// What --budget may be: kPrivacyRefused below what is spent already, for nothing could be charged any more.
Status CheckBudget(const privacy::Ledger& ledger, const privacy::EpsilonDelta& limit);

// Says on standard error if the limit is now higher than it was `before`.
Status SayIfRaised(const privacy::Ledger& ledger, const std::optional<privacy::EpsilonDelta>& before);

// All of --budget: checks, writes, says.
Status SetBudget(privacy::Ledger& ledger, const privacy::EpsilonDelta& limit);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_LEDGER_ACCESS_H_
