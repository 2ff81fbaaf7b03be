// The joint cost of mechanisms that were fixed beforehand: merged, and composed by the PLD accountant.
//
// It is not valid for mechanisms that were chosen after looking at earlier outputs (ledger_budget.h distinguishes
// them).
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_COMPOSITION_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_COMPOSITION_H_

#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp::privacy {

class Composition {
 public:
  // Mechanisms that differ only in the number of steps are merged; the order of composition does not matter.
  void Add(const Mechanism& mechanism, NoiseKind noise, double loss_slack);

  const std::vector<Mechanism>& mechanisms() const { return mechanisms_; }
  double loss_slack() const { return loss_slack_; }
  // True if some charge used reproducible noise: then no epsilon holds.
  bool has_reproducible() const { return has_reproducible_; }
  // kPrivacyRefused for noise of another kind than that of the charges so far: together they have no epsilon, for ever.
  Status CheckNoise(NoiseKind noise) const;

  // An upper bound on epsilon at `delta`; infinity without a bound. It includes the loss slack of all entries together,
  // as exact_sum.h proves.
  Result<double> Epsilon(const Delta& delta) const;
  // Epsilon(), with the accountant that proved it.
  Result<StatedEpsilon> State(const Delta& delta, Fineness fineness = Fineness::kFull) const;
  // An upper bound on delta at `epsilon`; 1 without a better one.
  Result<double> DeltaAt(double epsilon) const;

 private:
  std::vector<Mechanism> mechanisms_;
  double loss_slack_ = 0;
  bool has_reproducible_ = false, has_secure_ = false;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_LEDGER_COMPOSITION_H_
