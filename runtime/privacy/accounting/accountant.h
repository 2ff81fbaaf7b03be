// Accountants compute what a list of mechanisms costs together, as epsilon at a given delta.
//
//   PLD      the figure that may be stated: an upper bound by construction. If samples take part, it is the smallest
//            of PLD, RDP and pure: the pair that dominates one bounded-range sample is not the tightest for many
//   RDP      an upper bound, looser; fast, for brackets and cross-checks
//   GDP-CLT  a limit theorem, asymptotic: may understate; only to restate papers, beside PLD
//   pure     epsilon at delta 0, a sum; infinite if a Gaussian takes part
//
// All assume that the mechanisms are adaptively composed on the same data under the same adjacency. A pairing that has
// no proof here (sampling with replace-one adjacency) is kPrivacyRefused. Randomised response and bounded-range samples
// are bounded pointwise for any two distributions that may have to be told apart, so they cost the same under every
// adjacency. An empty list costs 0. All kinds compose with each other.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_ACCOUNTANT_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_ACCOUNTANT_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

// The figure that may be stated, and the accountant that proved it.
enum class Accountant { kPld, kRdp, kPure };
std::string_view ToText(Accountant accountant);  // "PLD", "RDP", "pure"
struct StatedEpsilon {
  double epsilon = 0;
  Accountant accountant = Accountant::kPld;
};
// The fineness of PLD's grid. All are upper bounds: connecting the dots dominates on every grid. kQuick is a few
// ten-thousandths higher, from a sixteenth of the points, for the last question of a search; kGlance is up to a
// hundredth higher, from a sixty-fourth, for its first ones and for display during a run. With random allocation and an
// epsilon of a few hundredths they are up to 2e-3 and 3e-2 higher. A figure that is kept is kFull.
enum class Fineness { kFull, kQuick, kGlance };
// The smallest bound that the accountants prove. It is PldEpsilon's figure, with the name of the accountant that
// reached it first in the order pure, RDP (only with samples), PLD.
Result<StatedEpsilon> StateEpsilon(std::span<const Mechanism> mechanisms, Delta delta,
                                   Fineness fineness = Fineness::kFull);

// The smallest epsilon that connect-the-dots proves: the maximum over both directions, and never above PureEpsilon.
// Infinity if none is found. Takes 20 to 100 ms.
Result<double> PldEpsilon(std::span<const Mechanism> mechanisms, Delta delta);
// The smallest delta that it proves for an epsilon >= 0.
Result<double> PldDelta(std::span<const Mechanism> mechanisms, double epsilon);

Result<double> RdpEpsilon(std::span<const Mechanism> mechanisms, Delta delta);
Result<double> RdpDelta(std::span<const Mechanism> mechanisms, double epsilon);  // epsilon >= 0
// RdpEpsilon with the caller's orders (> 1).
Result<double> RdpEpsilonAtOrders(std::span<const Mechanism> mechanisms, Delta delta, std::span<const double> orders);

// RDP of one step at an integer order from 2 on, rounded up; the larger of both directions. It serves code that adds it
// up while choosing what comes next (privacy_filter.h). CheckAccountable is not applied.
double StepRdp(const Mechanism& mechanism, uint32_t order);

// The sum over all steps of eps0 or of the range (mechanism.h), rounded up; infinity with a Gaussian.
Result<double> PureEpsilon(std::span<const Mechanism> mechanisms);

// For Gaussian kinds only; kPrivacyRefused for others, to which the theorem does not apply.
Result<double> GdpCltEpsilon(std::span<const Mechanism> mechanisms, Delta delta);

// kPrivacyRefused, with the reason, if no accountant here has a proof.
Status CheckAccountable(std::span<const Mechanism> mechanisms);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_ACCOUNTANT_H_
