#include "runtime/train/run_budget.h"

#include <cmath>

#include "runtime/privacy/json.h"

namespace wisp {
namespace {

Result<bool> Fits(const RunBudget& budget, uint64_t steps, double noise_factor) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::ChargeRequest> charges, budget.charges(steps, noise_factor));
  const Status status = budget.ledger.CheckFits(charges, budget.new_limit);
  if (status.ok() || status.code() == StatusCode::kPrivacyRefused) return status.ok();
  return status;
}

}  // namespace

Result<uint64_t> StepsThatFit(const RunBudget& budget) {
  WISP_ASSIGN_OR_RETURN(const bool all, Fits(budget, budget.steps, 1));
  if (all) return budget.steps;
  uint64_t fit = 0, too_many = budget.steps;
  while (too_many - fit > 1) {
    const uint64_t middle = fit + (too_many - fit) / 2;
    WISP_ASSIGN_OR_RETURN(const bool fits, Fits(budget, middle, 1));
    (fits ? fit : too_many) = middle;
  }
  return fit;
}

Status WithWhatFits(const RunBudget& budget, const Status& refusal) {
  const auto with = [&](const std::string& more) { return Status(refusal.code(), refusal.message() + more); };
  const auto steps = StepsThatFit(budget);
  if (!steps.ok()) return refusal;
  if (*steps > 0) return with("; with this noise " + std::to_string(*steps) + " of its " + std::to_string(budget.steps) + " steps would fit");
  // Not one step: how much more noise all of them need, to a percent, upwards.
  constexpr double kMostNoise = 1024;
  double too_little = 1, enough = kMostNoise;
  const auto most = Fits(budget, budget.steps, kMostNoise);
  if (!most.ok() || !*most) return with("; not one of its steps would fit, nor all of them with a thousand times the noise");
  while (enough > 1.01 * too_little) {
    const double middle = std::sqrt(too_little * enough);
    const auto fits = Fits(budget, budget.steps, middle);
    if (!fits.ok()) return refusal;
    (*fits ? enough : too_little) = middle;
  }
  return with("; with this noise not one of its steps would fit, all of them with " + privacy::ShortText(std::ceil(enough * 100) / 100) + " times the noise");
}

}  // namespace wisp
