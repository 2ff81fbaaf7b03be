// Binomial tails, and the exact intervals for a proportion that follow from them.
//
//   // rate.interval.high = 0.0087
//   WISP_ASSIGN_OR_RETURN(Proportion rate, Proportion::Of({.hits = 3, .trials = 1000}, 0.95));
//
// Accurate to about 1e-11 relative for up to 1e9 trials: the mass function by its saddle point (Loader 2000, "Fast and
// Accurate Computation of Binomial Probabilities"), not by differences of large logarithms. Pure functions, any thread.
#ifndef WISP_RUNTIME_PRIVACY_AUDIT_BINOMIAL_H_
#define WISP_RUNTIME_PRIVACY_AUDIT_BINOMIAL_H_

#include <cstdint>

#include "runtime/core/status.h"

namespace wisp::privacy {

// The probabilities of success and failure. Both are stored: near 1, one cannot be computed from the other.
struct Chance {
  static Chance Of(double success) { return {success, 1 - success}; }
  // exp(epsilon) / (1 + exp(epsilon)): the accuracy of epsilon-DP randomised response.
  static Chance OfRandomizedResponse(double epsilon);
  double success = 0;
  double failure = 1;
};

// log P[W = k] for W ~ Binomial(n, chance); minus infinity if P is 0. k <= n.
double BinomialLogMass(uint64_t k, uint64_t n, Chance chance);
// P[W >= k]; 1 for k = 0, 0 for k > n.
double BinomialUpperTail(uint64_t k, uint64_t n, Chance chance);

struct Interval {
  double low = 0;
  double high = 1;
};

struct Count {
  uint64_t hits = 0;
  uint64_t trials = 0;
};

// One-sided bounds of Clopper and Pearson (1934) on the probability behind a count: each is on the wrong side of the
// truth with probability at most `error`, for every truth and every number of trials. The low end solves P[W >= hits] =
// error (0 without hits), the high end P[W <= hits] = error (1 if all are hits); bisection returns the outer end of its
// bracket. The caller has checked 0 < error < 1, 1 <= trials, hits <= trials.
double ClopperPearsonLow(Count count, double error);
double ClopperPearsonHigh(Count count, double error);

// An observed rate with its two-sided interval, which misses the truth with probability at most 1 - confidence.
struct Proportion {
  // kInvalidArgument for no trials, more hits than trials, or a confidence outside of (0, 1).
  static Result<Proportion> Of(Count count, double confidence);
  double rate() const { return static_cast<double>(count.hits) / static_cast<double>(count.trials); }
  Count count;
  Interval interval;
};

// kInvalidArgument unless 0 < confidence < 1.
Status CheckConfidence(double confidence);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_AUDIT_BINOMIAL_H_
