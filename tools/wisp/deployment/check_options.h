// Checks the options of `wisp plan` and `wisp log` before any work. Errors name the option, the value and what is
// allowed.
#ifndef WISP_TOOLS_WISP_DEPLOYMENT_CHECK_OPTIONS_H_
#define WISP_TOOLS_WISP_DEPLOYMENT_CHECK_OPTIONS_H_

#include "runtime/personalise/forecast.h"
#include "runtime/personalise/deployment.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/deployment/deployment_data.h"

namespace wisp::tools {

Status CheckTimesPerSecond(uint32_t times_per_second);
// Parses --unit, --session-gap and --times-per-second.
Result<data::Units> CheckedUnits(privacy::PrivacyUnit unit, int64_t session_gap, uint32_t times_per_second);

// Checks the options for a new plan, or for a change of the plan that the ledger has.
Status CheckPlan(const PlanArguments& a, const DeploymentRequest& request);
Status CheckChange(const PlanArguments& a, const DeploymentSettings& now, uint32_t runs);

Status CheckPrune(const LogArguments& a, privacy::PrivacyUnit unit);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DEPLOYMENT_CHECK_OPTIONS_H_
