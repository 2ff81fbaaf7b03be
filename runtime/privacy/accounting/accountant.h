// Accountants: what a list of mechanisms costs together, as epsilon at a given delta.
//
//   PLD      the figure that may be stated: an upper bound by construction. Where draws take part it is the smallest of
//            PLD, RDP and pure: the pair that dominates a bounded-range draw is not the tightest for many of them
//   RDP      an upper bound, looser; fast, for brackets and cross-checks
//   GDP-CLT  a limit theorem, asymptotic: may understate; only to restate papers, beside PLD
//   pure     epsilon at delta 0, by adding up; infinite once a Gaussian takes part
//
// All assume the mechanisms are adaptively composed on the same data under the same adjacency. A pairing that has no
// proof here (sampling with replace-one adjacency) is kPrivacyRefused. Randomised response and bounded-range draws are
// bounded pointwise for any two distributions that may have to be told apart: they cost the same under every adjacency.
// An empty list costs 0. Kinds compose with each other freely.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_ACCOUNTANT_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_ACCOUNTANT_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {

// The figure that may be stated, and who set it.
enum class Accountant { kPld, kRdp, kPure };
std::string_view ToText(Accountant accountant);  // "PLD", "RDP", "pure"
struct StatedEpsilon {
  double epsilon = 0;
  Accountant accountant = Accountant::kPld;
};
// How fine PLD's grid is. kQuick: an upper bound too, a few thousandths above, for a sixteenth of the time; for what a
// run shows while it goes on. A figure that stays is kFull.
enum class Fineness { kFull, kQuick };
// The smallest of what the accountants prove: PldEpsilon's figure, with the name of the one that reached it first in
// the order pure, RDP (asked where draws take part), PLD.
Result<StatedEpsilon> StateEpsilon(std::span<const Mechanism> mechanisms, Delta delta,
                                   Fineness fineness = Fineness::kFull);

// Smallest epsilon that connect-the-dots proves, maximum of both directions, and never above PureEpsilon; infinity
// where none is found. ~0.2 s.
Result<double> PldEpsilon(std::span<const Mechanism> mechanisms, Delta delta);
// delta(epsilon) >= 0 likewise.
Result<double> PldDelta(std::span<const Mechanism> mechanisms, double epsilon);

Result<double> RdpEpsilon(std::span<const Mechanism> mechanisms, Delta delta);
Result<double> RdpDelta(std::span<const Mechanism> mechanisms, double epsilon);  // epsilon >= 0
// The same with the orders (> 1) chosen by the caller.
Result<double> RdpEpsilonAtOrders(std::span<const Mechanism> mechanisms, Delta delta, std::span<const double> orders);

// Of one step, at an integer order from 2 on, rounded up; the larger of both directions. For what adds it up while
// choosing what comes next (privacy_filter.h); not checked by CheckAccountable.
double RdpOfStep(const Mechanism& mechanism, uint32_t order);

// Sum over all steps of eps0 or of the range (mechanism.h), rounded up; infinity where there is a Gaussian.
Result<double> PureEpsilon(std::span<const Mechanism> mechanisms);

// Gaussian kinds only; kPrivacyRefused for others, to which the theorem does not apply.
Result<double> GdpCltEpsilon(std::span<const Mechanism> mechanisms, Delta delta);

// kPrivacyRefused with the reason where no accountant here has a proof.
Status CheckAccountable(std::span<const Mechanism> mechanisms);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_ACCOUNTANT_H_
