#include "runtime/train/run/run_budget.h"

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
  return budget.ledger.StepsThatFit(
      budget.steps, [&](uint64_t steps) { return budget.charges(steps, 1); }, budget.new_limit);
}

bool LimitRefuses(const RunBudget& budget) {
  const auto fit = StepsThatFit(budget);
  return fit.ok() && *fit < budget.steps;
}

Status AddAffordableSteps(const RunBudget& budget, const Status& refusal) {
  const auto with = [&](const std::string& more) { return Status(refusal.code(), refusal.message() + more); };
  const auto steps = StepsThatFit(budget);
  if (!steps.ok()) return refusal;
  const std::string these =
      "; with this noise " +
      (*steps == 0 ? "not one of its" : std::to_string(*steps) + " of its " + std::to_string(budget.steps)) +
      " steps would fit";
  // The factor of noise with which all steps fit, to one percent, rounded up.
  constexpr double kMostNoise = 1024;
  double too_little = 1, enough = kMostNoise;
  const auto most = Fits(budget, budget.steps, kMostNoise);
  if (!most.ok() || !*most) return with(these + ", nor all of them with a thousand times the noise");
  while (enough > 1.01 * too_little) {
    const double middle = std::sqrt(too_little * enough);
    const auto fits = Fits(budget, budget.steps, middle);
    if (!fits.ok()) return refusal;
    (*fits ? enough : too_little) = middle;
  }
  const double factor = std::ceil(enough * 100) / 100;
  std::string more = these + ", all of them with " + privacy::ShortText(factor) + " times the noise";
  if (budget.noise_multiplier > 0)
    more += ", a noise multiplier of " + privacy::EpsilonText(factor * budget.noise_multiplier);
  return with(more);
}

}  // namespace wisp
