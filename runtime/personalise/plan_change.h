// Another plan for what is left of a life: other times, another batch, another number of records, a base that says
// otherwise of its lists. What was spent stays spent, and the limit stays the limit.
//
// How often it is trained may change at no cost: steps are one kind, shared among nights at will. A step with another
// batch or another number of records is another mechanism, chosen after looking at what was released. It goes through
// the ledger's filter (docs/algorithms.md, section 10), which asks for more noise than a plan made beforehand.
#ifndef WISP_RUNTIME_PERSONALISE_PLAN_CHANGE_H_
#define WISP_RUNTIME_PERSONALISE_PLAN_CHANGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/personalise/lifetime.h"

namespace wisp {

// What is to come; 0: as it is.
struct PlanChange {
  uint32_t runs = 0;  // required
  uint64_t steps_per_run = 0;
  uint32_t expected_batch = 0, num_records_public = 0;
  double learning_rate = 0;
};

struct ChangedLife {
  LifetimeSettings settings;
  std::vector<privacy::ChargeRequest> training;  // all that is to come
  LifetimeLeft before;                           // of the plan until now
  bool is_free = false;                          // the steps are those of the plan until now
  uint64_t newest_row = 0;                       // of the ledger that it follows from
};

// Finds the smallest noise, to a thousandth, with which all that is to come fits the ledger's limit. `now`: SettingsOf
// the ledger. kPrivacyRefused: nothing was charged yet, so a plan can still be made; or no noise is enough.
// kInvalidArgument: no runs, more steps than are left of the same mechanism, or settings out of range. Where
// steps_per_run is 0 the runs of the result may differ from those asked for: steps are whole, and every run has one at
// least.
Result<ChangedLife> ChangeLife(const PlannedBase& base, const privacy::Ledger& ledger, const LifetimeSettings& now,
                               const PlanChange& change);

// Puts it in force. kPrivacyRefused where it does not fit the limit any more.
Status WriteChange(privacy::Ledger& ledger, const ChangedLife& changed, const std::string& run);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_PLAN_CHANGE_H_
