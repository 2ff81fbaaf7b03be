// Making the plan of a life. It may be asked for as often as an app starts: the first call writes the plan, whole or
// not at all, and a later one with the same wishes finds it. What a kill or a full disk left of an earlier call is no
// plan, and the next call makes one. Of two calls at once, one writes, and the other answers as if it had come second.
//
//   WISP_ASSIGN_OR_RETURN(const MadePlan made, MakePlan(ledger, PlannedBase(base), {.request = request,
////                                                                                     .run = "plan",
//                                                                                     .output = "mine.wisp"}));
#ifndef WISP_RUNTIME_PERSONALISE_MAKE_PLAN_H_
#define WISP_RUNTIME_PERSONALISE_MAKE_PLAN_H_

#include <optional>
#include <string>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/personalise/forecast.h"
#include "runtime/personalise/lifetime.h"

namespace wisp {

struct PlanToMake {
  LifeRequest request;
  std::string run;          // names it in the ledger
  std::string output = {};  // what the nights write; empty: not said
  bool replaces = false;    // another plan that nothing was charged under may be replaced
  bool dry_run = false;     // writes nothing, and looks at no plan that is there
};

struct MadePlan {
  Lifetime life;                           // of a plan that was there the settings alone
  std::optional<std::string> made_before;  // when, in UTC; none: this call made it
};

// The plan that the ledger has after this call. Of one that is there, only what was asked for is compared: what the
// request leaves to be chosen stays as it was chosen, and so does a plan that was changed since (plan_change.h).
// kPrivacyRefused: the ledger has another plan, and the sentence names each difference; it has none but has charges; or
// the ledger has none, and beside `output` lies what nights of an earlier ledger trained.
Result<MadePlan> MakePlan(privacy::Ledger& ledger, const PlannedBase& base, const PlanToMake& wanted);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_MAKE_PLAN_H_
