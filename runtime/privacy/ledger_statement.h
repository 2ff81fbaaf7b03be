// The privacy statement of a whole ledger, everything ever charged to its data set, merged; and that of one run of it.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_STATEMENT_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_STATEMENT_H_

#include <string>
#include <vector>

#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/statement.h"

namespace wisp::privacy {

// How a run came to its number of steps.
enum class RunLength {
  kFixed,  // fixed before it began, and all of them taken: its own charges compose by PLD
  // It ended early, or was gone on with, after somebody had seen some of its steps: only the ledger's figure covers it.
  kChosen,
};

// The epsilon that may be stated of a run, and by whom: "PLD", "RDP", "pure" or "Renyi filter".
struct RunEpsilon {
  double epsilon = 0;
  std::string accountant;
};
Result<RunEpsilon> StateRun(const Ledger& ledger, const std::string& run, RunLength length, const Delta& delta,
                            Fineness fineness = Fineness::kFull);

// With how many charges the ledger has, and the receipt of the newest: by these it can be checked later, against this
// ledger and no other. `path` is shown as it is given.
Result<PrivacyStatement> StatementOf(const Ledger& ledger, const std::string& path, const Delta& delta);

// What StatementOf gave while the ledger had so many charges, the newest first
// (Ledger::StatesWith). Empty: it never had so many.
Result<std::vector<PrivacyStatement>> StatementsWith(const Ledger& ledger, const std::string& path, const Delta& delta,
                                                     uint64_t num_charges);

// Of one run: all that was charged to it, used or not, what may be stated of it, and the figure of the data set.
Result<PrivacyStatement> StatementOfRun(const Ledger& ledger, const std::string& path, const Delta& delta,
                                        const std::string& run, RunLength length);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_STATEMENT_H_
