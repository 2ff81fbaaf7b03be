// Built for speed: digit by digit, within the noise for every number that is released.
#include "runtime/privacy/noise/discrete_gaussian_compare.h"

#include <algorithm>
#include <cmath>
#include <compare>

namespace wisp::privacy {
namespace {

using U128 = unsigned __int128;

// A number in [0, 2^64) with n 64-bit digits after the point; little-endian, the last limb is the whole part.
// One unit is 2^(-64 n).
using Fixed = std::vector<uint64_t>;

// value - true value| <= error units.
struct Enclosed {
  Fixed value;
  uint64_t error = 0;
};

Fixed Zero(size_t n) { return Fixed(n + 1, 0); }

Fixed One(size_t n) {
  Fixed one = Zero(n);
  one.back() = 1;
  return one;
}

bool IsZero(const Fixed& a) {
  return std::all_of(a.begin(), a.end(), [](uint64_t limb) { return limb == 0; });
}

// Compares numbers of equal length; the last limb is the most significant. (libc++ 13 has no
// lexicographical_compare_three_way.)
std::strong_ordering Compare(const Fixed& a, const Fixed& b) {
  const auto [x, y] = std::mismatch(a.rbegin(), a.rend(), b.rbegin());
  return x == a.rend() ? std::strong_ordering::equal : *x <=> *y;
}

void Add(Fixed& a, const Fixed& b) {
  U128 carry = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    carry += static_cast<U128>(a[i]) + b[i];
    a[i] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
}

void Subtract(Fixed& a, const Fixed& b) {  // a >= b
  uint64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const U128 take = static_cast<U128>(b[i]) + borrow;
    borrow = take > a[i];
    a[i] -= static_cast<uint64_t>(take);
  }
}

void AddUnits(Fixed& a, uint64_t units) {
  Fixed b(a.size(), 0);
  b[0] = units;
  Add(a, b);
}

// Computes max(0, a - units).
void SubtractUnits(Fixed& a, uint64_t units) {
  Fixed b(a.size(), 0);
  b[0] = units;
  Compare(a, b) < 0 ? std::fill(a.begin(), a.end(), 0) : Subtract(a, b);
}

// The product rounded down: off by less than one unit.
Fixed Multiply(const Fixed& a, const Fixed& b) {
  const size_t n = a.size() - 1;
  std::vector<uint64_t> product(2 * n + 2, 0);
  for (size_t i = 0; i <= n; ++i) {
    U128 carry = 0;
    for (size_t j = 0; j <= n; ++j) {
      carry += static_cast<U128>(a[i]) * b[j] + product[i + j];
      product[i + j] = static_cast<uint64_t>(carry);
      carry >>= 64;
    }
    product[i + n + 1] = static_cast<uint64_t>(carry);
  }
  return Fixed(product.begin() + static_cast<ptrdiff_t>(n), product.begin() + static_cast<ptrdiff_t>(2 * n + 1));
}

// The quotient rounded down.
void Divide(Fixed& a, uint64_t divisor) {
  U128 rest = 0;
  for (size_t i = a.size(); i-- > 0;) {
    rest = (rest << 64) | a[i];
    a[i] = static_cast<uint64_t>(rest / divisor);
    rest %= divisor;
  }
}

// numerator / denominator rounded down; numerator < denominator < 2^127. Long division, one bit at a time.
Fixed Ratio(U128 numerator, U128 denominator, size_t n) {
  Fixed ratio = Zero(n);
  for (size_t i = n; i-- > 0;) {
    for (int bit = 63; bit >= 0; --bit) {
      numerator <<= 1;
      if (numerator < denominator) continue;
      numerator -= denominator;
      ratio[i] |= uint64_t{1} << bit;
    }
  }
  return ratio;
}

// exp(-f) for f in [0, 1], f below the true value by at most one unit: the sum of (-f)^i / i!.
// Error of term i: e_0 = 0 and e_i <= (e_(i-1) + 2) / i + 1 (one unit each from f, the product and the division), hence
// e_1 <= 3, e_2 <= 3.5, and e_i <= 4 for all i. Terms alternate and fall, so the truncation error is below the first
// omitted term, which is computed as 0 and thus at most 4 units.
Enclosed ExpTaylor(const Fixed& f) {
  const size_t n = f.size() - 1;
  Fixed even = One(n), odd = Zero(n), term = One(n);
  uint64_t i = 1;
  for (;; ++i) {
    term = Multiply(term, f);
    Divide(term, i);
    if (IsZero(term)) break;
    Add(i % 2 == 0 ? even : odd, term);
  }
  const uint64_t error = 4 * (i + 1);
  // The difference is at least exp(-1) - error, so it does not go below zero.
  Subtract(even, odd);
  return {std::move(even), error};
}

// a b with a, b in [0, 1] and errors far below 2^32 units: the product of the errors is less than a unit.
Enclosed Multiply(const Enclosed& a, const Enclosed& b) { return {Multiply(a.value, b.value), a.error + b.error + 2}; }

// exp(-numerator / denominator) with n digits: exp(-fraction) times the whole-th power of exp(-1).
Enclosed Exp(U128 numerator, U128 denominator, size_t n) {
  U128 whole = numerator / denominator;
  Enclosed result = ExpTaylor(Ratio(numerator % denominator, denominator, n));
  if (whole == 0) return result;
  // Below exp(-64 n) the power is less than a unit (and the number of squarings stays small).
  if (whole > 64 * n) return {Zero(n), 1};
  Enclosed power = ExpTaylor(One(n));
  for (;;) {
    if (whole & 1) result = Multiply(result, power);
    whole >>= 1;
    if (whole == 0) return result;
    power = Multiply(power, power);
  }
}

// The lower and upper end of the known interval of W, with n >= digits of W.
void Enclose(const LazyUniform& w, size_t n, Fixed& low, Fixed& high) {
  low = Zero(n);
  for (size_t i = 0; i < w.digits().size(); ++i) low[n - 1 - i] = w.digits()[i];
  high = low;
  Fixed gap = Zero(n);
  const size_t position = 64 * n - w.num_bits();
  gap[position / 64] = uint64_t{1} << (position % 64);
  Add(high, gap);
}

// The exact order of W * scale and target, both enclosed: < 0 certainly below, > 0 certainly not below, 0 unknown.
int CompareScaled(const LazyUniform& w, const Enclosed* scale, const Enclosed& target) {
  const size_t n = target.value.size() - 1;
  Fixed low, high, target_low = target.value, target_high = target.value;
  Enclose(w, n, low, high);
  SubtractUnits(target_low, target.error);
  AddUnits(target_high, target.error);
  if (scale != nullptr) {
    Fixed scale_low = scale->value, scale_high = scale->value;
    SubtractUnits(scale_low, scale->error);
    AddUnits(scale_high, scale->error);
    low = Multiply(low, scale_low);
    high = Multiply(high, scale_high);
    AddUnits(high, 1);
  }
  if (Compare(high, target_low) <= 0) return -1;  // W < the upper end, strictly
  return Compare(low, target_high) >= 0 ? 1 : 0;
}

}  // namespace

LazyUniform::LazyUniform(RandomStream& random, uint64_t word, int num_bits)
    : random_(&random), digits_{word & ~uint64_t{0} << (64 - num_bits)}, num_bits_(static_cast<size_t>(num_bits)) {}

void LazyUniform::Append(uint64_t word) {
  const size_t known = num_bits_ % 64;
  if (known == 0) {
    digits_.push_back(word);
  } else {  // missing bits of the last digit come first, the others begin the next
    digits_.back() |= word >> known;
    digits_.push_back(word << (64 - known));
  }
  num_bits_ += 64;
}

bool BelowExp(LazyUniform& w, U128 numerator, U128 denominator) {
  for (;; w.Extend()) {
    const int order = CompareScaled(w, nullptr, Exp(numerator, denominator, w.digits().size() + 1));
    if (order != 0) return order < 0;
  }
}

const HalfGaussian::Sums& HalfGaussian::At(size_t n) {
  if (sums_.size() <= n) sums_.resize(n + 1);
  Sums& sums = sums_[n];
  if (!sums.values.empty()) return sums;
  Fixed sum = Zero(n);
  uint64_t error = 0;
  for (uint64_t k = 0;; ++k) {
    const Enclosed term = Exp(static_cast<U128>(k) * k, 2 * static_cast<U128>(sigma_) * sigma_, n);
    if (k > 0 && IsZero(term.value)) {
      // The omitted terms fall by exp(-(2 k + 1) / (2 sigma^2)) and faster, and k > sigma here, so that their sum is at
      // most the first of them, below its error, times 1 / (1 - exp(-1 / sigma)) <= sigma + 1.
      sums.total = sum;
      sums.total_error = error + (sigma_ + 1) * term.error;
      return sums;
    }
    Add(sum, term.value);
    error += term.error;
    sums.values.push_back(sum);
    sums.errors.push_back(error);
  }
}

uint64_t HalfGaussian::Draw(LazyUniform& w) {
  for (;; w.Extend()) {
    const Sums& sums = At(w.digits().size() + 1);
    const Enclosed total{sums.total, sums.total_error};
    // For certain, W is not below S(first - 1) / S(inf), and is below S(last) / S(inf).
    size_t first = 0, last = sums.values.size();
    while (first < last) {
      const size_t v = first + (last - first) / 2;
      const int order = CompareScaled(w, &total, {sums.values[v], sums.errors[v]});
      if (order == 0) break;
      order < 0 ? last = v : first = v + 1;
    }
    if (first == last && last < sums.values.size()) return last;
  }
}

double ExpNegative(uint64_t numerator, uint64_t denominator) {
  const Enclosed value = Exp(numerator, denominator, 3);
  double result = 0;  // 192 bits of a number above exp(-32): the leading ones decide
  for (size_t i = 0; i < value.value.size(); ++i) {
    result += std::ldexp(static_cast<double>(value.value[i]), 64 * (static_cast<int>(i) - 3));
  }
  return result;
}

}  // namespace wisp::privacy
