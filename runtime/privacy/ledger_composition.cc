#include "runtime/privacy/ledger_composition.h"

#include <cmath>
#include <limits>
#include <string>

#include "runtime/privacy/accountant.h"
#include "runtime/privacy/exact_sum.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy {
namespace {

// Sums of loss slack are rounded, once an entry; this covers millions of entries.
constexpr double kRoundUp = 1 + 1e-9;
// The tail of exact_sum.h is below 1e-70: less than this share of any delta of at least kMinDelta.
constexpr double kTailShare = 1e-9;
constexpr double kMinDelta = 1e-60;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How many charges like this one the check tries to prove at once. If so many do not fit, it bisects for the number
// that does: ten calls of the accountant, then none until the budget is spent.
constexpr uint64_t kLookAhead = 1024;

std::string Figures(double epsilon, const EpsilonDelta& limit) {
  return "epsilon " + DoubleText(epsilon) + " at delta " + DoubleText(limit.delta());
}

Status PassesEveryLimit(const EpsilonDelta& limit) {
  return PrivacyRefused("a charge with reproducible noise has no guarantee and passes every limit; the data set's is " +
                        Figures(limit.epsilon(), limit) + ": nothing was charged");
}

}  // namespace

void Composition::Add(const Mechanism& mechanism, NoiseKind noise, double loss_slack) {
  loss_slack_ += loss_slack;
  (noise == NoiseKind::kReproducible ? has_reproducible_ : has_secure_) = true;
  for (Mechanism& m : mechanisms_) {
    if (!m.DiffersInStepsOnly(mechanism)) continue;
    auto merged = m.WithSteps(m.steps() + mechanism.steps());
    if (!merged.ok()) continue;  // more steps than a mechanism may have: kept apart
    m = *merged;
    return;
  }
  mechanisms_.push_back(mechanism);
}

Result<StatedEpsilon> Composition::State(const Delta& delta) const {
  if (has_reproducible_) return StatedEpsilon{kInfinity};
  if (loss_slack_ == 0) return StateEpsilon(mechanisms_, delta);
  // exact_sum.h: (epsilon, delta') becomes (epsilon + 2 eta, exp(eta) delta' + tail).
  const double eta = loss_slack_ * kRoundUp;
  const auto rest = Delta::Create(delta.value() * (1 - kTailShare) * std::exp(-eta));
  if (!rest.ok() || delta.value() < kMinDelta) return StatedEpsilon{kInfinity};
  WISP_ASSIGN_OR_RETURN(StatedEpsilon stated, StateEpsilon(mechanisms_, *rest));
  stated.epsilon = stated.epsilon <= kMaxDiscretisationEpsilon ? stated.epsilon + 2 * eta : kInfinity;
  return stated;
}

Result<double> Composition::Epsilon(const Delta& delta) const {
  WISP_ASSIGN_OR_RETURN(const StatedEpsilon stated, State(delta));
  return stated.epsilon;
}

Status Composition::CheckNoise(NoiseKind noise) const {
  if (noise == NoiseKind::kReproducible ? !has_secure_ : !has_reproducible_) return OkStatus();
  return PrivacyRefused(std::string("the ledger holds charges with ") + (noise == NoiseKind::kReproducible ? "secure" : "reproducible") +
                        " noise, this one is with " + std::string(ToText(noise)) +
                        " noise, which together have no epsilon, now or later: use a ledger of its own for experiments; nothing was charged");
}

Status CheckRunFits(const Composition& spent, const Composition& after, const EpsilonDelta& limit) {
  if (after.has_reproducible()) return PassesEveryLimit(limit);
  WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(limit.delta()));
  WISP_ASSIGN_OR_RETURN(const double total, after.Epsilon(delta));
  if (total <= limit.epsilon()) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const double before, spent.Epsilon(delta));
  return PrivacyRefused("this run would bring the data set to " + Figures(total, limit) + ", the limit is " + DoubleText(limit.epsilon()) +
                        ", spent " + DoubleText(before) + "; nothing was charged");
}

bool LimitCheck::Fits(const Mechanism& mechanism, NoiseKind noise, double loss_slack) const {
  return room_ && noise == NoiseKind::kSecure && room_->mechanism.DiffersInStepsOnly(mechanism) &&
         mechanism.steps() <= room_->mechanism.steps() && loss_slack <= room_->loss_slack;
}

Status LimitCheck::Check(const Composition& spent, const ChargeRequest& charge, const EpsilonDelta& limit) {
  const bool same_limit = room_ && room_->limit.epsilon() == limit.epsilon() && room_->limit.delta() == limit.delta();
  if (same_limit && Fits(charge.mechanism, charge.noise, charge.loss_slack)) return OkStatus();
  room_.reset();
  if (charge.noise == NoiseKind::kReproducible) return PassesEveryLimit(limit);
  WISP_ASSIGN_OR_RETURN(const Delta delta, Delta::Create(limit.delta()));
  // The total after `charges` like this one; where it is within the limit, so much is remembered to fit.
  const auto total_after = [&](uint64_t charges) -> Result<double> {
    const auto together = charge.mechanism.WithSteps(charge.mechanism.steps() * charges);
    if (!together.ok()) return kInfinity;  // more steps than a mechanism may have
    const double loss_slack = charge.loss_slack * static_cast<double>(charges);
    Composition after = spent;
    after.Add(*together, charge.noise, loss_slack);
    WISP_ASSIGN_OR_RETURN(const double total, after.Epsilon(delta));
    if (total <= limit.epsilon()) room_ = Room{*together, loss_slack, limit};
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
  return PrivacyRefused("charging " + charge.mechanism.ToText() + " to run '" + charge.run +
                        "' would bring the data set to " + Figures(total, limit) + "; spent is " + DoubleText(before) +
                        ", the limit is " + DoubleText(limit.epsilon()) + ": nothing was charged");
}

void LimitCheck::Recorded(const Mechanism& mechanism, NoiseKind noise, double loss_slack) {
  if (!Fits(mechanism, noise, loss_slack) || mechanism.steps() == room_->mechanism.steps()) return room_.reset();
  auto left = room_->mechanism.WithSteps(room_->mechanism.steps() - mechanism.steps());
  if (!left.ok()) return room_.reset();
  room_->mechanism = *left;
  room_->loss_slack -= loss_slack;
}

}  // namespace wisp::privacy
