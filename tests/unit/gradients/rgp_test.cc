// RGP: carriers are always orthonormal, the sum is the projection of the true gradient, and training works.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/methods/rgp/rgp_gradients.h"
#include "runtime/train/trainer.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/layers/parameter_names.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::rgp_test {
namespace {

using test::Harness;
using test::RandomRecord;
using test::RandomWeights;

std::function<float()> Normals(uint32_t seed) {
  return [random = std::mt19937(seed), normal = std::normal_distribution<float>()]() mutable { return normal(random); };
}

// Returns the largest deviation of the n vectors of v from being orthonormal.
double Deviation(const float* v, size_t n, size_t length) {
  double worst = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double dot = 0;
      for (size_t k = 0; k < length; ++k) dot += double(v[i * length + k]) * double(v[j * length + k]);
      worst = std::max(worst, std::abs(dot - (i == j)));
    }
  }
  return worst;
}

TrainedSet MakeTrainedSet(const std::vector<ParameterSpec>& parameters, const RgpOptions& options) {
  return TrainedSet(parameters, [&options](const ParameterSpec& p) { return p.trained && Trains(options, p); });
}

Status ValidateOn(const std::vector<ParameterSpec>& parameters, const RgpOptions& options) {
  return Validate(options, parameters, MakeTrainedSet(parameters, options));
}

TEST(Rgp, OrthonormaliseSurvivesDegenerateInput) {
  const size_t length = 7;
  for (size_t n : {1, 3, 7}) {
    std::vector<float> v(n * length, 0.0f);  // zero
    Orthonormalise(v.data(), n, length, Normals(1));
    EXPECT_LT(Deviation(v.data(), n, length), 1e-5) << n;
    for (size_t i = 0; i < n * length; ++i) v[i] = 1e-20f * static_cast<float>(i % length + 1);  // rank 1, tiny
    Orthonormalise(v.data(), n, length, Normals(2));
    EXPECT_LT(Deviation(v.data(), n, length), 1e-5) << n;
    for (float& x : v) x = NAN;
    Orthonormalise(v.data(), n, length, Normals(3));
    EXPECT_LT(Deviation(v.data(), n, length), 1e-5) << n;
    // Nearly dependent vectors.
    for (size_t i = 0; i < n * length; ++i) v[i] = 1.0f + 1e-4f * static_cast<float>((i * 7919) % 13);
    Orthonormalise(v.data(), n, length, Normals(4));
    EXPECT_LT(Deviation(v.data(), n, length), 1e-5) << n;
  }
}

TEST(Rgp, CarriersAreOrthonormalForZeroAndLowRankChanges) {
  const Architecture a = test::SmallArchitectures()[0];
  const auto parameters = ListParameters(a);
  std::vector<float> start = RandomWeights(a, 1), same = start, low = start;
  for (const ParameterSpec& p : parameters) {  // rank 1 changes
    for (size_t i = 0; i < p.size(); ++i)
      low[p.offset + i] += 0.1f * static_cast<float>(i / p.cols + 1) * static_cast<float>(i % p.cols);
  }
  const RgpOptions options{.rank = 3};
  const TrainedSet trained = MakeTrainedSet(parameters, options);
  RgpCarriers carriers(kernels::BestOps(), parameters, trained, options);
  for (const auto& weights : {same, low}) {
    carriers.Update(weights, start, 0, Normals(5));
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (carriers.entry(i).train != RgpTrain::kProjected) continue;
      std::vector<float> columns(3 * parameters[i].rows);
      for (size_t r = 0; r < parameters[i].rows; ++r) {
        for (size_t k = 0; k < 3; ++k) columns[k * parameters[i].rows + r] = carriers.left(i)[r * 3 + k];
      }
      EXPECT_LT(Deviation(columns.data(), 3, parameters[i].rows), 1e-5) << parameters[i].name;
      EXPECT_LT(Deviation(carriers.right(i), 3, parameters[i].cols), 1e-5) << parameters[i].name;
    }
  }
}

TEST(Rgp, PowerIterationFindsTheDirectionsOfTheChange) {
  const Architecture a = test::SmallArchitectures()[0];
  const auto parameters = ListParameters(a);
  const std::vector<float> start = RandomWeights(a, 1);
  std::vector<float> weights = start;
  const size_t i = test::FindIndex(parameters, "item_embedding");
  const ParameterSpec& p = parameters[i];
  for (size_t j = 0; j < p.size(); ++j)
    weights[p.offset + j] += std::sin(static_cast<float>(j / p.cols)) * (j % p.cols == 2 ? 2.0f : 1.0f);
  const RgpOptions options{.rank = 1};
  const TrainedSet trained = MakeTrainedSet(parameters, options);
  RgpCarriers carriers(kernels::BestOps(), parameters, trained, options);
  carriers.Update(weights, start, 0, Normals(6));
  const double norm = std::sqrt(3 + 4.0);
  double along = 0;
  for (size_t k = 0; k < p.cols; ++k) along += carriers.right(i)[k] * (k == 2 ? 2 : 1) / norm;
  EXPECT_NEAR(std::abs(along), 1, 1e-4);
}

class RgpProjection : public ::testing::TestWithParam<size_t> {};

// Compares release and reconstruction with the naive gradient G in double: g_L = G R^T, g_R = L^T G, and G' as in
// docs/algorithms.md.
TEST_P(RgpProjection, EqualsTheProjectionOfTheTrueGradient) {
  const Architecture a = test::SmallArchitectures()[GetParam()];
  if (a.head.temperature > 0) GTEST_SKIP() << "projections are not offered with a cosine head";
  const auto parameters = ListParameters(a);
  const std::vector<float> weights = RandomWeights(a, 11), start = RandomWeights(a, 12);
  const auto record = test::EndsRecord(a.num_items);
  const std::vector<double> naive = test::NaiveGradient(a, weights, record.view());
  for (const kernels::OpTable* ops : kernels::AllOps()) {
    Harness h(a, weights, *ops);
    const RgpOptions options{.rank = 2, .positions = RgpTrain::kFull};
    const TrainedSet trained = MakeTrainedSet(parameters, options);
    RgpCarriers carriers(*ops, h.graph.parameters(), trained, options);
    carriers.Update(weights, start, 1, Normals(7));
    FloatGradientSum sum(*ops, carriers.release_size(), 1);
    RgpGradients gradients(*ops, {.max_rows = a.max_length, .worker = 0}, carriers, ClipRule::None(), sum);
    h.Add(RandomRecord(a.num_items, 3, 9).view(), gradients);  // nothing of it may remain
    sum.Clear();
    h.Add(record.view(), gradients);
    const std::span<float> released(const_cast<float*>(sum.sum().data()), sum.sum().size());
    carriers.Prepare(released);
    double total = 0, wrong = 0, norm = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const ParameterSpec& p = parameters[i];
      if (carriers.entry(i).train == RgpTrain::kFrozen) continue;
      const double* g = naive.data() + p.offset;
      if (carriers.entry(i).train == RgpTrain::kFull) {
        for (size_t j = 0; j < p.size(); ++j) {
          wrong += std::pow(released[carriers.entry(i).left_offset + j] - g[j], 2);
          norm += g[j] * g[j];
        }
        continue;
      }
      const size_t r = 2, rows = p.rows, d = p.cols;
      std::vector<double> left(rows * r), right(r * d), both(r * r);
      for (size_t j = 0; j < rows; ++j) {
        for (size_t k = 0; k < d; ++k) {
          for (size_t c = 0; c < r; ++c) {
            left[j * r + c] += g[j * d + k] * carriers.right(i)[c * d + k];
            right[c * d + k] += carriers.left(i)[j * r + c] * g[j * d + k];
          }
        }
      }
      for (size_t j = 0; j < rows * r; ++j)
        wrong += std::pow(released[carriers.entry(i).left_offset + j] - left[j], 2), norm += left[j] * left[j];
      for (size_t j = 0; j < d * r; ++j)
        wrong += std::pow(released[carriers.entry(i).right_offset + j] - right[j], 2), norm += right[j] * right[j];
      for (size_t j = 0; j < rows; ++j) {
        for (size_t c = 0; c < r; ++c) {
          for (size_t e = 0; e < r; ++e) both[c * r + e] += carriers.left(i)[j * r + c] * left[j * r + e];
        }
      }
      std::vector<float> projected(rows * d);
      carriers.Gradient(released, i, 0, 1, projected.data());
      if (rows > 1) carriers.Gradient(released, i, 1, rows - 1, projected.data() + d);
      double error = 0, size = 0;
      for (size_t j = 0; j < rows; ++j) {
        for (size_t k = 0; k < d; ++k) {
          double expected = 0;
          for (size_t c = 0; c < r; ++c) {
            expected += left[j * r + c] * carriers.right(i)[c * d + k] + carriers.left(i)[j * r + c] * right[c * d + k];
            for (size_t e = 0; e < r; ++e)
              expected -= carriers.left(i)[j * r + c] * both[c * r + e] * carriers.right(i)[e * d + k];
          }
          error += std::pow(projected[j * d + k] - expected, 2);
          size += expected * expected;
        }
      }
      total += size;
      EXPECT_LE(std::sqrt(error), 1e-5 * test::Norm(naive)) << p.name << ", " << ops->name;
    }
    EXPECT_GT(total, 0);
    EXPECT_LT(std::sqrt(wrong), 1e-5 * std::sqrt(norm)) << ops->name;
    // The clipped norm is that of everything released together.
    FloatGradientSum clipped(*ops, carriers.release_size(), 1);
    RgpGradients clipping(*ops, {.max_rows = a.max_length, .worker = 0}, carriers, ClipRule::Flat(0.01), clipped);
    EXPECT_NEAR(h.Add(record.view(), clipping).norm, std::sqrt(norm), 1e-5 * std::sqrt(norm));
    EXPECT_NEAR(std::sqrt(ops->sum_squares(clipped.sum().data(), clipped.sum().size())), 0.01, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(EverySwitch, RgpProjection, ::testing::Range<size_t>(0, test::SmallArchitectures().size()));

TEST(Rgp, ReleasesRankTimesBothSides) {
  const std::vector<ParameterSpec> one = {
      {.name = "w", .rows = 30, .cols = 8, .shape = ParameterShape::kMatrix, .trained = true, .offset = 0},
      {.name = "b", .rows = 1, .cols = 30, .shape = ParameterShape::kVector, .trained = true, .offset = 240}};
  const auto size = [&one](const RgpOptions& o) { return RgpReleaseSize(o, one, MakeTrainedSet(one, o)); };
  EXPECT_EQ(size({.rank = 3}), 3u * (30 + 8) + 30);
  EXPECT_EQ(size({.rank = 3, .vectors = RgpTrain::kFrozen}), 3u * (30 + 8));
  EXPECT_EQ(size({.rank = 3, .matrices = RgpTrain::kFull}), 30u * 8 + 30);
}

TEST(Rgp, BadOptionsAreNamed) {
  const std::vector<ParameterSpec> one = {
      {.name = "w", .rows = 30, .cols = 8, .shape = ParameterShape::kMatrix, .trained = true, .offset = 0}};
  EXPECT_NE(ValidateOn(one, RgpOptions{.rank = 9}).message().find("1 to 8"), std::string::npos);
  EXPECT_FALSE(ValidateOn(one, RgpOptions{.rank = 0}).ok());
  EXPECT_TRUE(ValidateOn(one, RgpOptions{.rank = 8}).ok());
  // The widest rank is allowed, too, if nothing is projected.
  EXPECT_TRUE(ValidateOn(one, RgpOptions{.rank = kMaxWidth, .matrices = RgpTrain::kFull}).ok());
  EXPECT_NE(ValidateOn(one, RgpOptions{.rank = kMaxWidth + 1, .matrices = RgpTrain::kFull}).message().find("1 to 8192"),
            std::string::npos);
  EXPECT_FALSE(ValidateOn(one, RgpOptions{.rank = 0, .matrices = RgpTrain::kFull}).ok());
  EXPECT_FALSE(ValidateOn(one, RgpOptions{.rank = 1, .matrices = RgpTrain::kFrozen}).ok());
  EXPECT_FALSE(ValidateOn(one, RgpOptions{.rank = 1, .vectors = RgpTrain::kProjected}).ok());
}

class RgpTraining : public test::RingTraining {
 protected:
  RgpTraining() : RingTraining(200) {}

  TrainingOptions Options(uint64_t steps) {
    return {.method = Method::kRgp,
            .sampling = Sampling::kPoisson,
            .num_steps = steps,
            .expected_batch = 100,
            .num_records_public = 200,
            .optimizer = {.learning_rate = 0.02f},
            .seed = 5,
            .num_threads = 2,
            .privacy = {.noise_multiplier = 0.05, .ledger = &ledger_, .run = "rgp", .reproducible_seed = 9},
            .rgp = {.rank = 4, .warmup_steps = 10}};
  }

  privacy::Ledger ledger_ = OpenLedger("l");
};

TEST_F(RgpTraining, LearnsWithLittleNoise) {
  auto trainer = *Trainer::Create(kSmall, start_, ring_.records, Options(120));
  double first = 0, last = 0;
  for (int i = 0; i < 120; ++i) {
    const auto report = trainer->Step();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->num_dropped, 0u);
    if (i == 0) first = report->mean_loss;
    last = report->mean_loss;
  }
  std::printf("loss %.2f -> %.2f\n", first, last);
  EXPECT_LT(last, 0.6 * first);
}

TEST_F(RgpTraining, ResumedRunEqualsUninterruptedRunBitForBit) {
  const auto run = [&](bool interrupted) {
    auto trainer = *Trainer::Create(kSmall, start_, ring_.records, Options(20));
    for (int i = 0; i < 20; ++i) {
      if (interrupted && i == 11) {
        const Checkpoint saved = *trainer->Save();
        trainer = *Trainer::Create(kSmall, start_, ring_.records, Options(20));
        EXPECT_TRUE(trainer->Restore(saved).ok());
      }
      EXPECT_TRUE(trainer->Step().ok());
    }
    return std::vector<float>(trainer->weights().begin(), trainer->weights().end());
  };
  EXPECT_EQ(run(false), run(true));
}

// Returns the share of the length of a parameter's change D that carriers made from `from` cannot express: that of D -
// L L^T D - D R^T R + L L^T D R^T R.
double ShareOutsideCarriers(const RgpCarriers& carriers, size_t i, const ParameterSpec& p, std::vector<double> change) {
  const size_t r = carriers.rank(), d = p.cols;
  double all = 0, left = 0;
  for (double x : change) all += x * x;
  std::vector<double> along(std::max<size_t>(d, p.rows));
  for (size_t c = 0; c < r; ++c) {  // orthonormal: one column after the other
    std::fill(along.begin(), along.end(), 0.0);
    for (size_t j = 0; j < p.rows; ++j) {
      for (size_t k = 0; k < d; ++k) along[k] += carriers.left(i)[j * r + c] * change[j * d + k];
    }
    for (size_t j = 0; j < p.rows; ++j) {
      for (size_t k = 0; k < d; ++k) change[j * d + k] -= carriers.left(i)[j * r + c] * along[k];
    }
  }
  for (size_t c = 0; c < r; ++c) {
    for (size_t j = 0; j < p.rows; ++j) {
      double sum = 0;
      for (size_t k = 0; k < d; ++k) sum += change[j * d + k] * carriers.right(i)[c * d + k];
      for (size_t k = 0; k < d; ++k) change[j * d + k] -= sum * carriers.right(i)[c * d + k];
    }
  }
  for (double x : change) left += x * x;
  return std::sqrt(left / all);
}

// During the warm-up a step moves along carriers of W, after it along those of W - W_0. In both cases the carriers use
// a random stream of their own, not that of the initial weights.
TEST_F(RgpTraining, StepsMoveAlongTheCarriersOfTheirTime) {
  TrainingOptions o = Options(6);
  o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 5};
  o.rgp.warmup_steps = 3;
  auto trainer = *Trainer::Create(kSmall, start_, ring_.records, o);
  const auto parameters = ListParameters(kSmall);
  const TrainedSet trained = MakeTrainedSet(parameters, o.rgp);
  RgpCarriers carriers(kernels::BestOps(), parameters, trained, o.rgp);
  const std::vector<float> zero(start_.size(), 0.0f);
  for (uint64_t step = 0; step < 6; ++step) {
    const std::vector<float> before(trainer->weights().begin(), trainer->weights().end());
    ASSERT_TRUE(trainer->Step().ok());
    const auto outside = [&](std::span<const float> start, privacy::StreamPurpose purpose) {
      auto random = privacy::RandomStream::Reproducible(o.seed, purpose);
      EXPECT_TRUE(random.Seek(step << 40).ok());
      carriers.Update(before, start, o.rgp.warmup_steps, [&random] { return static_cast<float>(random.Normal()); });
      double largest = 0;
      for (size_t i = 0; i < parameters.size(); ++i) {
        const ParameterSpec& p = parameters[i];
        if (carriers.entry(i).train != RgpTrain::kProjected) continue;
        std::vector<double> change(p.size());
        for (size_t j = 0; j < p.size(); ++j)
          change[j] = double(trainer->weights()[p.offset + j]) - before[p.offset + j];
        largest = std::max(largest, ShareOutsideCarriers(carriers, i, p, std::move(change)));
      }
      return largest;
    };
    const double of_weights = outside(zero, privacy::StreamPurpose::kCarriers),
                 of_change = outside(start_, privacy::StreamPurpose::kCarriers);
    EXPECT_LT(step < 3 ? of_weights : of_change, 1e-3) << step;
    EXPECT_GT(step < 3 ? of_change : of_weights, 0.1) << step;
    EXPECT_GT(outside(step < 3 ? zero : start_, privacy::StreamPurpose::kInitialisation), 0.1)
        << "at step " << step << " from the words of the weights";
  }
}

TEST_F(RgpTraining, FrozenParametersStayAsTheyWere) {
  TrainingOptions o = Options(3);
  o.rgp.item_tables = RgpTrain::kFrozen;
  o.rgp.vectors = RgpTrain::kFrozen;
  auto trainer = *Trainer::Create(kSmall, start_, ring_.records, o);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(trainer->Step().ok());
  for (const ParameterSpec& p : ListParameters(kSmall)) {
    const bool frozen = p.name == "item_embedding" || p.shape == ParameterShape::kVector;
    const bool same = std::equal(start_.begin() + p.offset, start_.begin() + p.offset + p.size(),
                                 trainer->weights().begin() + p.offset);
    EXPECT_EQ(same, frozen) << p.name;
  }
}

}  // namespace
}  // namespace wisp::rgp_test
