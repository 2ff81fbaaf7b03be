// Rotary positions of every table: compared with the reference in double and with complex numbers, correct and
// perturbed. The inverse rotation, which carries gradients back, is compared with dual numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <vector>

#include "kernels/reference/dual.h"
#include "kernels/reference/reference.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::rotary_test {
namespace {

// Rows of heads, and the other data of one call except the table.
struct Problem {
  Problem(size_t width, int variant, uint64_t seed)
      : random(seed),
        width(width),
        rows(1 + random() % 5),
        heads(1 + random() % 3),
        rotated(width / 2 * 2),
        first_position(random() % 4),
        pairs(variant % 2 == 0 ? RotaryPairs::kHalves : RotaryPairs::kInterleaved),
        rotation(variant / 2 % 2 == 0 ? Rotation::kForward : Rotation::kInverse),
        x(rows, heads * width, heads * width + 5),
        cos((first_position + rows) * (width / 2)),
        sin((first_position + rows) * (width / 2)) {
    if (variant >= 4) rotated = random() % (width / 2 + 1) * 2;  // some entries are not rotated
    x.Fill(random, std::normal_distribution<float>(0, 2));
    for (size_t i = 0; i < cos.cols(); ++i) {
      const double angle = std::uniform_real_distribution<double>(-10, 10)(random);
      cos.data()[i] = static_cast<float>(std::cos(angle));
      sin.data()[i] = static_cast<float>(std::sin(angle));
    }
  }
  template <class T>
  RotaryArgs<T> Args(T* to, size_t ldx, const T* cos_TP, const T* sin_TP) const {
    return {.x_RD = to,
            .ldx = ldx,
            .cos_TP = cos_TP,
            .sin_TP = sin_TP,
            .rows = rows,
            .heads = heads,
            .head_width = width,
            .rotated = rotated,
            .first_position = first_position,
            .pairs = pairs,
            .rotation = rotation};
  }
  RotaryArgs<> Args(float* to) const { return Args(to, x.ld(), cos.data(), sin.data()); }
  std::vector<double> Values() const {
    std::vector<double> values;
    for (size_t r = 0; r < rows; ++r) values.insert(values.end(), x.at(r, 0), x.at(r, 0) + heads * width);
    return values;
  }
  std::mt19937_64 random;
  size_t width, rows, heads, rotated, first_position;
  RotaryPairs pairs;
  Rotation rotation;
  GuardedMatrix x;
  Row cos, sin;
};

// Returns |a c| + |b s| of every entry, or |a s| + |b c|: the larger one.
std::vector<double> Magnitudes(const Problem& p, const std::vector<double>& x) {
  std::vector<double> magnitudes(x.size());
  for (const double sign : {1.0, -1.0}) {
    std::vector<double> y = x, c = p.cos.Double(), s = p.sin.Double();
    for (double& v : y) v = std::abs(v);
    for (double& v : c) v = std::abs(v);
    for (double& v : s) v = sign * std::abs(v);
    reference::Rotary<double>(p.Args(y.data(), p.heads * p.width, c.data(), s.data()));
    for (size_t i = 0; i < y.size(); ++i) magnitudes[i] = std::max(magnitudes[i], std::abs(y[i]));
  }
  return magnitudes;
}

double Check(const OpTable& ops, size_t width, int variant, uint64_t seed) {
  Problem p(width, variant, seed);
  std::vector<double> expected = p.Values();
  const std::vector<double> magnitudes = Magnitudes(p, expected), c = p.cos.Double(), s = p.sin.Double();
  reference::Rotary<double>(p.Args(expected.data(), p.heads * width, c.data(), s.data()));
  if (width > 0) PlanPerturbation(p.x.at(p.rows - 1, p.heads * width - 1), 1e-4);
  ops.rotary(p.Args(p.x.data()));
  ErrorMeter meter;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double actual = *p.x.at(i / (p.heads * width), i % (p.heads * width));
    meter.Add(actual, expected[i], 3 * kEpsilon * magnitudes[i]);
  }
  EXPECT_TRUE(p.x.GuardsIntact() && p.cos.GuardsIntact() && p.sin.GuardsIntact());
  return meter.worst();
}

TEST(Rotary, EqualsReferenceInDouble) { Hold<&OpTable::rotary>(21, Check, 8); }

// Without the reference's formula: pair p of a head is the number a + ib, and is multiplied by c + is.
TEST(Rotary, MultipliesPairsAsComplexNumbers) {
  for (const OpTable* ops : TestedOps()) {
    for (int variant = 0; variant < 8; ++variant) {
      Problem p(34, variant, 5);
      const std::vector<double> before = p.Values();
      ops->rotary(p.Args(p.x.data()));
      const size_t d = p.heads * p.width, num_pairs = p.rotated / 2;
      for (size_t r = 0; r < p.rows; ++r) {
        for (size_t i = 0; i < d; ++i) {
          const size_t entry = i % p.width, head = i - entry;
          if (entry >= p.rotated) {
            EXPECT_EQ(*p.x.at(r, i), before[r * d + i]);
            continue;
          }
          const bool halves = p.pairs == RotaryPairs::kHalves;
          const size_t pair = halves ? entry % num_pairs : entry / 2;
          const bool is_second = halves ? entry >= num_pairs : entry % 2 == 1;
          const double* number = &before[r * d + head];
          const std::complex<double> z(number[halves ? pair : 2 * pair],
                                       number[halves ? pair + num_pairs : 2 * pair + 1]);
          const size_t at = (p.first_position + r) * num_pairs + pair;
          std::complex<double> turn(p.cos.data()[at], p.sin.data()[at]);
          if (p.rotation == Rotation::kInverse) turn = std::conj(turn);
          EXPECT_NEAR(*p.x.at(r, i), is_second ? (z * turn).imag() : (z * turn).real(), 2e-6) << ops->name;
        }
      }
    }
  }
}

// Entries that are not rotated are not read either: they may be anything, and keep their bits.
TEST(Rotary, LeavesTheOtherEntriesAlone) {
  for (const OpTable* ops : TestedOps()) {
    for (int variant = 4; variant < 8; ++variant) {
      for (const size_t width : {1, 2, 3, 17, 40}) {
        Problem p(width, variant, 11 + width);
        const size_t d = p.heads * width;
        for (size_t r = 0; r < p.rows; ++r) {
          for (size_t i = 0; i < d; ++i) {
            if (i % width >= p.rotated) std::memset(p.x.at(r, i), static_cast<int>(0xF0 + i % 16), sizeof(float));
          }
        }
        ops->rotary(p.Args(p.x.data()));
        for (size_t r = 0; r < p.rows; ++r) {
          for (size_t i = 0; i < d; ++i) {
            unsigned char bytes[sizeof(float)], expected[sizeof(float)];
            std::memcpy(bytes, p.x.at(r, i), sizeof(float));
            std::memset(expected, static_cast<int>(0xF0 + i % 16), sizeof(float));
            if (i % width < p.rotated) {
              EXPECT_TRUE(std::isfinite(*p.x.at(r, i))) << ops->name;
            } else {
              EXPECT_EQ(std::memcmp(bytes, expected, sizeof(float)), 0) << ops->name << " width " << width;
            }
          }
        }
      }
    }
  }
}

// Rotating and rotating back gives the original, and lengths are kept, up to rounding, also that of the cosines in the
// table.
TEST(Rotary, InverseUndoesAndLengthsStay) {
  for (const OpTable* ops : TestedOps()) {
    for (int variant = 0; variant < 8; ++variant) {
      Problem p(129, variant, 17);
      const std::vector<double> before = p.Values();
      ops->rotary(p.Args(p.x.data()));
      const std::vector<double> rotated = p.Values();
      double length = 0, length_rotated = 0;
      for (size_t i = 0; i < before.size(); ++i) {
        length += before[i] * before[i];
        length_rotated += rotated[i] * rotated[i];
      }
      EXPECT_NEAR(length_rotated, length, 4 * kUlp * length) << ops->name;
      p.rotation = p.rotation == Rotation::kForward ? Rotation::kInverse : Rotation::kForward;
      ops->rotary(p.Args(p.x.data()));
      const std::vector<double> back = p.Values();
      for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(back[i], before[i], 3e-6) << ops->name;
    }
  }
}

// The gradient of <w, rotated x> is w rotated back.
TEST(Rotary, InverseOfAGradientEqualsDualNumbers) {
  using reference::Dual;
  for (const OpTable* ops : TestedOps()) {
    for (int variant = 0; variant < 8; ++variant) {
      Problem p(11, variant, 23);
      const std::vector<double> w = p.Values();  // x holds the gradient at the rotated rows
      const std::vector<double> c = p.cos.Double(), s = p.sin.Double();
      const std::vector<Dual> cd(c.begin(), c.end()), sd(s.begin(), s.end());
      std::vector<double> derivatives(w.size());
      for (size_t i = 0; i < w.size(); ++i) {
        std::vector<Dual> x(w.size(), Dual(0.5));
        x[i].derivative = 1;
        reference::Rotary<Dual>(p.Args(x.data(), p.heads * p.width, cd.data(), sd.data()));
        for (size_t j = 0; j < w.size(); ++j) derivatives[i] += w[j] * x[j].derivative;
      }
      p.rotation = p.rotation == Rotation::kForward ? Rotation::kInverse : Rotation::kForward;
      ops->rotary(p.Args(p.x.data()));
      const std::vector<double> back = p.Values();
      for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(back[i], derivatives[i], 3e-6) << ops->name << " " << i;
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::rotary_test
