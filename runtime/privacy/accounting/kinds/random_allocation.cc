// Built for speed: convolutions of a few thousand points.

// The cost of an epoch in which every record takes part in exactly one of t steps.
//
//   The pair     P = (1/t) sum_i N(e_i, s^2 I_t) and Q = N(0, s^2 I_t) dominate an epoch, however the contributions
//       depend on earlier steps (Feldman and Shenfeld 2025, arXiv 2502.08202), for one record more or less and for one
//       that contributes nothing. Their ratio is R = (Y_1 + ... + Y_t) / t with Y_i = exp((2 x_i - 1) / (2 s^2)):
//       under Q these are independent lognormals of mean 1. Epochs compose.
//   The bound    With the record against without it, delta(epsilon) = E_Q max(0, R - e^epsilon); the other way round it
//       is E_Q max(0, 1 - e^epsilon R). Both, and the moments of Renyi divergences, are expectations of convex
//       functions of R. So they only rise if a value of a Y, or of a sum of some, is replaced by a random choice
//       between the two grid points around it that has this value as its mean. All sums are kept on grids e^(i h):
//       there e^(i h) + e^(j h) lies at the same place between two grid points for all i and j of one difference. All
//       terms are positive, so even the smallest mass keeps its leading digits. The last grid is that of the losses.
//   Left out     Tails below 1e-20 are left out, of single Ys and of sums. Let A be the event that some part of R is in
//       one. A adds at most E_Q[R; A] to the first delta and Q(A) to the second: this mass goes to infinity.
//   Rounding     Masses are sums of positive terms, and have relative errors of some thousand 2^-53 for each of at most
//       21 convolutions. A split moves the mean of a sum by at most 4 2^-53 of it, all splits that of R by 1e-14: as
//       much as if epsilon were larger by 1e-14. Losses have standard deviations of 1e-7 and more, so this changes no
//       delta that counts by more than 1e-6 of it. The masses are raised by kAllowance for both.
#include "runtime/privacy/accounting/kinds/random_allocation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <Eigen/Core>

#include "runtime/core/platform.h"
#include "runtime/privacy/accounting/kinds/rounding.h"
#include "runtime/privacy/accounting/mechanism_kind.h"

namespace wisp::privacy {
namespace {

// The most points of a sum. A grid that could be twice as fine with this number of points is made so. What a grid adds
// to epsilon grows with the square of its step. So a glance is 7^2 - 1 = 16 (2^2 - 1) as far above the full figure as
// that is above the truth, sixteen times as far as a quick one, which a calibration counts on. On all grids the
// quadrature of OneTerm is exact to a relative 1e-7.
constexpr size_t CountPoints(Fineness fineness) {
  if (fineness == Fineness::kFull) return 4096;
  return fineness == Fineness::kQuick ? 2048 : 585;
}
constexpr double kLeftOut = 1e-20;
constexpr double kAllowance = 2e-6;
// Moments are computed up to the largest order of the filter (privacy_filter.h). The logarithm of one has an error
// below kMomentRounding.
constexpr uint32_t kMostMoments = 512;
constexpr double kMomentRounding = 1e-9;

// A sum of some of the t numbers Y_i / t.
struct AllocationSum {
  double share = 0;                // of the t numbers: the mean under Q
  double step = 0;                 // h
  int64_t first = 0;               // mass[i] lies at e^((first + i) h)
  std::vector<double> mass;        // under Q
  double lost = 0, lost_mean = 0;  // Q(A), and the part of the mean that lies in A
  double fall = 0;                 // splits brought the sum down to no less than e^-fall times what it was

  int64_t last() const { return first + static_cast<int64_t>(mass.size()) - 1; }
  double ValueAt(size_t i) const { return std::exp(static_cast<double>(first + static_cast<int64_t>(i)) * step); }
};

// Y / t, by a quadrature of four points in each interval, whose error is far below rounding.
AllocationSum OneTerm(double noise, double t, size_t points) {
  constexpr double kNodes[] = {0.069431844202973712, 0.33000947820757187, 0.66999052179242813, 0.93056815579702629};
  constexpr double kWeights[] = {0.17392742256872693, 0.32607257743127307, 0.32607257743127307, 0.17392742256872693};
  const double deviations = std::sqrt(2 * std::log(t / kLeftOut)), log_t = std::log(t);
  // z is the outcome in standard deviations; under P, which weighs by Y, it has the mean 1 / noise.
  const double low = (-deviations - 0.5 / noise) / noise - log_t, high = (deviations + 0.5 / noise) / noise - log_t;
  AllocationSum y{.share = 1 / t, .step = (high - low) / static_cast<double>(points)};
  y.first = static_cast<int64_t>(std::floor(low / y.step));
  const auto last = static_cast<int64_t>(std::ceil(high / y.step));
  y.mass.assign(static_cast<size_t>(last - y.first + 1), 0.0);
  const double scale = noise * y.step / std::sqrt(2 * std::numbers::pi), spread = std::expm1(y.step);
  for (size_t i = 0; i + 1 < y.mass.size(); ++i) {
    const double from = static_cast<double>(y.first + static_cast<int64_t>(i)) * y.step;
    for (size_t k = 0; k < std::size(kNodes); ++k) {
      const double inside = kNodes[k] * y.step, z = noise * (from + inside + log_t) + 0.5 / noise;
      const double mass = kWeights[k] * scale * std::exp(-z * z / 2), up = std::expm1(inside) / spread;
      y.mass[i] += mass * (1 - up);
      y.mass[i + 1] += mass * up;
    }
  }
  // Both tails of a normal beyond d deviations have less than exp(-d^2 / 2).
  y.fall = y.step;
  y.lost = kLeftOut / t;
  y.lost_mean = kLeftOut / t / t;
  return y;
}

// Leaves out both tails: that below has little mass under Q, that above little of the mean.
void TrimSum(AllocationSum& sum) {
  const double cut = kLeftOut * sum.share;
  size_t begin = 0, end = sum.mass.size();
  for (double below = 0; begin + 1 < end && (below += sum.mass[begin]) < cut; ++begin) {
    sum.lost += sum.mass[begin];
    sum.lost_mean += sum.mass[begin] * sum.ValueAt(begin);
  }
  for (double above = 0; begin + 1 < end && (above += sum.mass[end - 1] * sum.ValueAt(end - 1)) < cut; --end) {
    sum.lost += sum.mass[end - 1];
    sum.lost_mean += sum.mass[end - 1] * sum.ValueAt(end - 1);
  }
  sum.mass = std::vector<double>(sum.mass.begin() + static_cast<ptrdiff_t>(begin),
                                 sum.mass.begin() + static_cast<ptrdiff_t>(end));
  sum.first += static_cast<int64_t>(begin);
}

// Adds a point between any two of the grid.
AllocationSum Finer(const AllocationSum& sum) {
  AllocationSum finer = sum;
  finer.step /= 2;
  finer.first *= 2;
  finer.mass.assign(2 * sum.mass.size() - 1, 0.0);
  for (size_t i = 0; i < sum.mass.size(); ++i) finer.mass[2 * i] = sum.mass[i];
  return finer;
}

// The place of e^(i h) + e^((i - d) h): `up` of its mass lies at point i + offset + 1, `stays` at i + offset.
struct SumPlace {
  SumPlace(int64_t d, double step) {
    const double log = std::log1p(std::exp(-static_cast<double>(d) * step)), floor = std::floor(log / step);
    offset = static_cast<int64_t>(floor);
    up = std::clamp(std::expm1(log - floor * step) / std::expm1(step), 0.0, 1.0);
    stays = 1 - up;
  }
  int64_t offset;
  double up, stays;
};

constexpr int64_t kAtOnce = 8;
using MassBlock = Eigen::Array<double, kAtOnce, 1>;
using MassBlockAt = Eigen::Map<const MassBlock>;

// Adds `weight` times the sums of an x of `large` and a y of `small` that lies from `least` to `most` points below it;
// places[d] is theirs at distance d, and lower[0] lies at point `origin`. Sums of one x whose distances have the same
// offset lie between the same two points: their masses are added up before they are multiplied by that of x, for a
// block of xs at a time.
void AddPairs(const AllocationSum& large, const AllocationSum& small, int64_t least, int64_t most,
              const std::vector<SumPlace>& places, double weight, int64_t origin, std::vector<double>& lower,
              std::vector<double>& upper) {
  const auto count = static_cast<int64_t>(small.mass.size());
  std::vector<double> x(large.mass), y(small.mass.size() + 2 * kAtOnce, 0.0);
  x.resize(x.size() + kAtOnce, 0.0);
  std::copy(small.mass.begin(), small.mass.end(), y.begin() + kAtOnce);
  for (int64_t first = least, end; first <= most; first = end) {
    const int64_t offset = places[static_cast<size_t>(first)].offset;
    for (end = first; end <= most && places[static_cast<size_t>(end)].offset == offset;) ++end;
    // y has an index of x minus d plus shift.
    const int64_t shift = large.first - small.first;
    const int64_t last = std::min(static_cast<int64_t>(large.mass.size()), end + count - shift - 1);
    for (int64_t i = std::max<int64_t>(0, first - shift); i < last; i += kAtOnce) {
      MassBlock low = MassBlock::Zero(), high = MassBlock::Zero();
      const int64_t to = std::min(end, i + shift + kAtOnce);
      for (int64_t d = std::max(first, i + shift - count + 1); d < to; ++d) {
        const MassBlock masses = MassBlockAt(&y[static_cast<size_t>(kAtOnce + i + shift - d)]);
        low += masses * places[static_cast<size_t>(d)].stays;
        high += masses * places[static_cast<size_t>(d)].up;
      }
      const MassBlock at = MassBlockAt(&x[static_cast<size_t>(i)]) * weight;
      const auto out = static_cast<size_t>(large.first + i + offset - origin);
      Eigen::Map<MassBlock>(&lower[out]) += at * low;
      Eigen::Map<MassBlock>(&upper[out]) += at * high;
    }
  }
}

// The sum of two independent ones on the same grid.
AllocationSum Add(const AllocationSum& a, const AllocationSum& b) {
  std::vector<SumPlace> places;
  for (int64_t d = 0; d <= std::max(a.last() - b.first, b.last() - a.first); ++d) places.emplace_back(d, a.step);
  AllocationSum sum{
      .share = a.share + b.share, .step = a.step, .first = std::max(a.first, b.first) + places.back().offset};
  sum.fall = std::max(a.fall, b.fall) + a.step;
  sum.lost = a.lost + b.lost;
  sum.lost_mean = a.lost_mean + b.lost * a.share + b.lost_mean + a.lost * b.share;
  const int64_t last = std::max(a.last(), b.last()) + places.front().offset + 1;
  std::vector<double> lower(static_cast<size_t>(last - sum.first + 1 + kAtOnce), 0.0), upper = lower;
  const auto add = [&](const AllocationSum& large, const AllocationSum& small, int64_t least, int64_t most,
                       double weight) { AddPairs(large, small, least, most, places, weight, sum.first, lower, upper); };
  const bool same = &a == &b;
  add(a, b, 0, same ? 0 : a.last() - b.first, 1);
  add(b, a, 1, b.last() - a.first, same ? 2 : 1);
  for (size_t i = 1; i < lower.size(); ++i) lower[i] += upper[i - 1];
  lower.resize(lower.size() - kAtOnce);
  sum.mass = std::move(lower);
  TrimSum(sum);
  return sum;
}

// Halving t again and again leaves at most two sizes of sums at a time, that of t / 2^j rounded down and up. Below the
// last odd one only the first is needed.
AllocationSum SumTerms(double noise, uint64_t t, size_t points) {
  int halvings = 0;
  while (t >> halvings > 1) ++halvings;
  AllocationSum low = OneTerm(noise, static_cast<double>(t), points), high = Add(low, low);  // of 1 and 2 terms
  for (int j = halvings - 1; j >= 0; --j) {
    // low has m = t / 2^(j + 1) terms, rounded down, and high m + 1.
    const bool odd = (t >> j) % 2 == 1, needs_high = t % (uint64_t{1} << j) != 0;
    AllocationSum next = odd ? Add(low, high) : Add(low, low);
    if (needs_high) high = odd ? Add(high, high) : Add(low, high);
    low = std::move(next);
    if (2 * std::max(low.mass.size(), needs_high ? high.mass.size() : 0) > points) continue;
    low = Finer(low);
    if (needs_high) high = Finer(high);
  }
  return low;
}

// The logarithms of E_Q R^a for a = 0, 1, ... kMostMoments. The moments of a mean of n + m numbers are those of two
// means, mixed by binomial weights. They are sums of positive terms.
using LogMoments = std::vector<double>;

LogMoments MixMoments(const LogMoments& a, double n, const LogMoments& b, double m) {
  std::vector<double> log_factorial(kMostMoments + 1, 0.0);
  for (size_t k = 1; k <= kMostMoments; ++k) log_factorial[k] = log_factorial[k - 1] + std::log(static_cast<double>(k));
  const double log_n = std::log(n / (n + m)), log_m = std::log(m / (n + m));
  LogMoments mixed(kMostMoments + 1, 0.0);
  std::vector<double> terms(kMostMoments + 1);
  for (size_t order = 2; order <= kMostMoments; ++order) {
    for (size_t k = 0; k <= order; ++k) {
      const double log_weight = log_factorial[order] - log_factorial[k] - log_factorial[order - k] +
                                static_cast<double>(k) * log_n + static_cast<double>(order - k) * log_m;
      terms[k] = log_weight + a[k] + b[order - k];
    }
    const double top = *std::max_element(terms.begin(), terms.begin() + static_cast<ptrdiff_t>(order) + 1);
    double sum = 0;
    for (size_t k = 0; k <= order; ++k) sum += terms[k] - top > -50 ? std::exp(terms[k] - top) : 0;
    mixed[order] = top + std::log(sum);
  }
  return mixed;
}

LogMoments MeanMoments(double noise, uint64_t t) {
  LogMoments power(kMostMoments + 1), all;
  for (size_t a = 0; a < power.size(); ++a) {
    const auto order = static_cast<double>(a);
    power[a] = order * (order - 1) / (2 * noise * noise);
  }
  double size = 1, all_size = 0;
  for (uint64_t rest = t;; rest /= 2) {
    if (rest % 2 == 1) {
      all = all.empty() ? power : MixMoments(all, all_size, power, size);
      all_size += size;
    }
    if (rest == 1) return all;
    power = MixMoments(power, size, power, size);
    size *= 2;
  }
}

// The logarithm of E_Q R^-c, an upper bound. Outside of A it is the grid's. In A, for any s > 1 (Hoelder),
//   E[R^-c; A] <= Q(A)^(1 - 1/s) E[R^(-s c)]^(1/s),
// and R is at least the geometric mean of the Ys, times e^-fall, so that the last factor is at most
// exp(c (1 + s c / t) / (2 noise^2) + c fall).
double LogInverseMoment(const AllocationSum& ratio, double noise, double t, double c) {
  double log_moment = -kInfinity;
  for (size_t i = 0; i < ratio.mass.size(); ++i) {
    if (ratio.mass[i] > 0) log_moment = LogAddExp(log_moment, std::log(ratio.mass[i]) - c * std::log(ratio.ValueAt(i)));
  }
  double left_out = kInfinity;
  for (double s = 2; s <= 1024; s *= 2) {
    left_out = std::min(left_out,
                        (1 - 1 / s) * std::log(ratio.lost) + c * ((1 + s * c / t) / (2 * noise * noise) + ratio.fall));
  }
  return LogAddExp(log_moment, left_out);
}

// One epoch.
struct EpochCosts {
  double noise = 0;
  uint64_t t = 0;
  Fineness fineness = {};
  AllocationSum ratio;
  LogMoments moments;  // empty until they are asked for
};

// Caches the three newest epochs that this thread asked for, of up to 70 KB each. An accountant asks for one direction
// on two grids, and for the other on coarser ones; a filter asks for thirty orders.
EpochCosts& GetEpochCosts(const Mechanism& m, Fineness fineness) {
#if defined(_WIN32)
  auto& newest = platform::PerThread<std::vector<EpochCosts>>();
#else
  static thread_local std::vector<EpochCosts> newest;
#endif
  constexpr size_t kMostEpochs = 3;
  const auto t = static_cast<uint64_t>(m.Parameter("epoch_steps"));
  const double noise = m.noise_multiplier();
  const auto known = std::find_if(newest.begin(), newest.end(), [&](const EpochCosts& c) {
    return c.noise == noise && c.t == t && c.fineness == fineness;
  });
  if (known != newest.end()) return *known;
  if (newest.size() == kMostEpochs) newest.erase(newest.begin());
  return newest.emplace_back(EpochCosts{noise, t, fineness, SumTerms(noise, t, CountPoints(fineness)), {}});
}

LossRange AllocationRange(const Mechanism& m, Direction direction, Fineness fineness) {
  const AllocationSum& ratio = GetEpochCosts(m, fineness).ratio;
  const double low = static_cast<double>(ratio.first) * ratio.step,
               high = static_cast<double>(ratio.last()) * ratio.step;
  return direction == Direction::kRemove ? LossRange{low, high} : LossRange{-high, -low};
}

DiscretePld DiscretiseAllocation(const Mechanism& m, Direction direction, double step, Fineness fineness) {
  const AllocationSum& ratio = GetEpochCosts(m, fineness).ratio;
  DiscretePld pld{.step = ratio.step, .first = ratio.first, .mass = ratio.mass};
  if (direction == Direction::kRemove) {
    for (size_t i = 0; i < pld.mass.size(); ++i) pld.mass[i] *= ratio.ValueAt(i);
    pld.infinity = ratio.lost_mean;
  } else {
    std::reverse(pld.mass.begin(), pld.mass.end());
    pld.first = -ratio.last();
    pld.infinity = ratio.lost;
  }
  for (double& mass : pld.mass) mass *= 1 + kAllowance;
  return Regrid(pld, step);
}

// (order - 1) times the Renyi divergence of one epoch, the larger of both directions, at an order up to kMostMoments.
double EpochLogMoment(const Mechanism& m, uint32_t order) {
  if (order < 2) return 0;
  EpochCosts& costs = GetEpochCosts(m, Fineness::kFull);
  if (costs.moments.empty()) costs.moments = MeanMoments(costs.noise, costs.t);
  const double add = LogInverseMoment(costs.ratio, costs.noise, static_cast<double>(costs.t), order - 1);
  return std::max({0.0, costs.moments[order], add}) + kMomentRounding;
}

double AllocationStepRdp(const Mechanism& m, uint32_t order) {
  return order <= kMostMoments ? EpochLogMoment(m, order) / (order - 1) : kInfinity;
}

// Between whole orders the logarithm of a moment lies below the line through theirs: it is convex.
double AllocationRdp(const Mechanism& m, double order) {
  if (!(order < kMostMoments)) return kInfinity;
  const double below = std::floor(order), part = order - below;
  const auto whole = static_cast<uint32_t>(below);
  const double log_moment = (1 - part) * EpochLogMoment(m, whole) + part * EpochLogMoment(m, whole + 1);
  return static_cast<double>(m.steps()) * log_moment / (order - 1);
}

// Each epoch adds the variance of R under Q.
double AllocationMuSquared(const Mechanism& m) {
  const double s = m.noise_multiplier(), epochs = static_cast<double>(m.steps());
  return epochs * std::expm1(1 / (s * s)) / m.Parameter("epoch_steps");
}

Status CheckAllocation(const Mechanism& m) {
  if (m.adjacency() != Adjacency::kReplaceOne) return OkStatus();
  return PrivacyRefused(
      "random allocation under replace_one adjacency: its cost is proved here for add_remove and "
      "zero_out only");
}

}  // namespace

Result<Mechanism> RandomAllocation(const RandomAllocationOptions& o) {
  return Mechanism::Make(kRandomAllocationKind, {o.noise_multiplier, static_cast<double>(o.epoch_steps)}, o.epochs,
                         o.adjacency);
}

constinit const MechanismKind kRandomAllocationKind{
    .word = "random_allocation",
    .in_words = "Gaussian with random allocation",
    .unit = "epoch",
    .is_sample = false,
    .sampling = "random allocation",
    .participation =
        "in every epoch each record took part in exactly one step, which was chosen at random for it alone "
        "and is not released",
    .released = nullptr,
    .parameters = {{{"noise_multiplier", "noise multiplier", 0.1, 1e4, "0.1 to 1e4"},
                    {"epoch_steps", "steps of an epoch", 1, 0x1p20, "1 to 2^20", true}}},
    .steps_of_unit = [](const Mechanism& m) { return static_cast<uint64_t>(m.Parameter("epoch_steps")); },
    .check = CheckAllocation,
    .pure_epsilon = nullptr,
    .rdp = AllocationRdp,
    .rdp_of_step = AllocationStepRdp,
    .gdp_mu_squared = AllocationMuSquared,
    .fits_grid = [](const Mechanism&) { return true; },
    .is_symmetric = [](const Mechanism& m) { return m.Parameter("epoch_steps") == 1; },
    .as_one_gaussian = nullptr,
    .range = AllocationRange,
    .discretise = DiscretiseAllocation,
    .compose_alone = nullptr,
    .is_no_more_than = nullptr,
    .rounded_up = nullptr,
};

}  // namespace wisp::privacy
