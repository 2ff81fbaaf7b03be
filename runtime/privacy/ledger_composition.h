// What a ledger's entries cost together: merged, composed by the PLD accountant, and compared with a limit.
//
// What it is not: aware of files. ledger.cc feeds it the entries and asks.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_COMPOSITION_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_COMPOSITION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/privacy/accountant.h"
#include "runtime/privacy/ledger.h"
#include "runtime/privacy/mechanism.h"

namespace wisp::privacy {

class Composition {
 public:
  // Mechanisms that differ in the number of steps only become one; the order of composition does not matter.
  void Add(const Mechanism& mechanism, NoiseKind noise, double loss_slack);

  const std::vector<Mechanism>& mechanisms() const { return mechanisms_; }
  double loss_slack() const { return loss_slack_; }
  // Some charge used reproducible noise: no epsilon holds.
  bool has_reproducible() const { return has_reproducible_; }
  // kPrivacyRefused for noise of another kind than that of the charges so far: together they have no epsilon, for ever.
  Status CheckNoise(NoiseKind noise) const;

  // Upper bound on epsilon at `delta`; infinity where there is none. The loss slack of all entries together is paid for
  // as exact_sum.h proves.
  Result<double> Epsilon(const Delta& delta) const;
  // The same, and the accountant that set it.
  Result<StatedEpsilon> State(const Delta& delta) const;

 private:
  std::vector<Mechanism> mechanisms_;
  double loss_slack_ = 0;
  bool has_reproducible_ = false, has_secure_ = false;
};

// Whether all that a run is to charge stays within the limit: `after` is `spent` and the run. kPrivacyRefused with the figures.
Status CheckRunFits(const Composition& spent, const Composition& after, const EpsilonDelta& limit);

// Answers "does this charge stay within the limit" and remembers how much more of the same it has proved to fit, so
// that a run of equal charges asks the accountant a few times instead of each time. Sound because less than what was
// proved to fit is less: k steps are post-processing of m >= k steps, whoever charges them.
class LimitCheck {
 public:
  // `spent` without the charge. OkStatus, or kPrivacyRefused with the figures.
  Status Check(const Composition& spent, const ChargeRequest& charge, const EpsilonDelta& limit);
  // To be told of every charge that is recorded, by this process or another.
  void Recorded(const Mechanism& mechanism, NoiseKind noise, double loss_slack);

 private:
  // What more fits under `limit` after everything recorded so far.
  struct Room {
    Mechanism mechanism;  // with the steps that are left
    double loss_slack;
    EpsilonDelta limit;
  };
  bool Fits(const Mechanism& mechanism, NoiseKind noise, double loss_slack) const;

  std::optional<Room> room_;
};

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_COMPOSITION_H_
