// The one-run audit; the audit of a step is in audit_step.cc.
#include "runtime/privacy/audit/audit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace wisp::privacy {
namespace {

Status CheckOutcome(const OneRunOutcome& o) {
  if (o.canaries > 0 && o.canaries <= kMostCanaries && o.guesses <= o.canaries && o.correct <= o.guesses)
    return OkStatus();
  return InvalidArgument(o.correct, " correct of ", o.guesses, " guesses about ", o.canaries,
                         " canaries, allowed are correct <= guesses <= canaries and 1 to ", kMostCanaries, " canaries");
}

// max over i >= 1 of P[v > W >= v - i] / i for W ~ Binomial(r, chance), the mass that delta may move up by i guesses.
double LargestMassPerGuess(const OneRunOutcome& o, Chance chance) {
  double largest = 0, sum = 0;
  for (uint64_t i = 1; i <= o.correct; ++i) {
    sum += std::exp(BinomialLogMass(o.correct - i, o.guesses, chance));
    const double guesses = static_cast<double>(i);
    largest = std::max(largest, std::min(sum, 1.0) / guesses);
    // No sum exceeds 1, so that no later i can do better.
    if (largest * guesses >= 1 - 1e-15) break;
  }
  return largest;
}

double PValue(const OneRunOutcome& o, const AuditClaim& claim) {
  const Chance chance = Chance::OfRandomizedResponse(claim.epsilon);
  const double pure = BinomialUpperTail(o.correct, o.guesses, chance);
  if (claim.delta == 0) return pure;
  return std::min(1.0, pure + 2 * static_cast<double>(o.canaries) * claim.delta * LargestMassPerGuess(o, chance));
}

double LargestRejected(const OneRunOutcome& o, const AuditLevel& level) {
  const double error = 1 - level.confidence;
  const auto rejected = [&](double epsilon) { return PValue(o, {.epsilon = epsilon, .delta = level.delta}) <= error; };
  if (!rejected(0)) return 0;
  double low = 0, high = 1;
  // This loop ends: at epsilon 64 randomised response guesses ten million canaries without an error, and the p-value is
  // 1.
  while (high < 64 && rejected(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1e-9) {
    const double middle = (low + high) / 2;
    (rejected(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

Status CheckAuditLevel(const AuditLevel& level) {
  WISP_RETURN_IF_ERROR(CheckConfidence(level.confidence));
  if (level.delta >= 0 && level.delta < 1) return OkStatus();
  return InvalidArgument("delta is ", level.delta, ", allowed are 0 and values below 1");
}

Status CheckClaimedEpsilon(double epsilon) {
  if (epsilon >= 0 && std::isfinite(epsilon)) return OkStatus();
  return InvalidArgument("the claimed epsilon is ", epsilon,
                         ", allowed are 0 and finite values above: any other cannot be tested");
}

Result<OneRunOutcome> CountGuesses(std::span<const double> scores, std::span<const uint8_t> included,
                                   const GuessCounts& guesses) {
  const size_t m = scores.size();
  if (m != included.size()) {
    return InvalidArgument(m, " scores and ", included.size(), " inclusions; one of each per canary");
  }
  if (m == 0 || m > kMostCanaries || guesses.positive > m || guesses.negative > m - guesses.positive) {
    return InvalidArgument(guesses.positive, " positive and ", guesses.negative, " negative guesses about ", m,
                           " canaries, allowed are as many as canaries in all and 1 to ", kMostCanaries, " canaries");
  }
  for (size_t i = 0; i < m; ++i) {
    if (std::isnan(scores[i])) return InvalidArgument("the score of canary ", i, " is NaN");
    if (included[i] > 1) return InvalidArgument("the inclusion of canary ", i, " is neither 0 nor 1");
  }
  std::vector<uint32_t> order(m);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  OneRunOutcome outcome{.canaries = m, .guesses = guesses.positive + guesses.negative};
  for (size_t i = 0; i < guesses.positive; ++i) outcome.correct += included[order[i]];
  for (size_t i = 0; i < guesses.negative; ++i) outcome.correct += 1 - included[order[m - 1 - i]];
  return outcome;
}

Result<double> OneRunPValue(const OneRunOutcome& outcome, const AuditClaim& claim) {
  WISP_RETURN_IF_ERROR(CheckOutcome(outcome));
  if (!(claim.epsilon >= 0 && std::isfinite(claim.epsilon))) {
    return InvalidArgument("epsilon is ", claim.epsilon, ", allowed are 0 and finite values above");
  }
  if (!(claim.delta >= 0 && claim.delta <= 1)) return InvalidArgument("delta is ", claim.delta, ", allowed are 0 to 1");
  return PValue(outcome, claim);
}

Result<double> OneRunEpsilon(const OneRunOutcome& outcome, const AuditLevel& level) {
  WISP_RETURN_IF_ERROR(CheckOutcome(outcome));
  WISP_RETURN_IF_ERROR(CheckAuditLevel(level));
  return LargestRejected(outcome, level);
}

Result<OneRunBest> OneRunBestEpsilon(std::span<const double> scores, std::span<const uint8_t> included,
                                     std::span<const uint64_t> guess_counts, const AuditLevel& level) {
  WISP_RETURN_IF_ERROR(CheckAuditLevel(level));
  if (guess_counts.empty()) return InvalidArgument("no number of guesses to try");
  const double error = (1 - level.confidence) / static_cast<double>(guess_counts.size());
  OneRunBest best;
  for (uint64_t guesses : guess_counts) {
    WISP_ASSIGN_OR_RETURN(const OneRunOutcome outcome,
                          CountGuesses(scores, included, {.positive = guesses - guesses / 2, .negative = guesses / 2}));
    const double epsilon = LargestRejected(outcome, {.delta = level.delta, .confidence = 1 - error});
    if (best.outcome.canaries == 0 || epsilon > best.epsilon) best = {epsilon, outcome};
  }
  return best;
}

}  // namespace wisp::privacy
