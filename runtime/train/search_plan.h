// The cost of a private search among values of a run's options, and the noise with which every candidate costs as much
// (docs/algorithms.md, section 16). The search is charged once, before its first run.
//
//   WISP_ASSIGN_OR_RETURN(const SearchPlan plan, PlanSearch({.architecture = architecture, .goal = goal,
//       .candidates = candidates, .expected_runs = 6, .run = "2026-11-28"}));
//   WISP_ASSIGN_OR_RETURN(const privacy::ChargeId id, ChargeSearch(plan, limit, ledger));
//   ... run a candidate with plan.noise[i], which charges a ledger of its own ...
//   WISP_RETURN_IF_ERROR(CheckRunIsPaid(plan, ledger_of_the_run));
//
// The charge is that of the first candidate. Each other one gets the least noise with which its run has no larger Renyi
// divergence at any order that the charge uses.
#ifndef WISP_RUNTIME_TRAIN_SEARCH_PLAN_H_
#define WISP_RUNTIME_TRAIN_SEARCH_PLAN_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/budget.h"
#include "runtime/train/options.h"

namespace wisp {

inline constexpr char kSearchPurpose[] = "search";
// Fewer expected runs would often end without any.
inline constexpr uint32_t kFewestExpectedRuns = 4, kMostExpectedRuns = 10'000;

struct SearchRequest {
  const Architecture& architecture;
  // The target is that of the whole search. A noise multiplier is that of the first candidate.
  const PrivacyGoal& goal;
  std::span<const TrainingOptions> candidates;  // at least one; their steps are set, their noise is not
  uint32_t expected_runs = 0;
  std::string run;
};

struct SearchPlan {
  privacy::ChargeRequest charge;  // of the whole search
  std::vector<double> noise;      // the noise multiplier of each candidate's steps
  double score_noise = 0;         // the noise multiplier of a run's score
};

// kPrivacyRefused for candidates whose steps are not one Poisson-subsampled Gaussian with constant noise, and as in
// Budget::Calibrate. kInvalidArgument as in Trainer::Check, so that no run is refused after the charge.
Result<SearchPlan> PlanSearch(const SearchRequest& request);

// Sets the limit, if one is given, and charges the search. kPrivacyRefused, with nothing written, if it does not fit.
Result<privacy::ChargeId> ChargeSearch(const SearchPlan& plan, const std::optional<privacy::EpsilonDelta>& new_limit,
                                       privacy::Ledger& ledger);

// Checks that what a run charged to a ledger of its own, and its score, are no more than one run of the search that was
// charged. kPrivacyRefused otherwise: nothing of the search may be released then.
Status CheckRunIsPaid(const SearchPlan& plan, const privacy::Ledger& of_run);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_SEARCH_PLAN_H_
