#include "runtime/privacy/ledger_composition.h"

#include <cmath>
#include <limits>
#include <string>

#include "runtime/privacy/accountant.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How many charges like this one the check tries to prove at once: none of the accountant's work for the next ones.
constexpr uint64_t kLookAhead[] = {256, 16, 1};

std::string Figures(double epsilon, const EpsilonDelta& limit) {
  return "epsilon " + DoubleText(epsilon) + " at delta " + DoubleText(limit.delta());
}

}  // namespace

void Composition::Add(const Mechanism& mechanism, NoiseKind noise, double total_variation) {
  total_variation_ += total_variation;
  if (noise == NoiseKind::kReproducible) has_reproducible_ = true;
  for (Mechanism& m : mechanisms_) {
    if (!m.DiffersInStepsOnly(mechanism)) continue;
    auto merged = m.WithSteps(m.steps() + mechanism.steps());
    if (!merged.ok()) continue;  // more steps than a mechanism may have: kept apart
    m = *merged;
    return;
  }
  mechanisms_.push_back(mechanism);
}

Result<double> Composition::Epsilon(const Delta& delta) const {
  if (has_reproducible_) return kInfinity;
  if (mechanisms_.empty()) return total_variation_ <= delta.value() / 2 ? 0 : kInfinity;
  if (total_variation_ == 0) return PldEpsilon(mechanisms_, delta);
  // The smallest share that suffices; a ten-thousandth of delta moves epsilon in its fifth digit only.
  for (double share : {1e-4, 1e-2, 0.5}) {
    WISP_ASSIGN_OR_RETURN(const Delta rest, Delta::Create(delta.value() * (1 - share)));
    WISP_ASSIGN_OR_RETURN(const double epsilon, PldEpsilon(mechanisms_, rest));
    if ((1 + std::exp(epsilon)) * total_variation_ * (1 + 1e-12) <= delta.value() * share) return epsilon;
  }
  return kInfinity;
}

Status LimitCheck::Check(const Composition& spent, const ChargeRequest& charge, const EpsilonDelta& limit) {
  WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(limit.delta()));
  if (ahead_ && charge.noise == NoiseKind::kSecure && ahead_->mechanism.DiffersInStepsOnly(charge.mechanism) &&
      charge.mechanism.steps() <= ahead_->mechanism.steps() && charge.total_variation <= ahead_->total_variation &&
      limit.epsilon() == ahead_->limit.epsilon() && limit.delta() == ahead_->limit.delta() && ahead_->charges > 0) {
    return OkStatus();
  }
  ahead_.reset();
  double total = kInfinity;
  for (uint64_t charges : kLookAhead) {
    auto together = charge.mechanism.WithSteps(charge.mechanism.steps() * charges);
    if (!together.ok()) continue;  // more steps than a mechanism may have; a single charge's are allowed
    Composition after = spent;
    after.Add(*together, charge.noise, charge.total_variation * static_cast<double>(charges));
    WISP_ASSIGN_OR_RETURN(total, after.Epsilon(delta));
    if (total > limit.epsilon()) continue;
    ahead_ = Ahead{charge.mechanism, charges, charge.total_variation, limit};
    return OkStatus();
  }
  if (charge.noise == NoiseKind::kReproducible) {
    return PrivacyRefused("a charge with reproducible noise has no guarantee and passes every limit; the data set's is " +
                          Figures(limit.epsilon(), limit) + ": nothing was charged");
  }
  WISP_ASSIGN_OR_RETURN(const double before, spent.Epsilon(delta));
  return PrivacyRefused("charging " + charge.mechanism.ToText() + " to run '" + charge.run + "' would bring the data set to " +
                        Figures(total, limit) + "; spent is " + DoubleText(before) + ", the limit is " + DoubleText(limit.epsilon()) +
                        ": nothing was charged");
}

void LimitCheck::Recorded() {
  if (ahead_) --ahead_->charges;
}

}  // namespace wisp::privacy
