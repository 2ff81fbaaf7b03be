// Changes the plan for the rest of a deployment: another schedule, another batch, another number of records, or a base
// with another rule for its lists. What was spent stays spent, and the limit stays the limit.
//
// The schedule may change at no cost: steps are of one kind, shared among runs at will. A step with another batch or
// another number of records is another mechanism, chosen after looking at what was released. It goes through the
// ledger's filter (docs/algorithms.md, section 10), which needs more noise than a plan made beforehand.
#ifndef WISP_RUNTIME_PERSONALISE_PLAN_CHANGE_H_
#define WISP_RUNTIME_PERSONALISE_PLAN_CHANGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/personalise/deployment.h"

namespace wisp {

// The settings of the runs to come; a 0 keeps the present setting.
struct PlanChange {
  uint32_t runs = 0;  // required
  uint64_t steps_per_run = 0;
  uint32_t expected_batch = 0, num_records_public = 0;
  double learning_rate = 0;
  uint64_t every = 0;
};

struct ChangedDeployment {
  DeploymentSettings settings;
  std::vector<privacy::ChargeRequest> charges;  // everything to come; steps come first
  DeploymentLeft before;                        // left of the plan until now
  bool is_free = false;                         // the steps are of the same kind as before
  uint64_t newest_row = 0;                      // of the ledger as it was read
};

// Finds the smallest noise, to a thousandth, with which all coming charges fit the ledger's limit. `now` is
// ReadSettings the ledger. kPrivacyRefused: nothing was charged yet, so a plan can still be made; or no noise is
// enough. kInvalidArgument: no runs, more steps of the same mechanism than are left, or settings out of range. If
// steps_per_run is 0, the result's runs may differ from the requested ones, because steps are whole and every run has
// at least one.
Result<ChangedDeployment> ChangeDeployment(const PlannedBase& base, const privacy::Ledger& ledger,
                                           const DeploymentSettings& now, const PlanChange& change);

// Puts the change in force. kPrivacyRefused if it no longer fits the limit.
Status WriteChange(privacy::Ledger& ledger, const ChangedDeployment& changed, const std::string& run);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_PLAN_CHANGE_H_
