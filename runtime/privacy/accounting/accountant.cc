#include "runtime/privacy/accounting/accountant.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/core/platform.h"
#include "runtime/privacy/accounting/mechanism_kind.h"
#include "runtime/privacy/accounting/pld.h"

namespace wisp::privacy {
namespace {

// Bounds of the composed grid's number of points; in between the grid step is 1e-4. A point takes about 40 bytes while
// a figure is computed.
struct GridPoints {
  double fewest, most;
  Fineness fineness;
};
constexpr GridPoints kFullGrid{1 << 17, 1 << 19, Fineness::kFull}, kQuickGrid{1 << 13, 1 << 15, Fineness::kQuick},
    kGlanceGrid{1 << 11, 1 << 13, Fineness::kGlance};
constexpr GridPoints kCoarserGrids[] = {kGlanceGrid, kQuickGrid};
constexpr double kUsualStep = 1e-4;
// The points of the widest term on a grid that finds the range and the tilts of the composition.
constexpr double kFewestCoarsePoints = 1024, kMostCoarsePoints = 4096;
// Smaller losses are rounded up to this: a finer grid could not count its points.
constexpr double kSmallestStep = 1e-30;
// The losses of one step are not discretised on more points than this.
constexpr double kMostStepPoints = 1 << 22;
// The most kinds of samples, and of noise, that are composed unchanged. If there are more, parameters are rounded up
// until some agree.
constexpr ptrdiff_t kMostDraws = 24, kMostNoises = 128;
constexpr ptrdiff_t kManyNoises = 8;

// A mechanism that costs nothing has no losses to put on a grid.
bool Costs(const Mechanism& m) { return m.PureEpsilonPerStep() > 0; }

std::vector<Mechanism> Merge(std::span<const Mechanism> mechanisms) {
  std::vector<Mechanism> merged;
  for (const Mechanism& m : mechanisms) {
    if (!Costs(m)) continue;
    const auto same =
        std::find_if(merged.begin(), merged.end(), [&](const Mechanism& o) { return o.DiffersInStepsOnly(m); });
    if (same == merged.end()) {  // NOLINT(bugprone-branch-clone): the last case is steps that fit no one number
      merged.push_back(m);
    } else if (auto sum = same->WithSteps(same->steps() + m.steps()); sum.ok()) {
      *same = *sum;
    } else {
      merged.push_back(m);
    }
  }
  return merged;
}

// In an order that depends on the mechanisms alone. A figure's rounding depends on the order of its terms, so those of
// equal ledgers agree to the last bit, however they were charged.
std::vector<Mechanism> Sorted(std::span<const Mechanism> mechanisms) {
  std::vector<Mechanism> sorted;
  const auto kinds = MechanismKinds();
  const auto is_before = [&](const Mechanism& a, const Mechanism& b) {
    if (&a.kind() != &b.kind())
      return *std::find_if(kinds.begin(), kinds.end(), [&](const MechanismKind* kind) {
        return kind == &a.kind() || kind == &b.kind();
      }) == &a.kind();
    return a.values() != b.values() ? a.values() < b.values() : a.steps() < b.steps();
  };
  for (const Mechanism& m : mechanisms) sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), m, is_before), m);
  return sorted;
}

std::optional<Mechanism> AsOneGaussian(const Mechanism& m) {
  const auto noise = m.kind().as_one_gaussian ? m.kind().as_one_gaussian(m) : std::nullopt;
  const auto once = Mechanism::Gaussian({.noise_multiplier = noise.value_or(0)});
  return once.ok() ? std::optional(*once) : std::nullopt;
}

ptrdiff_t CountNoises(const std::vector<Mechanism>& list) {
  return std::count_if(list.begin(), list.end(), [](const Mechanism& m) { return !m.is_sample(); });
}

// Rounds the parameters of samples up (`samples`), or those of noise, until at most `most` kinds are left.
std::vector<Mechanism> RoundedToFew(std::vector<Mechanism> merged, bool samples, ptrdiff_t most) {
  const auto few = [&](const std::vector<Mechanism>& list) {
    const ptrdiff_t noises = CountNoises(list);
    return (samples ? static_cast<ptrdiff_t>(list.size()) - noises : noises) <= most;
  };
  const std::vector<Mechanism> exact = merged;
  for (double per_octave = 1024; !few(merged) && per_octave >= 1; per_octave /= 2) {
    std::vector<Mechanism> rounded;
    rounded.reserve(exact.size());
    for (const Mechanism& m : exact) {
      rounded.push_back(m.is_sample() == samples && m.kind().rounded_up ? m.kind().rounded_up(m, per_octave) : m);
    }
    merged = Merge(rounded);
  }
  return merged;
}

// All plain Gaussians are one: the squares of their inverse multipliers add up.
std::vector<Mechanism> JoinGaussians(const std::vector<Mechanism>& mechanisms) {
  std::vector<Mechanism> joined;
  double inverse_squares = 0;
  for (const Mechanism& m : mechanisms) {
    const auto once = AsOneGaussian(m);
    if (once) inverse_squares += 1 / (once->noise_multiplier() * once->noise_multiplier());
    if (!once) joined.push_back(m);
  }
  if (inverse_squares == 0) return joined;
  const auto all = Mechanism::Gaussian({.noise_multiplier = (1 - 1e-12) / std::sqrt(inverse_squares)});
  if (!all.ok()) return mechanisms;
  joined.push_back(*all);
  return joined;
}

// Every length of a candidate list makes another kind of sample, and a noise schedule makes another kind of noise for
// each step.
std::vector<Mechanism> FewKinds(std::vector<Mechanism> merged) {
  if (CountNoises(merged) > kManyNoises) merged = JoinGaussians(merged);
  return RoundedToFew(RoundedToFew(std::move(merged), true, kMostDraws), false, kMostNoises);
}

// Many kinds of noise are composed on a coarser grid: each takes the time of a run of equal steps, and their sum has so
// wide a distribution that the grid adds less than 1e-3 of epsilon, a glance less than 1e-2.
GridPoints PointsFor(const std::vector<Mechanism>& mechanisms, const GridPoints& points) {
  const ptrdiff_t noises = CountNoises(mechanisms);
  const double fewer = noises <= kManyNoises ? 1 : noises <= 3 * kManyNoises ? 4 : 16;
  const double fewest = std::max(points.fewest / fewer, points.fineness == Fineness::kGlance ? 0x1p9 : 0x1p11);
  return {fewest, std::max(points.most / fewer, 4 * fewest), points.fineness};
}

GridPoints GridFor(Fineness fineness) {
  if (fineness == Fineness::kFull) return kFullGrid;
  return fineness == Fineness::kQuick ? kQuickGrid : kGlanceGrid;
}

// A mechanism in a composition: a single step, or all its steps already composed.
struct PartToCompose {
  Mechanism mechanism;
  std::optional<DiscretePld> composed = {};
};

std::vector<PldPower> DiscretiseAll(const std::vector<PartToCompose>& parts, Direction direction, double step,
                                    Fineness fineness) {
  std::vector<PldPower> terms;
  for (const auto& [m, composed] : parts) {
    if (composed) {
      terms.push_back({Regrid(*composed, step), 1});
    } else if (const auto once = AsOneGaussian(m)) {
      terms.push_back({Discretise(*once, direction, step, fineness), 1});
    } else {
      terms.push_back({Discretise(m, direction, step, fineness), m.steps()});
    }
  }
  return terms;
}

DiscretePld ComposeParts(const std::vector<PartToCompose>& parts, Direction direction, const GridPoints& points) {
  double widest = 0;
  for (const auto& [m, composed] : parts) {
    const LossRange range = m.kind().range(m, direction, points.fineness);
    const double width = (range.high - range.low) * (AsOneGaussian(m) ? std::sqrt(static_cast<double>(m.steps())) : 1);
    widest = std::max(widest, composed ? static_cast<double>(composed->mass.size()) * composed->step : width);
  }
  const double coarse_points = std::clamp(points.most / 8, kFewestCoarsePoints, kMostCoarsePoints);
  const double coarse = std::max(kSmallestStep, widest / coarse_points);
  const std::vector<PldPower> coarse_terms = DiscretiseAll(parts, direction, coarse, points.fineness);
  const Tilts tilts = BestTilts(coarse_terms);
  const LossRange range = ComposedRange(coarse_terms, tilts);
  const double width = range.high - range.low;
  const double step = std::max(
      {kSmallestStep, std::min(kUsualStep, width / points.fewest), width / points.most, widest / kMostStepPoints});
  return Compose(DiscretiseAll(parts, direction, step, points.fineness), tilts);
}

// Samples have losses far below those of Gaussian steps, and there are many: a grid that suits both would be too coarse
// for them. So each kind is first composed with itself on a grid of its own.
DiscretePld ComposeDirection(const std::vector<Mechanism>& mechanisms, Direction direction, const GridPoints& points) {
  std::vector<PartToCompose> parts;
  for (const Mechanism& m : mechanisms) {
    parts.push_back({m});
    if (!m.is_sample()) continue;
    if (auto alone = m.kind().compose_alone ? m.kind().compose_alone(m) : std::nullopt) {
      parts.back().composed = std::move(alone);
    } else {
      DiscretePld composed = ComposeParts({parts.back()}, direction, points);
      TrimTails(composed, composed.infinity);  // the rounding error, which fills the whole circle
      parts.back().composed = std::move(composed);
    }
  }
  return parts.size() == 1 && parts.front().composed ? *parts.front().composed : ComposeParts(parts, direction, points);
}

// `known` is a bound by other means; it is the result if nothing better can be said.
template <class F>
double WorstDirection(std::span<const Mechanism> mechanisms, double known, const GridPoints& points, F&& figure) {
  const std::vector<Mechanism> merged = FewKinds(Merge(mechanisms));
  if (merged.empty()) return known;
  const auto all = [&](bool (*MechanismKind::*holds)(const Mechanism&)) {
    return std::all_of(merged.begin(), merged.end(), [&](const Mechanism& m) { return (m.kind().*holds)(m); });
  };
  if (!all(&MechanismKind::fits_grid)) return known;
  const GridPoints fitting = PointsFor(merged, points);
  const double remove = figure(ComposeDirection(merged, Direction::kRemove, fitting));
  if (all(&MechanismKind::is_symmetric)) return std::min(known, remove);
  // Adding a record mostly costs less, by more than a coarse grid adds. The coarse figure is a bound too, and is there
  // sooner.
  const auto add = [&](const GridPoints& grid) { return figure(ComposeDirection(merged, Direction::kAdd, grid)); };
  for (const GridPoints& coarser : kCoarserGrids) {
    if (coarser.most < points.most && add(PointsFor(merged, coarser)) <= remove) return std::min(known, remove);
  }
  return std::min(known, std::max(remove, add(fitting)));
}

// True if RDP may give a smaller figure than PLD. The pair that dominates a bounded-range sample
// (kinds/bounded_range.cc) pays for the worst t at every epsilon at once: its losses have variance eta^2 / 3, where
// each member's have at most eta^2 / 4. RDP adds up the members' own, so it may be below. It may also be below if
// samples are rounded up to few kinds, or are so many that the transform's rounding exceeds delta. Some kinds have no
// PLD.
bool RdpMayBeBelow(std::span<const Mechanism> mechanisms) {
  return std::any_of(mechanisms.begin(), mechanisms.end(),
                     [](const Mechanism& m) { return m.is_sample() || m.kind().discretise == nullptr; });
}

// A figure with everything that it depends on.
struct AnsweredQuestion {
  std::vector<Mechanism> mechanisms;
  double delta;
  Fineness fineness;
  StatedEpsilon stated;
  std::vector<EpsilonNear> near;  // by WorstDirection's distributions, if no other accountant bounds it
};

// Caches the newest figures that this thread asked for, by sorted mechanisms. A ledger asks for those of its plan each
// time it is opened, and a run opens it several times. Computing one figure takes up to a tenth of a second. A
// calibration asks at a delta that is a little lower than a ledger's.
class AnsweredQuestions {
 public:
  std::optional<StatedEpsilon> Find(std::span<const Mechanism> mechanisms, double delta, Fineness fineness) const {
    const auto found = std::find_if(answered_.begin(), answered_.end(), [&](const AnsweredQuestion& a) {
      return a.delta == delta && a.fineness == fineness && AreSame(a.mechanisms, mechanisms);
    });
    return found == answered_.end() ? FindNear(mechanisms, delta, fineness) : found->stated;
  }
  void Keep(std::span<const Mechanism> mechanisms, AnsweredQuestion answer) {
    if (mechanisms.size() > kMostMechanisms) return;
    if (answered_.size() == kMost) answered_.erase(answered_.begin());
    answer.mechanisms.assign(mechanisms.begin(), mechanisms.end());
    answered_.push_back(std::move(answer));
  }

 private:
  static constexpr size_t kMost = 64, kMostMechanisms = 8;

  static bool AreSame(std::span<const Mechanism> a, std::span<const Mechanism> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  std::optional<StatedEpsilon> FindNear(std::span<const Mechanism> mechanisms, double delta, Fineness fineness) const {
    for (const AnsweredQuestion& a : answered_) {
      if (a.near.empty() || a.fineness != fineness || !AreSame(a.mechanisms, mechanisms)) continue;
      if (const auto epsilon = AskNear(a.near, delta)) return StatedEpsilon{*epsilon, Accountant::kPld};
    }
    return std::nullopt;
  }
  // WorstDirection again, of a full figure.
  static std::optional<double> AskNear(const std::vector<EpsilonNear>& near, double delta) {
    const auto remove = near[0].Epsilon(delta);
    if (!remove || near.size() == 1) return remove;
    for (size_t i = 1; i < near.size(); ++i) {
      const auto add = near[i].Epsilon(delta);
      if (!add || *add <= *remove) return add ? remove : add;
      if (i > std::size(kCoarserGrids)) return add;
    }
    return std::nullopt;
  }

  std::vector<AnsweredQuestion> answered_;
};

}  // namespace

Result<double> PureEpsilon(std::span<const Mechanism> mechanisms) {
  WISP_RETURN_IF_ERROR(CheckAccountable(mechanisms));
  double sum = 0;
  for (const Mechanism& m : Sorted(mechanisms)) sum += static_cast<double>(m.steps()) * m.PureEpsilonPerStep();
  // The factor exceeds the rounding of each term, with eps0 accurate to a few units in its last place, and of the sum.
  return sum * (1 + static_cast<double>(mechanisms.size() + 8) * std::numeric_limits<double>::epsilon());
}

std::string_view ToText(Accountant accountant) {
  switch (accountant) {
    case Accountant::kPld:
      return "PLD";
    case Accountant::kRdp:
      return "RDP";
    case Accountant::kPure:
      return "pure";
  }
  return "unknown";
}

Result<StatedEpsilon> StateEpsilon(std::span<const Mechanism> given, Delta delta, Fineness fineness) {
  const std::vector<Mechanism> mechanisms = Sorted(given);
#if defined(_WIN32)
  auto& answered = platform::PerThread<AnsweredQuestions>();
#else
  static thread_local AnsweredQuestions answered;
#endif
  if (const auto known = answered.Find(mechanisms, delta.value(), fineness)) return *known;
  WISP_ASSIGN_OR_RETURN(const double pure, PureEpsilon(mechanisms));
  // An infinite figure is attributed to PLD, which found no finite one.
  StatedEpsilon stated{pure, std::isinf(pure) ? Accountant::kPld : Accountant::kPure};
  if (RdpMayBeBelow(mechanisms)) {
    WISP_ASSIGN_OR_RETURN(const double rdp, RdpEpsilon(Merge(mechanisms), delta));
    if (rdp < stated.epsilon) stated = {rdp, Accountant::kRdp};
  }
  const bool is_full = fineness == Fineness::kFull, is_alone = is_full && std::isinf(stated.epsilon);
  AnsweredQuestion answer{.delta = delta.value(), .fineness = fineness};
  const double pld = WorstDirection(mechanisms, stated.epsilon, GridFor(fineness), [&](const DiscretePld& p) {
    if (is_alone) answer.near.emplace_back(p, delta.value());
    return ComputeEpsilon(p, delta.value());
  });
  if (pld < stated.epsilon) stated = {pld, Accountant::kPld};
  answer.stated = stated;
  answered.Keep(mechanisms, std::move(answer));
  return stated;
}

Result<double> PldEpsilon(std::span<const Mechanism> mechanisms, Delta delta) {
  WISP_ASSIGN_OR_RETURN(const StatedEpsilon stated, StateEpsilon(mechanisms, delta));
  return stated.epsilon;
}

Result<double> PldDelta(std::span<const Mechanism> given, double epsilon) {
  const std::vector<Mechanism> mechanisms = Sorted(given);
  if (!(epsilon >= 0)) return InvalidArgument("epsilon is ", epsilon, ", allowed are 0 and above");
  WISP_ASSIGN_OR_RETURN(const double pure, PureEpsilon(mechanisms));
  double known = epsilon >= pure ? 0 : 1;
  if (RdpMayBeBelow(mechanisms)) {
    WISP_ASSIGN_OR_RETURN(const double rdp, RdpDelta(Merge(mechanisms), epsilon));
    known = std::min(known, rdp);
  }
  return WorstDirection(mechanisms, known, kFullGrid,
                        [&](const DiscretePld& pld) { return ComputeDelta(pld, epsilon); });
}

}  // namespace wisp::privacy
