// Functions that all samples share, and the lattice of randomised response; for accountants' files and tests.
#ifndef WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_SAMPLES_H_
#define WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_SAMPLES_H_

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/accounting/pld.h"

namespace wisp::privacy {

// A sample with a larger pure loss is known by that loss alone.
inline constexpr double kLargestSampleLoss = 500;

// All samples of a randomised response together, on a grid whose step is eps0. Nothing is rounded to a grid, and each
// mass is an upper bound to a relative 1e-8 or less, whatever its size. Time grows with the square of the relevant
// points: WorthALattice returns true if they are few (a few thousand). lambda > 0.
bool WorthALattice(const Mechanism& response);
DiscretePld ResponseLattice(const Mechanism& response);

// MechanismKind's functions, for kinds whose losses are at most the pure epsilon, in both directions alike.
inline bool SampleFitsGrid(const Mechanism& m) { return m.PureEpsilonPerStep() <= kLargestSampleLoss; }
inline bool SampleIsSymmetric(const Mechanism&) { return true; }
inline LossRange SampleRange(const Mechanism& m, Direction, Fineness) {
  const double loss = m.PureEpsilonPerStep();
  return {-loss, loss};
}

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_ACCOUNTING_KINDS_SAMPLES_H_
