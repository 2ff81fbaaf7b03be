// What the options of `wisp plan` and `wisp log` must be, before any work: errors name the option, the value and what
// is allowed.
#ifndef WISP_TOOLS_WISP_LIFE_CHECK_OPTIONS_H_
#define WISP_TOOLS_WISP_LIFE_CHECK_OPTIONS_H_

#include "runtime/personalise/forecast.h"
#include "runtime/personalise/lifetime.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/life/life_data.h"

namespace wisp::tools {

// Units of --unit, --session-gap and --times-per-second.
Result<data::Units> CheckedUnits(privacy::PrivacyUnit unit, int64_t session_gap, uint32_t times_per_second);

// Of a new plan, and of one that changes `now`, which the ledger has.
Status CheckPlan(const PlanArguments& a, const LifeRequest& request);
Status CheckChange(const PlanArguments& a, const LifetimeSettings& now, uint32_t runs);

Status CheckPrune(const LogArguments& a, privacy::PrivacyUnit unit);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_LIFE_CHECK_OPTIONS_H_
