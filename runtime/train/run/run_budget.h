// The part of a run that the ledger's limit has room for: all of it, fewer steps, or more noise.
//
//   const RunBudget budget{*ledger, new_limit, steps_left, [&](uint64_t steps, double factor) {
//       return Charges(steps, factor); }};
//   WISP_ASSIGN_OR_RETURN(const uint64_t steps, StepsThatFit(budget));   // a run that has begun ends after these
//   // for one that has not: what could be asked for instead
//   return AddAffordableSteps(budget, refusal);
//
// Asks Ledger::CheckFits and charges nothing. A query takes about 0.2 s; a dozen are needed if not everything fits.
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
  std::optional<privacy::EpsilonDelta> new_limit;  // replaces the ledger's limit in the check
  uint64_t steps = 0;                              // steps wanted
  // Returns all charges for so many steps, with the noise multiplied by `noise_factor`.
  std::function<Result<std::vector<privacy::ChargeRequest>>(uint64_t steps, double noise_factor)> charges;
  double noise_multiplier = 0;  // of everything that is charged; 0: there are several
};

// The largest number of steps that fit, 0 to `steps`. An error does not answer the question.
Result<uint64_t> StepsThatFit(const RunBudget& budget);

// True if the limit is the reason why the next `budget.steps` steps were refused, because fewer fit. Any other refusal
// (an old copy of the ledger, say) must not end a run as complete.
bool LimitRefuses(const RunBudget& budget);

// Adds to the `refusal` of all steps what would be accepted: fewer steps, or all of them with more noise.
Status AddAffordableSteps(const RunBudget& budget, const Status& refusal);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_RUN_BUDGET_H_
