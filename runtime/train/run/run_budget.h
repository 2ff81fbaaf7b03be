// What of a run the ledger's limit has room for: all of it, fewer steps, or more noise.
//
//   const RunBudget budget{*ledger, new_limit, steps_left, [&](uint64_t steps, double factor) {
//       return Charges(steps, factor); }};
//   WISP_ASSIGN_OR_RETURN(const uint64_t steps, StepsThatFit(budget));   // of a run that is begun: it ends after these
//   // of one that is not: what could be asked for instead
//   return WithWhatFits(budget, refusal);
//
// Asks Ledger::CheckFits and charges nothing; about 0.2 s a question, a dozen of them where not everything fits.
#ifndef WISP_RUNTIME_TRAIN_RUN_RUN_BUDGET_H_
#define WISP_RUNTIME_TRAIN_RUN_RUN_BUDGET_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp {

struct RunBudget {
  const privacy::Ledger& ledger;
  std::optional<privacy::EpsilonDelta> new_limit;  // held against instead of the ledger's
  uint64_t steps = 0;                              // wanted
  // Everything that is to be charged for so many steps, with the noise multiplied by `noise_factor`.
  std::function<Result<std::vector<privacy::ChargeRequest>>(uint64_t steps, double noise_factor)> charges;
  double noise_multiplier = 0;  // of all that is charged; 0: there is more than one
};

// The most steps that fit, 0 to `steps`. An error is no answer about the limit.
Result<uint64_t> StepsThatFit(const RunBudget& budget);

// Whether the limit is why the next `budget.steps` steps were refused: then fewer fit. Any other refusal (an old copy
// of the ledger, say) is no end of a run.
bool LimitRefuses(const RunBudget& budget);

// `refusal`, of all steps, with what would not be refused: so many steps, and all of them with so many times
// the noise.
Status WithWhatFits(const RunBudget& budget, const Status& refusal);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_RUN_BUDGET_H_
