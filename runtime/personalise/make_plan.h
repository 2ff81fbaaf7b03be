// Makes the plan of a deployment. An app may call this at every start: the first call writes the plan, whole or not at
// all, and a later call with the same request finds it. A call that was killed or met a full disk leaves no plan, and
// the next call makes one. Of two calls at once, one writes, and the other answers as if it had come second.
//
//   WISP_ASSIGN_OR_RETURN(const MadePlan made, MakePlan(ledger, PlannedBase(base), {.request = request,
//                                                                                      .run = "plan",
//                                                                                      .output = "mine.wisp"}));
#ifndef WISP_RUNTIME_PERSONALISE_MAKE_PLAN_H_
#define WISP_RUNTIME_PERSONALISE_MAKE_PLAN_H_

#include <optional>
#include <string>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/personalise/forecast.h"
#include "runtime/personalise/deployment.h"

namespace wisp {

struct PlanToMake {
  DeploymentRequest request;
  std::string run;          // name in the ledger
  std::string output = {};  // the file that runs write; empty: unknown
  bool replaces = false;    // another plan that nothing was charged under may be replaced
  bool dry_run = false;     // writes nothing, and ignores an existing plan
};

struct MadePlan {
  Deployment deployment;                   // for an existing plan only the settings
  std::optional<std::string> made_before;  // time in UTC; nullopt: this call made it
};

// The plan that the ledger has after this call. An existing plan is compared only in what was requested: what the
// request leaves to be chosen stays as it was chosen, and so does a plan that was changed since (plan_change.h).
// kPrivacyRefused: the ledger has another plan, and the sentence names each difference; it has charges but no plan; or
// it has no plan, and beside `output` lie files that runs of an earlier ledger trained.
Result<MadePlan> MakePlan(privacy::Ledger& ledger, const PlannedBase& base, const PlanToMake& wanted);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_MAKE_PLAN_H_
