// The integer grid: how much a record may add, the noise for it, and the cost of discreteness.
#include "runtime/privacy/noise/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/privacy/noise/random.h"

namespace wisp::privacy::exact_sum_test {
namespace {

TEST(ExactGrid, ValidateNamesWhatIsOutOfRange) {
  const ExactGrid::Options good{.clipping_norm = 1, .num_coordinates = 1000, .noise_multiplier = 1};
  EXPECT_TRUE(ExactGrid::Validate(good).ok());
  auto bad = good;
  for (double c : {0.0, -1.0, 1e30, std::nan(""), double{INFINITY}}) {
    bad.clipping_norm = c;
    EXPECT_EQ(ExactGrid::Validate(bad).code(), StatusCode::kInvalidArgument) << c;
  }
  bad = good;
  for (uint64_t p : {uint64_t{0}, ExactGrid::kMaxCoordinates + 1}) {
    bad.num_coordinates = p;
    EXPECT_EQ(ExactGrid::Validate(bad).code(), StatusCode::kInvalidArgument) << p;
  }
  bad = good;
  for (double z : {0.0, -0.5, 1e7, std::nan("")}) {
    bad.noise_multiplier = z;
    EXPECT_EQ(ExactGrid::Validate(bad).code(), StatusCode::kInvalidArgument) << z;
    EXPECT_NE(ExactGrid::Validate(bad).message().find("noise multiplier"), std::string::npos);
  }
}

// A record with the gradient g and a norm that is understated by 1e-5, rounded in float like the kernels do.
double SumSquaresOnGrid(const ExactGrid& grid, const std::vector<float>& g) {
  double norm = 0;
  for (float x : g) norm += static_cast<double>(x) * x;
  norm = std::sqrt(norm) * (1 - 1e-5);
  const float clip = static_cast<float>(grid.reduced_clipping_norm() / norm);
  const float scale = clip * static_cast<float>(grid.steps_per_unit());
  double sum = 0;
  for (float x : g) {
    const double r = std::nearbyint(x * scale);
    EXPECT_LE(std::abs(r), 0x1p30);
    sum += r * r;
  }
  return sum;
}

TEST(ExactGrid, AnHonestRecordStaysWithinAndWastesLittle) {
  auto random = RandomStream::Reproducible(1, StreamPurpose::kInitialisation);
  for (double c : {1.0, 0.1, 3.7, 1e-6}) {
    for (size_t p : {1, 2, 33, 1000, 275000}) {
      const ExactGrid grid(c, p);
      std::vector<float> g(p);
      for (float& x : g) x = static_cast<float>(random.Normal() * 1e-3);
      const double sum = SumSquaresOnGrid(grid, g);
      EXPECT_LE(sum, 0x1p60) << "clipping norm " << c << ", " << p << " coordinates";
      EXPECT_TRUE(grid.Within(sum));
      EXPECT_GT(std::sqrt(sum), 0x1p30 * 0.9999);
    }
  }
}

// Every coordinate is just above one half of a step, so rounding doubles each of them. Without the reduction by sqrt(P)
// / 2 the record would exceed the bound.
TEST(ExactGrid, RoundingOfManySmallCoordinatesIsAllowedFor) {
  constexpr uint64_t kCoordinates = uint64_t{1} << 32;
  const ExactGrid grid(1, kCoordinates);
  const double rounding = std::sqrt(static_cast<double>(kCoordinates)) / 2;
  EXPECT_LE(grid.reduced_clipping_norm() / grid.grid() + rounding, 0x1p30);
  EXPECT_LT(grid.reduced_clipping_norm(), 1 - rounding / 0x1p30);
}

TEST(ExactGrid, CheckRefusesWhatIsTooLarge) {
  const ExactGrid grid(2.5, 1000);
  EXPECT_TRUE(grid.Within(0));
  EXPECT_TRUE(grid.Within(0x1p60));
  EXPECT_FALSE(grid.Within(0x1p60 * (1 + 3e-6)));
  EXPECT_FALSE(grid.Within(INFINITY));
  EXPECT_FALSE(grid.Within(std::nan("")));
}

TEST(ExactGrid, NoiseIsNeverLessThanTheLargestRecordAsksFor) {
  for (double c : {0.5, 1.0, 7.0}) {
    const ExactGrid grid(c, 1000);
    for (double z : {0.3, 0.7, 1.0, 1.2345, 50.0, ExactGrid::kMaxNoiseMultiplier}) {
      // The largest norm that passes the check, with 2^-22 for the check's own rounding.
      const double sensitivity = std::sqrt(grid.max_sum_squares()) * (1 + 0x1p-22);
      const double sigma = static_cast<double>(grid.sigma_in_steps(z));
      EXPECT_GE(sigma, z * sensitivity);
      EXPECT_LE(sigma, z * 0x1p30 * (1 + 4e-6) + 1);
      EXPECT_LE(grid.sigma_in_steps(z), kMaxDiscreteGaussianSigma);
    }
  }
}

TEST(ExactGrid, ScaleTurnsStepsIntoTheMeanGradient) {
  const ExactGrid grid(3, 10);
  EXPECT_DOUBLE_EQ(grid.Scale(256) * 0x1p30, 3.0 / 256);
  EXPECT_DOUBLE_EQ(grid.grid() * grid.steps_per_unit(), 1);
}

// Returns the largest |log(p / q)| up to 30 standard deviations, with p the discrete Gaussian and q the rounded
// continuous one.
double LargestLoss(double sigma) {
  const int64_t reach = static_cast<int64_t>(30 * sigma);
  long double total = 0, largest = 0;
  for (int64_t x = -reach; x <= reach; ++x) total += expl(-static_cast<long double>(x) * x / (2.0L * sigma * sigma));
  for (int64_t x = 0; x <= reach; ++x) {
    const long double discrete = expl(-static_cast<long double>(x) * x / (2.0L * sigma * sigma)) / total;
    const long double scale = sqrtl(2.0L) * sigma;
    const long double rounded = 0.5L * (erfcl((x - 0.5L) / scale) - erfcl((x + 0.5L) / scale));
    largest = std::max(largest, fabsl(logl(discrete / rounded)));
  }
  return static_cast<double>(largest);
}

TEST(Discretisation, LossBoundHoldsAndIsWithinAFactorOfFour) {
  for (uint64_t sigma : {128, 200, 1000}) {
    const double truth = LargestLoss(static_cast<double>(sigma));
    const double bound = DiscretisationLoss({.sigma_in_steps = sigma, .num_coordinates = 1, .num_steps = 1});
    EXPECT_GE(bound, truth) << sigma;
    EXPECT_LE(bound, 4 * truth) << sigma;
  }
}

TEST(Discretisation, LossGrowsWithCoordinatesAndSteps) {
  const Discretisation d{.sigma_in_steps = uint64_t{1} << 30, .num_coordinates = 275000, .num_steps = 10000};
  EXPECT_NEAR(DiscretisationLoss(d), 113 * 2.75e9 / 0x1p60, 1e-12);
  EXPECT_GE(DiscretisationLoss(d), 113 * 2.75e9 / 0x1p60);
  EXPECT_EQ(DiscretisationLoss({.sigma_in_steps = uint64_t{1} << 30, .num_coordinates = 5, .num_steps = 0}), 0);
  // Too little noise for the proof, so nothing is claimed.
  EXPECT_EQ(DiscretisationLoss({.sigma_in_steps = 127, .num_coordinates = 1, .num_steps = 1}), INFINITY);
}

}  // namespace
}  // namespace wisp::privacy::exact_sum_test
