// Privacy statements of a whole ledger, merged over everything ever charged to its data set, and of one of its runs.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_STATEMENT_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_STATEMENT_H_

#include <string>
#include <vector>

#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/statement.h"

namespace wisp::privacy {

// How the number of steps of a run was determined.
enum class RunLength {
  kFixed,  // fixed before it began, and all of them taken: its own charges compose by PLD
  // It ended early, or was resumed, after somebody had seen some of its steps: only the ledger's figure covers it.
  kChosen,
};

// The epsilon that may be stated for a run, and who proved it: "PLD", "RDP", "pure" or "Renyi filter".
struct RunEpsilon {
  double epsilon = 0;
  std::string accountant;
};
Result<RunEpsilon> StateRun(const Ledger& ledger, const std::string& run, RunLength length, const Delta& delta,
                            Fineness fineness = Fineness::kFull);

// The statement of a ledger. It contains the number of charges and the newest receipt, by which it can later be checked
// against this ledger and no other. `path` is shown as given.
Result<PrivacyStatement> MakeStatement(const Ledger& ledger, const std::string& path, const Delta& delta);

// The statements that MakeStatement returned while the ledger had so many charges, the newest first
// (Ledger::StatesWith). Empty if it never had so many.
Result<std::vector<PrivacyStatement>> StatementsWith(const Ledger& ledger, const std::string& path, const Delta& delta,
                                                     uint64_t num_charges);

// The statement of one run: everything charged to it, used or not, what may be stated of it, and the data set's figure.
Result<PrivacyStatement> MakeRunStatement(const Ledger& ledger, const std::string& path, const Delta& delta,
                                          const std::string& run, RunLength length);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_STATEMENT_H_
