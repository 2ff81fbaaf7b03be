#include "runtime/privacy/ledger/ledger_composition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/noise/exact_sum.h"

namespace wisp::privacy {
namespace {

// Sums of loss slack are rounded once an entry; this covers millions of entries.
constexpr double kSlackRoundUp = 1 + 1e-9;
// The tail of exact_sum.h is below 1e-70: less than this share of any delta of at least kMinDelta.
constexpr double kTailShare = 1e-9;
constexpr double kMinDelta = 1e-60;
}  // namespace

void Composition::Add(const Mechanism& mechanism, NoiseKind noise, double loss_slack) {
  loss_slack_ += loss_slack;
  (noise == NoiseKind::kReproducible ? has_reproducible_ : has_secure_) = true;
  for (Mechanism& m : mechanisms_) {
    if (!m.DiffersInStepsOnly(mechanism)) continue;
    auto merged = m.WithSteps(m.steps() + mechanism.steps());
    if (!merged.ok()) continue;  // more steps than a mechanism may have: kept separate
    m = *merged;
    return;
  }
  mechanisms_.push_back(mechanism);
}

Result<StatedEpsilon> Composition::State(const Delta& delta, Fineness fineness) const {
  if (has_reproducible_) return StatedEpsilon{kInfinity};
  if (loss_slack_ == 0) return StateEpsilon(mechanisms_, delta, fineness);
  // exact_sum.h: (epsilon, delta') becomes (epsilon + 2 eta, exp(eta) delta' + tail).
  const double eta = loss_slack_ * kSlackRoundUp;
  const auto rest = Delta::Create(delta.value() * (1 - kTailShare) * std::exp(-eta));
  if (!rest.ok() || delta.value() < kMinDelta) return StatedEpsilon{kInfinity};
  WISP_ASSIGN_OR_RETURN(StatedEpsilon stated, StateEpsilon(mechanisms_, *rest, fineness));
  stated.epsilon = stated.epsilon <= kMaxDiscretisationEpsilon ? stated.epsilon + 2 * eta : kInfinity;
  return stated;
}

Result<double> Composition::DeltaAt(double epsilon) const {
  const double eta = loss_slack_ * kSlackRoundUp;
  // The cost of the noise's distance is proved only up to this epsilon; above it, delta is at most the delta there.
  const double proved = loss_slack_ == 0 ? epsilon : std::min(epsilon, kMaxDiscretisationEpsilon);
  if (has_reproducible_ || !(proved >= 2 * eta)) return 1.0;
  WISP_ASSIGN_OR_RETURN(const double delta, PldDelta(mechanisms_, proved - 2 * eta));
  return loss_slack_ == 0 ? delta : std::min(1.0, delta * std::exp(eta) + kMinDelta);
}

Result<double> Composition::Epsilon(const Delta& delta) const {
  WISP_ASSIGN_OR_RETURN(const StatedEpsilon stated, State(delta));
  return stated.epsilon;
}

Status Composition::CheckNoise(NoiseKind noise) const {
  if (noise == NoiseKind::kReproducible ? !has_secure_ : !has_reproducible_) return OkStatus();
  return PrivacyRefused("the ledger holds charges with ",
                        (noise == NoiseKind::kReproducible ? "secure" : "reproducible"), " noise, this one is with ",
                        std::string(ToText(noise)),
                        " noise, which together have no epsilon, now or later: use a ledger of its own for "
                        "experiments; nothing was charged");
}

}  // namespace wisp::privacy
