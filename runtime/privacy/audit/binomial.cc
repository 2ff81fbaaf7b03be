// Built for speed: sums of tails within searches.
#include "runtime/privacy/audit/binomial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {
namespace {

// log n! - log(sqrt(2 pi n) (n / e)^n). Up to 15 from the factorial, exact in a double; above, Stirling's series, whose
// first term left out is below 3e-15 of the logarithm.
double StirlingError(double n) {
  if (n <= 15) {
    double factorial = 1;
    for (double i = 2; i <= n; ++i) factorial *= i;
    return n == 0 ? 0 : std::log(factorial) - (n + 0.5) * std::log(n) + n - 0.5 * std::log(2 * std::numbers::pi);
  }
  const double n2 = n * n;
  return (1.0 / 12 -
          (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - (1.0 / 1188 - 691.0 / 360360 / n2) / n2) / n2) / n2) / n2) /
         n;
}

// x log(x / mean) + mean - x without cancellation near x = mean: with v = (x - mean) / (x + mean) the logarithm is
// 2 artanh(v), and the first term of its series joins the rest to (x - mean) v.
double Deviance(double x, double mean) {
  const double v = (x - mean) / (x + mean);
  if (std::abs(v) > 0.1) return x * std::log(x / mean) + mean - x;
  double sum = (x - mean) * v, power = 2 * x * v;
  for (int j = 3; j < 40; j += 2) {
    power *= v * v;
    const double next = sum + power / j;
    if (next == sum) break;
    sum = next;
  }
  return sum;
}

// Solves tail(x) = error for a tail that rises with x, between low and high; [low, high] brackets the answer on return.
template <class Tail>
Interval Bisect(Interval bracket, double error, Tail&& tail) {
  for (int i = 0; i < 1100 && bracket.high - bracket.low > 1e-13 * bracket.high; ++i) {
    const double middle = bracket.low + (bracket.high - bracket.low) / 2;
    if (middle <= bracket.low || middle >= bracket.high) break;
    (tail(middle) <= error ? bracket.low : bracket.high) = middle;
  }
  return bracket;
}

}  // namespace

Chance Chance::OfRandomizedResponse(double epsilon) {
  return {1 / (1 + std::exp(-epsilon)), 1 / (1 + std::exp(epsilon))};
}

double BinomialLogMass(uint64_t k, uint64_t n, Chance chance) {
  const double hits = static_cast<double>(k), trials = static_cast<double>(n), misses = static_cast<double>(n - k);
  if (chance.success <= 0) return k == 0 ? 0 : -kInfinity;
  if (chance.failure <= 0) return k == n ? 0 : -kInfinity;
  if (k == 0) return trials * (chance.failure > 0.5 ? std::log1p(-chance.success) : std::log(chance.failure));
  if (k == n) return trials * (chance.success > 0.5 ? std::log1p(-chance.failure) : std::log(chance.success));
  const double errors = StirlingError(trials) - StirlingError(hits) - StirlingError(misses);
  const double deviance = Deviance(hits, trials * chance.success) + Deviance(misses, trials * chance.failure);
  return errors - deviance + 0.5 * std::log(trials / (2 * std::numbers::pi * hits * misses));
}

double BinomialUpperTail(uint64_t k, uint64_t n, Chance chance) {
  if (k == 0) return 1;
  if (k > n) return 0;
  if (chance.success <= 0) return 0;
  if (chance.failure <= 0) return 1;
  // Sums from k away from the mean, where the terms fall; the other side is one minus that sum.
  const bool above = static_cast<double>(k) > static_cast<double>(n) * chance.success;
  const double odds = chance.success / chance.failure;
  double sum = 0, term = std::exp(BinomialLogMass(above ? k : k - 1, n, chance));
  for (uint64_t i = above ? k : k - 1; term > sum * 1e-18; above ? ++i : --i) {
    sum += term;
    if (i == (above ? n : 0)) break;
    const double hits = static_cast<double>(i), misses = static_cast<double>(n - i);
    term *= above ? misses / (hits + 1) * odds : hits / (misses + 1) / odds;
  }
  return std::min(1.0, above ? sum : 1 - sum);
}

double ClopperPearsonLow(Count count, double error) {
  if (count.hits == 0) return 0;
  return Bisect({0, 1}, error, [&](double p) { return BinomialUpperTail(count.hits, count.trials, Chance::Of(p)); })
      .low;
}

double ClopperPearsonHigh(Count count, double error) {
  if (count.hits == count.trials) return 1;
  // P[W <= hits] falls with p, so its negative rises.
  const auto tail = [&](double p) { return -BinomialUpperTail(count.trials - count.hits, count.trials, {1 - p, p}); };
  return Bisect({0, 1}, -error, tail).high;
}

Status CheckConfidence(double confidence) {
  if (confidence > 0 && confidence < 1) return OkStatus();
  return InvalidArgument("confidence is ", confidence, ", allowed are values above 0 and below 1");
}

Result<Proportion> Proportion::Of(Count count, double confidence) {
  WISP_RETURN_IF_ERROR(CheckConfidence(confidence));
  if (count.trials == 0) return InvalidArgument("a proportion of no trials");
  if (count.hits > count.trials) {
    return InvalidArgument(count.hits, " hits in ", count.trials, " trials");
  }
  const double error = (1 - confidence) / 2;
  return Proportion{count, {ClopperPearsonLow(count, error), ClopperPearsonHigh(count, error)}};
}

}  // namespace wisp::privacy
