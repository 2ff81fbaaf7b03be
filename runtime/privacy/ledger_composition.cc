#include "runtime/privacy/ledger_composition.h"

#include <cmath>
#include <limits>
#include <string>

#include "runtime/privacy/accountant.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy {
namespace {

// Sums of total variations are rounded, once an entry; this covers millions of entries.
constexpr double kRoundUp = 1 + 1e-9;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How many charges like this one the check tries to prove at once. If so many do not fit, it bisects for the number that
// does: ten calls of the accountant, then none until the budget is spent.
constexpr uint64_t kLookAhead = 1024;

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
    if ((1 + std::exp(epsilon)) * total_variation_ * kRoundUp <= delta.value() * share) return epsilon;
  }
  return kInfinity;
}

bool LimitCheck::Fits(const Mechanism& mechanism, NoiseKind noise, double total_variation) const {
  return room_ && noise == NoiseKind::kSecure && room_->mechanism.DiffersInStepsOnly(mechanism) &&
         mechanism.steps() <= room_->mechanism.steps() && total_variation <= room_->total_variation;
}

Status LimitCheck::Check(const Composition& spent, const ChargeRequest& charge, const EpsilonDelta& limit) {
  const bool same_limit = room_ && room_->limit.epsilon() == limit.epsilon() && room_->limit.delta() == limit.delta();
  if (same_limit && Fits(charge.mechanism, charge.noise, charge.total_variation)) return OkStatus();
  room_.reset();
  if (charge.noise == NoiseKind::kReproducible) {
    return PrivacyRefused("a charge with reproducible noise has no guarantee and passes every limit; the data set's is " +
                          Figures(limit.epsilon(), limit) + ": nothing was charged");
  }
  WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(limit.delta()));
  // The total after `charges` like this one; where it is within the limit, so much is remembered to fit.
  const auto total_after = [&](uint64_t charges) -> Result<double> {
    const auto together = charge.mechanism.WithSteps(charge.mechanism.steps() * charges);
    if (!together.ok()) return kInfinity;  // more steps than a mechanism may have
    const double total_variation = charge.total_variation * static_cast<double>(charges);
    Composition after = spent;
    after.Add(*together, charge.noise, total_variation);
    WISP_ASSIGN_OR_RETURN(const double total, after.Epsilon(delta));
    if (total <= limit.epsilon()) room_ = Room{*together, total_variation, limit};
    return total;
  };
  uint64_t fit = 0, too_many = kLookAhead;
  WISP_RETURN_IF_ERROR(total_after(kLookAhead).status());
  if (room_) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const double total, total_after(1));
  if (room_) fit = 1;
  while (fit > 0 && too_many - fit > 1) {
    const uint64_t middle = fit + (too_many - fit) / 2;
    WISP_ASSIGN_OR_RETURN(const double total_middle, total_after(middle));
    (total_middle <= limit.epsilon() ? fit : too_many) = middle;
  }
  if (fit > 0) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const double before, spent.Epsilon(delta));
  return PrivacyRefused("charging " + charge.mechanism.ToText() + " to run '" + charge.run + "' would bring the data set to " +
                        Figures(total, limit) + "; spent is " + DoubleText(before) + ", the limit is " + DoubleText(limit.epsilon()) +
                        ": nothing was charged");
}

void LimitCheck::Recorded(const Mechanism& mechanism, NoiseKind noise, double total_variation) {
  if (!Fits(mechanism, noise, total_variation) || mechanism.steps() == room_->mechanism.steps()) return room_.reset();
  auto left = room_->mechanism.WithSteps(room_->mechanism.steps() - mechanism.steps());
  if (!left.ok()) return room_.reset();
  room_->mechanism = *left;
  room_->total_variation -= total_variation;
}

}  // namespace wisp::privacy
