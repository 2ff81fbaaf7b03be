// Built for speed: transforms of the accountant's grid.

// GCC would call a function for each product of complex numbers, in case one is infinite: 8 KB, with the same bits.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("cx-limited-range")
#endif

// Self-composition of discretised privacy loss distributions by FFT, with every error accounted for.
//
// The sum of independent losses is computed on a circle of N points that covers [low, high]. True mass outside of it
// wraps around: mass above `high` would come out too low, so its Chernoff bound is added to infinity; mass below `low`
// comes out too high, which is safe. Rounding of the transforms is bounded to first order:
//
//   forward    normwise error of a transform: |dF_k| <= e = c u log2(N) ||p||_2, per coefficient in the mean square
//   power      |d(F^T)_k| <= T |F_k|^(T-1) e for each factor, times the other factors
//   inverse    ||d p||_1 <= sqrt(N) ||d p||_2 = ||d F||_2, plus the inverse's own c u log2(N) ||F||_2
//
// with u = 2^-53 and c = 4, on the safe side of the usual error analyses of radix-2 transforms. The bound goes to
// infinity as well. Terms that occur once and have mass on few points (samples of a randomised response) are convolved
// directly instead: their transforms do not decay, and the bound would exceed the deltas of interest.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include <unsupported/Eigen/FFT>

#include "runtime/privacy/accounting/pld.h"

namespace wisp::privacy {
namespace {

using Complex = std::complex<double>;

constexpr double kLogTail = 40;  // e^-40 = 4e-18 at either end is outside the range
constexpr double kTransformConstant = 4;
constexpr ptrdiff_t kFewPoints = 512;
constexpr uint64_t kSmallCount = 256;
constexpr size_t kManyTerms = 8;

thread_local uint64_t transformed_points = 0;

double LossAt(const DiscretePld& pld, size_t i) {
  return static_cast<double>(pld.first + static_cast<int64_t>(i)) * pld.step;
}

// log of sum mass * exp(t * loss); the sum of the terms' logs, each times its count, is the composition's cumulant. It
// starts at the largest exp(t * loss), and ends where no mass that is left can change the sum.
double Cumulant(const DiscretePld& pld, double t) {
  constexpr double kNothing = 0x1p-60;
  double top = -1e300;
  for (size_t end : {size_t{0}, pld.mass.size() - 1}) top = std::max(top, t * LossAt(pld, end));
  double sum = 0;
  const double factor = std::exp(t * pld.step);
  double weight = 1;  // exp(t loss - top)
  if (t >= 0) {
    for (size_t i = pld.mass.size(); i-- > 0 && weight > kNothing * sum;) {
      sum += pld.mass[i] * weight;
      weight /= factor;
    }
  } else {
    for (size_t i = 0; i < pld.mass.size() && weight > kNothing * sum; ++i) {
      sum += pld.mass[i] * weight;
      weight *= factor;
    }
  }
  return top + std::log(sum);
}

double Cumulant(const std::vector<PldPower>& terms, double t) {
  double sum = 0;
  for (const PldPower& term : terms) sum += static_cast<double>(term.count) * Cumulant(term.pld, t);
  return sum;
}

// Losses above this bound have mass at most exp(-log_tail), whatever t is. sign -1 gives the mirror image.
double ChernoffBound(const std::vector<PldPower>& terms, double log_tail, double sign, double t) {
  return (Cumulant(terms, sign * t) + log_tail) / t;
}

// The t of the smallest bound. The bound is unimodal in t: golden section search over the logarithm.
double BestTilt(const std::vector<PldPower>& terms, double log_tail, double sign) {
  const auto bound = [&](double log_t) { return ChernoffBound(terms, log_tail, sign, std::exp(log_t)); };
  double a = std::log(1e-4), b = std::log(1e5);
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double c = b - golden * (b - a), d = a + golden * (b - a), fc = bound(c), fd = bound(d);
  for (int i = 0; i < 24; ++i) {
    if (fc < fd) {
      b = d, d = c, fd = fc;
      c = b - golden * (b - a), fc = bound(c);
    } else {
      a = c, c = d, fc = fd;
      d = a + golden * (b - a), fd = bound(d);
    }
  }
  return std::exp(fc < fd ? c : d);
}

size_t NextSize(double points) {
  size_t n = 1024;
  while (static_cast<double>(n) < points) n = n % 3 == 0 ? n / 3 * 4 : n / 2 * 3;  // 2^k and 3 * 2^k
  return n;
}

double SumSquares(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return sum;
}

// p on the circle: the loss (first + i) * step is at index (first + i) mod n.
std::vector<double> OnCircle(const DiscretePld& pld, size_t n) {
  std::vector<double> circle(n, 0.0);
  const auto size = static_cast<int64_t>(n);
  auto index = static_cast<size_t>((pld.first % size + size) % size);
  for (const double mass : pld.mass) {
    circle[index] += mass;
    if (++index == n) index = 0;
  }
  return circle;
}

Complex Power(Complex z, double count) {
  const double modulus = std::abs(z);
  if (modulus == 0) return 0;
  return std::polar(std::exp(count * std::log(modulus)), std::remainder(count * std::arg(z), 2 * std::numbers::pi));
}

// By multiplication: faster than Power for small counts. Each product has an error of at most sqrt(5) 2^-53, so that of
// the result is within the 4 count 2^-53 that TransformAll allows for.
Complex SmallPower(Complex z, uint64_t count) {
  Complex power = 1;
  for (; count > 0; count /= 2) {
    if (count % 2 == 1) power *= z;
    z *= z;
  }
  return power;
}

// The transform of a composition, and the sums that bound its rounding. Vectors of the circle's size are most of an
// accountant's memory; none is held longer than it is read.
struct Spectrum {
  std::vector<Complex> product;
  double forward_squares = 0, squares = 0;
};

Spectrum TransformAll(const std::vector<PldPower>& terms, size_t n, Eigen::FFT<double>& fft) {
  const double u = std::numeric_limits<double>::epsilon() / 2, logn = std::log2(static_cast<double>(n));
  Spectrum all;
  std::vector<double> relative(n / 2 + 1, 0.0);  // bound on |dF| / |F|, summed over the factors
  for (const PldPower& term : terms) {
    std::vector<double> circle = OnCircle(term.pld, n);
    const double error = kTransformConstant * u * logn * std::sqrt(SumSquares(circle));
    const double count = static_cast<double>(term.count);
    const bool small = term.count != 1 && term.count <= kSmallCount && terms.size() > kManyTerms;
    std::vector<Complex> spectrum;
    fft.fwd(spectrum, circle);
    circle = {};
    // The power of anything smaller is 0 in doubles. That is nearly all of a long run, which is smooth.
    const double smallest = term.count == 1 ? 0 : std::exp(-750 / count);
    for (size_t k = 0; k < spectrum.size(); ++k) {
      if (std::norm(spectrum[k]) < smallest * smallest || (!all.product.empty() && all.product[k] == 0.0)) {
        spectrum[k] = 0;
        continue;
      }
      relative[k] += count * error / std::max(1e-300, std::abs(spectrum[k])) + 4 * count * u;
      if (small) {
        spectrum[k] = SmallPower(spectrum[k], term.count);
      } else if (term.count != 1) {
        spectrum[k] = Power(spectrum[k], count);
      }
      if (!all.product.empty()) spectrum[k] *= all.product[k];
    }
    all.product = std::move(spectrum);
  }
  for (size_t k = 0; k < all.product.size(); ++k) {
    const double modulus = std::norm(all.product[k]);
    if (modulus == 0) continue;
    all.forward_squares += 2 * modulus * relative[k] * relative[k];
    all.squares += 2 * modulus;
  }
  return all;
}

// The largest possible sum of the losses.
double LargestSum(const std::vector<PldPower>& terms) {
  double sum = 0;
  for (const PldPower& term : terms)
    sum += static_cast<double>(term.count) * LossAt(term.pld, term.pld.mass.size() - 1);
  return sum;
}

// A composition with all its mass at its largest loss, for grids with too many points: that loss bounds its cost.
DiscretePld AtItsLargest(const std::vector<PldPower>& terms, double largest) {
  const double step = terms.front().pld.step, index = std::ceil(largest / step);
  constexpr double kLargestIndex = 1e18;
  if (!(std::abs(index) < kLargestIndex)) return {.step = step, .mass = {0.0}, .infinity = 1};
  DiscretePld composed{
      .step = step, .first = static_cast<int64_t>(index), .mass = {1.0}, .infinity = 2 * std::exp(-kLogTail)};
  for (const PldPower& term : terms) composed.infinity += static_cast<double>(term.count) * term.pld.infinity;
  return composed;
}

DiscretePld ComposeByTransform(const std::vector<PldPower>& terms, const Tilts& tilts) {
  const double step = terms.front().pld.step;
  const LossRange range = ComposedRange(terms, tilts);
  // The accountant asks for 2^19 points, and gets more if a step's losses are smaller than the grid step and there are
  // many steps. No test of this library has more than 2^19; a crafted ledger asked for 2^24, which takes 0.7 GB and 12
  // s.
  constexpr double kMostPoints = 1 << 22;
  const double points = (range.high - range.low) / step + 4;
  // With losses close to 0 the bound over t is only rounding error, and its ends may be exchanged.
  if (!(points >= 4)) return AtItsLargest(terms, LargestSum(terms));
  if (!(points <= kMostPoints)) return AtItsLargest(terms, range.high);
  const auto first = static_cast<int64_t>(std::floor(range.low / step));
  const size_t n = NextSize(points);
  Eigen::FFT<double> fft;
  fft.SetFlag(Eigen::FFT<double>::HalfSpectrum);
  const Spectrum spectrum = TransformAll(terms, n, fft);
  DiscretePld composed{.step = step, .first = first, .mass = std::vector<double>(n)};
  fft.inv(composed.mass, spectrum.product);
  transformed_points += (terms.size() + 1) * n;
  const auto size = static_cast<int64_t>(n);
  std::rotate(composed.mass.begin(), composed.mass.begin() + static_cast<ptrdiff_t>((first % size + size) % size),
              composed.mass.end());
  for (double& mass : composed.mass) mass = std::max(0.0, mass);
  const double u = std::numeric_limits<double>::epsilon() / 2, logn = std::log2(static_cast<double>(n));
  composed.infinity = 2 * std::exp(-kLogTail) + std::sqrt(spectrum.forward_squares) +
                      kTransformConstant * u * logn * std::sqrt(spectrum.squares);
  for (const PldPower& term : terms) composed.infinity += static_cast<double>(term.count) * term.pld.infinity;
  return composed;
}

bool IsSparse(const PldPower& term) {
  const std::vector<double>& mass = term.pld.mass;
  return term.count == 1 && std::count_if(mass.begin(), mass.end(), [](double m) { return m > 0; }) <= kFewPoints;
}

}  // namespace

uint64_t TransformedPoints() { return transformed_points; }

Tilts BestTilts(const std::vector<PldPower>& terms) {
  return {BestTilt(terms, kLogTail, -1), BestTilt(terms, kLogTail, 1)};
}

LossRange ComposedRange(const std::vector<PldPower>& terms, const Tilts& tilts) {
  double lowest = 0, highest = 0;
  for (const PldPower& term : terms) {
    lowest += static_cast<double>(term.count) * LossAt(term.pld, 0);
    highest += static_cast<double>(term.count) * LossAt(term.pld, term.pld.mass.size() - 1);
  }
  return {std::max(lowest, -ChernoffBound(terms, kLogTail, -1, tilts.low)),
          std::min(highest, ChernoffBound(terms, kLogTail, 1, tilts.high))};
}

DiscretePld Compose(const std::vector<PldPower>& terms, const std::optional<Tilts>& tilts) {
  std::vector<PldPower> sparse, rest;
  for (const PldPower& term : terms) (IsSparse(term) ? sparse : rest).push_back(term);
  if (sparse.empty()) return ComposeByTransform(rest, tilts ? *tilts : BestTilts(rest));
  DiscretePld all{.step = terms.front().pld.step, .mass = {1.0}};
  if (!rest.empty()) {
    all = ComposeByTransform(rest, BestTilts(rest));
    TrimTails(all, all.infinity);  // the rounding error, which fills the whole circle
  }
  for (const PldPower& term : sparse) all = ConvolveDirectly(all, term.pld);
  return all;
}

}  // namespace wisp::privacy

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
