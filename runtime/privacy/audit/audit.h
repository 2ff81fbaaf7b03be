// Lower bounds on the epsilon of what a mechanism really does, from observations of it. A bound above the stated
// epsilon says, with the requested confidence, that the statement is false; a bound below it proves nothing.
//
//   One run      canaries that each enter the training data with probability 1/2, and guesses which did
//   One step     many releases of one step, with a canary and without, as one number each (the released gradient's
//                inner product with the canary's direction, say)
//
//   WISP_ASSIGN_OR_RETURN(OneRunOutcome seen, CountGuesses(scores, included, {.positive = 50, .negative = 50}));
//   WISP_ASSIGN_OR_RETURN(double epsilon, OneRunEpsilon(seen, {.delta = 1e-5, .confidence = 0.95}));
//
// It is neither an accountant (upper bounds, accountant.h) nor exact (audit_exact.h, for mechanisms that can be
// enumerated). Inputs here are NOT private: they were measured with knowledge of the canaries and the noise. Nothing is
// charged, and nothing should be released except from canaries. Epsilon is in nats, as everywhere. Pure functions, any
// thread; every error is kInvalidArgument.
#ifndef WISP_RUNTIME_PRIVACY_AUDIT_AUDIT_H_
#define WISP_RUNTIME_PRIVACY_AUDIT_AUDIT_H_

#include <cstdint>
#include <span>

#include "runtime/core/status.h"
#include "runtime/privacy/audit/binomial.h"

namespace wisp::privacy {

// The claim under test. 0 <= epsilon, finite; 0 <= delta <= 1. Both may be 0, unlike in a statement worth making.
struct AuditClaim {
  double epsilon = 0;
  double delta = 0;
};

// The delta of the bound on epsilon, and its confidence: for a mechanism that keeps (epsilon, delta), the bound is
// above epsilon with probability at most 1 - confidence. 0 <= delta < 1, 0 < confidence < 1.
struct AuditLevel {
  double delta = 0;
  double confidence = 0.95;
};
Status CheckAuditLevel(const AuditLevel& level);
// kInvalidArgument for NaN and the like: with such a claim every audit would end "not refuted", because nothing
// compares above it.
Status CheckClaimedEpsilon(double epsilon);

// ---- One run (Steinke, Nasr, Jagielski 2023, "Privacy Auditing with One (1) Training Run") ----

struct OneRunOutcome {
  uint64_t canaries = 0;  // m: each included independently with probability 1/2; all count, also those not guessed
  uint64_t guesses = 0;   // r <= m, fixed before the run or a function of its output alone
  uint64_t correct = 0;   // v <= r
};

// More canaries than this are refused: a bound would take minutes.
inline constexpr uint64_t kMostCanaries = 10'000'000;

struct GuessCounts {
  uint64_t positive = 0;  // of the highest scores: "was included"
  uint64_t negative = 0;  // of the lowest: "was not"
};

// Guesses from scores (higher: likelier included), one per canary; included[i] is 1 or 0. The other canaries get no
// guess. Equal scores are taken in the order of their indices, which is independent of the inclusions. Sizes must
// agree, no score may be NaN, and positive + negative is at most the number of canaries.
Result<OneRunOutcome> CountGuesses(std::span<const double> scores, std::span<const uint8_t> included,
                                   const GuessCounts& guesses);

// An upper bound on the probability of at least `correct` correct guesses under the claim, adjacency add/remove of one
// canary (their main theorem for approximate DP, as in the program of their appendix D):
//
//   f(v) + 2 m delta max_{1 <= i <= m} (f(v - i) - f(v)) / i ,   f(x) = P[Binomial(r, e^eps / (1 + e^eps)) >= x]
Result<double> OneRunPValue(const OneRunOutcome& outcome, const AuditClaim& claim);

// The largest epsilon whose p-value is at most 1 - confidence; 0 if no epsilon has. Found by bisection to 1e-9, at the
// rejected end. A mechanism that keeps epsilon keeps every larger one, so one rejected value rejects all below it.
Result<double> OneRunEpsilon(const OneRunOutcome& outcome, const AuditLevel& level);

struct OneRunBest {
  double epsilon = 0;
  OneRunOutcome outcome;
};

// The best bound over several numbers of guesses, half of them positive (the odd one too), each at the confidence that
// the union bound leaves: 1 - (1 - confidence) / |guess_counts|. Choosing the best of several single bounds would be
// cherry-picking.
Result<OneRunBest> OneRunBestEpsilon(std::span<const double> scores, std::span<const uint8_t> included,
                                     std::span<const uint64_t> guess_counts, const AuditLevel& level);

// ---- One step, observed many times ----

// Independent observations of the same release, with or without the canary's record in the data. The numbers may
// differ, each is at least 2, none is NaN. Their order must not depend on their values.
struct CanaryObservations {
  std::span<const double> with;
  std::span<const double> without;
};

// The event whose probabilities are compared.
struct CanaryEvent {
  enum class Side { kAbove, kAtMost };      // the observation is > threshold, or <= threshold
  enum class Likelier { kWith, kWithout };  // under which data the event is held to be likelier
  double threshold = 0;
  Side side = Side::kAbove;
  Likelier likelier = Likelier::kWith;
};

struct CanaryBound {
  double epsilon = 0;  // 0 if nothing is proved
  CanaryEvent event;
  Count likelier, rarer;  // counts of the event under the likelier data and under the other
};

// With P, Q the likelier and the other data, (epsilon, delta)-DP says P[event] <= e^epsilon Q[event] + delta. The bound
// is log((P_low - delta) / Q_high) with Clopper-Pearson ends, each wrong with probability at most (1 - confidence) / 2.
// The event (threshold, side and direction: false positives against true positives, false negatives against true
// negatives, and both with the roles exchanged) is chosen on the observations of even index and measured on those of
// odd index only.
Result<CanaryBound> CanaryEpsilon(const CanaryObservations& observations, const AuditLevel& level);

// CanaryEpsilon's bound over all events at once and on all observations, without a choice. By the inequality of
// Dvoretzky, Kiefer and Wolfowitz with Massart's constant (1990) both empirical distributions are everywhere within
// sqrt(log(4 / (1 - confidence)) / (2 n)) of the true ones. It is weak for rare events: a second opinion for
// CanaryEpsilon that shares only the data with it. The counts are those of the best event.
Result<CanaryBound> CanaryEpsilonUniform(const CanaryObservations& observations, const AuditLevel& level);

// A lower bound on mu for the claim "mu-Gaussian DP" (Dong, Roth, Su 2022), which one release of a Gaussian mechanism
// with noise multiplier 1 / mu makes: far sharper than epsilon against a wrong scale of the noise. mu-GDP says FNR >=
// Phi(Phi^-1(1 - FPR) - mu), hence mu >= -Phi^-1(FPR) - Phi^-1(FNR), here at Clopper-Pearson's upper ends, each wrong
// with probability at most (1 - confidence) / 2 (Nasr et al. 2023, "Tight Auditing of Differentially Private Machine
// Learning"). No distribution of the observations is assumed. Threshold and side are chosen as in CanaryEpsilon. 0 if
// nothing is proved.
struct GdpBound {
  double mu = 0;
  CanaryEvent event;
  Count false_positives;  // the event under the data where it is rarer
  Count false_negatives;  // its absence under the data where it is likelier
};
Result<GdpBound> CanaryGdp(const CanaryObservations& observations, double confidence);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_AUDIT_AUDIT_H_
