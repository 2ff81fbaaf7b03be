// Gradients multiplied as integers: a record's contribution depends on it alone, is within the bound, and is right in
// the mean.
#include "runtime/methods/phantom/integer_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

namespace wisp::integer_gradients_test {
namespace {

constexpr size_t kMostRows = 64, kMostRecords = 8;

std::vector<ParameterSpec> Parameters() {
  std::vector<ParameterSpec> parameters = {{.name = "a", .rows = 20, .cols = 12, .shape = ParameterShape::kMatrix},
                                           {.name = "b", .rows = 9, .cols = 33, .shape = ParameterShape::kMatrix},
                                           {.name = "table", .rows = 15, .cols = 12, .shape = ParameterShape::kTable},
                                           {.name = "bias", .rows = 1, .cols = 20, .shape = ParameterShape::kVector}};
  return parameters;
}

// The dense factors of one record: two matrices, rows of a table, a vector.
struct Factors {
  Factors(size_t length, uint32_t seed, float size = 1) : rows(length) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, size);
    for (std::vector<float>* v : {&dy_a, &x_a, &dy_b, &x_b, &dx, &g}) {
      const size_t width = v == &dy_a ? 20 : v == &x_a || v == &dx ? 12 : v == &dy_b ? 9 : v == &x_b ? 33 : 20;
      v->resize((v == &g ? 1 : length) * width);
      for (float& f : *v) f = normal(random);
    }
    for (size_t t = 0; t < length; ++t) ids.push_back(static_cast<int32_t>(random() % 15));
    if (length > 2) ids[2] = ids[0];
    options.dropout_seed = seed * 77;
  }
  size_t rows;
  std::vector<float> dy_a, x_a, dy_b, x_b, dx, g;
  std::vector<int32_t> ids;
  kernels::RecordOptions options;
};

struct Summed {
  Summed(GridGradientSum::Grid grid, ClipRule rule)
      : parameters(Parameters()),
        trained(parameters, [](const ParameterSpec&) { return true; }),
        sum(kernels::BestOps(), trained.size(), grid),
        clip(rule) {
    sum.Clear();
  }
  IntegerGradients Worker() { return {kernels::BestOps(), {parameters, trained, kMostRecords, kMostRows}, clip, sum}; }

  // Adds records that pass together.
  std::vector<RecordOutcome> Add(IntegerGradients& gradients, const std::vector<const Factors*>& records) {
    Factors all(0, 0);
    all.g.clear();
    std::vector<uint32_t> begin = {0};
    std::vector<kernels::RecordOptions> options;
    std::vector<Record> batch(records.size());
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (const Factors* f : records) {
      append(all.dy_a, f->dy_a), append(all.x_a, f->x_a), append(all.dy_b, f->dy_b), append(all.x_b, f->x_b);
      append(all.dx, f->dx), append(all.g, f->g), append(all.ids, f->ids);
      begin.push_back(begin.back() + static_cast<uint32_t>(f->rows));
      options.push_back(f->options);
    }
    const kernels::Segments segments{.begin_B = begin.data(), .num_records = records.size(), .rows = begin.back()};
    gradients.TakeOptions(options.data());
    gradients.BeginRecords(batch);
    gradients.Outer({.parameter = 0,
                     .first_row = 0,
                     .dy_RN = all.dy_a.data(),
                     .lddy = 20,
                     .x_RK = all.x_a.data(),
                     .ldx = 12,
                     .records = segments,
                     .n = 20,
                     .k = 12});
    gradients.Vector({.parameter = 3, .first = 0, .g_BN = all.g.data(), .n = 20});
    gradients.Outer({.parameter = 1,
                     .first_row = 0,
                     .dy_RN = all.dy_b.data(),
                     .lddy = 9,
                     .x_RK = all.x_b.data(),
                     .ldx = 33,
                     .records = segments,
                     .n = 9,
                     .k = 33});
    gradients.Rows({.parameter = 2,
                    .ids_R = all.ids.data(),
                    .dx_RD = all.dx.data(),
                    .lddx = 12,
                    .records = segments,
                    .d = 12,
                    .scale = 0.5f});
    const auto outcomes = gradients.FinishRecords();
    return {outcomes.begin(), outcomes.end()};
  }
  RecordOutcome Add(const Factors& f) {
    IntegerGradients gradients = Worker();
    return Add(gradients, {&f})[0];
  }
  std::vector<int64_t> Take() {
    std::vector<int64_t> taken(sum.sum().begin(), sum.sum().end());
    sum.Clear();
    return taken;
  }

  std::vector<ParameterSpec> parameters;
  TrainedSet trained;
  GridGradientSum sum;
  ClipRule clip;
};

double Squares(const std::vector<int64_t>& v) {
  __extension__ __int128 squares = 0;
  for (int64_t x : v) squares += static_cast<__int128>(x) * x;
  return static_cast<double>(squares);
}

std::vector<Factors> ManyRecords() {
  std::vector<Factors> records;
  for (uint32_t i = 0; i < 24; ++i)
    records.emplace_back(1 + i * 5 % 9, i + 1, std::pow(10.0f, static_cast<float>(i % 5) - 2));
  return records;
}

constexpr GridGradientSum::Grid kGrid = {.steps_per_unit = 0x1p30f, .max_sum_squares = 0x1p60};

// The integers of the sum are those of each record by itself, whatever else passes with it and in whatever order.
TEST(IntegerGradients, ARecordAddsTheSameInAnyCompany) {
  for (const ClipRule& rule : {ClipRule::Flat(1), ClipRule::Automatic(1)}) {
    Summed run(kGrid, rule);
    const std::vector<Factors> records = ManyRecords();
    std::vector<int64_t> expected(run.trained.size());
    std::vector<double> factors;
    for (const Factors& f : records) {
      factors.push_back(run.Add(f).factor);
      const std::vector<int64_t> own = run.Take();
      EXPECT_GT(Squares(own), 0);
      for (size_t i = 0; i < own.size(); ++i) expected[i] += own[i];
    }
    std::mt19937 random(1);
    std::vector<size_t> order(records.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t together : {1, 3, 5, 7}) {
      std::shuffle(order.begin(), order.end(), random);
      IntegerGradients gradients = run.Worker();
      for (size_t first = 0; first < order.size(); first += together) {
        std::vector<const Factors*> pass;
        for (size_t i = first; i < std::min(order.size(), first + together); ++i) pass.push_back(&records[order[i]]);
        const auto outcomes = run.Add(gradients, pass);
        for (size_t i = 0; i < pass.size(); ++i) EXPECT_EQ(outcomes[i].factor, factors[order[first + i]]);
      }
      EXPECT_EQ(run.Take(), expected) << together;
    }
  }
}

// Two workers at once give the same integers.
TEST(IntegerGradients, TheSumDoesNotDependOnThreads) {
  Summed run(kGrid, ClipRule::Flat(1));
  const std::vector<Factors> records = ManyRecords();
  for (const Factors& f : records) run.Add(f);
  const std::vector<int64_t> expected = run.Take();
  const auto work = [&](size_t first) {
    IntegerGradients gradients = run.Worker();
    for (size_t i = first; i < records.size(); i += 2) run.Add(gradients, {&records[i]});
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(run.Take(), expected);
}

// The squared norm that is compared with the bound is that of the integers in the sum, to the last unit.
TEST(IntegerGradients, TheBoundIsOfTheIntegersThatWereAdded) {
  for (const Factors& f : ManyRecords()) {
    Summed free({.steps_per_unit = 50000, .max_sum_squares = 1e30}, ClipRule::Flat(1));
    free.Add(f);
    const double squares = Squares(free.Take());
    ASSERT_LT(squares, 0x1p53);
    Summed just({.steps_per_unit = 50000, .max_sum_squares = squares}, ClipRule::Flat(1));
    EXPECT_TRUE(just.Add(f).within);
    EXPECT_EQ(Squares(just.Take()), squares);
    Summed below({.steps_per_unit = 50000, .max_sum_squares = squares - 1}, ClipRule::Flat(1));
    below.Add(f);
    EXPECT_LT(Squares(below.Take()), squares);
  }
}

// Every record of an ordinary run is kept, within its bound and not far below.
TEST(IntegerGradients, ClippedRecordsStayWithinTheBound) {
  Summed run({.steps_per_unit = 0x1p30f, .max_sum_squares = 0x1p60}, ClipRule::Automatic(1 - 1e-4));
  for (const Factors& f : ManyRecords()) {
    const RecordOutcome outcome = run.Add(f);
    EXPECT_TRUE(outcome.within && outcome.finite);
    const double norm = std::sqrt(Squares(run.Take())) * 0x1p-30;
    EXPECT_LE(norm, 1);
    EXPECT_GT(norm, 0.99 * std::min(1.0, outcome.norm / (outcome.norm + 0.01)));
  }
}

// The norm covers all parameters. The contribution is the factor times the gradient, which is formed here in double.
TEST(IntegerGradients, ARecordAddsTheSumOfItsClippedGradient) {
  for (const Factors& f : ManyRecords()) {
    Summed run(kGrid, ClipRule::Flat(1));
    std::vector<double> g(run.trained.size());
    const auto outer = [&](size_t parameter, const std::vector<float>& dy, size_t n, const std::vector<float>& x,
                           size_t k) {
      for (size_t t = 0; t < f.rows; ++t) {
        for (size_t i = 0; i < n * k; ++i)
          g[run.trained.offset(parameter) + i] +=
              static_cast<double>(dy[t * n + i / k]) * static_cast<double>(x[t * k + i % k]);
      }
    };
    outer(0, f.dy_a, 20, f.x_a, 12);
    outer(1, f.dy_b, 9, f.x_b, 33);
    for (size_t i = 0; i < f.dx.size(); ++i)
      g[run.trained.offset(2) + static_cast<size_t>(f.ids[i / 12]) * 12 + i % 12] += 0.5 * static_cast<double>(f.dx[i]);
    for (size_t i = 0; i < 20; ++i) g[run.trained.offset(3) + i] += static_cast<double>(f.g[i]);
    double norm = 0, distance = 0;
    for (double v : g) norm += v * v;
    norm = std::sqrt(norm);
    const RecordOutcome outcome = run.Add(f);
    const std::vector<int64_t> added = run.Take();
    EXPECT_NEAR(outcome.norm, norm, 1e-5 * norm);
    const double factor = std::min(1.0, (1 - 0x1p-10) / norm);
    EXPECT_NEAR(outcome.factor, factor, 1e-5 * factor);
    for (size_t i = 0; i < g.size(); ++i)
      distance += std::pow(static_cast<double>(added[i]) * 0x1p-30 - factor * g[i], 2);
    EXPECT_LT(std::sqrt(distance), 1e-3 * factor * norm);
  }
}

// A record that never fits leaves nothing of itself and all of the others.
TEST(IntegerGradients, ARecordAboveItsBoundIsDroppedEntirely) {
  Summed run({.steps_per_unit = 0x1p20f, .max_sum_squares = -1}, ClipRule::Flat(1));
  for (const Factors& f : ManyRecords()) EXPECT_FALSE(run.Add(f).within);
  for (int64_t s : run.Take()) ASSERT_EQ(s, 0);
}

TEST(IntegerGradients, ARecordThatIsNotFiniteLeavesOthersAsTheyAre) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), 3e38f}) {
    for (std::vector<float> Factors::*where : {&Factors::dy_a, &Factors::x_b, &Factors::dx, &Factors::g}) {
      Summed run(kGrid, ClipRule::Flat(1));
      const Factors good(4, 5), other(3, 6);
      Factors broken(5, 7);
      std::fill((broken.*where).begin(), (broken.*where).end(), bad);
      run.Add(good), run.Add(other);
      const std::vector<int64_t> expected = run.Take();
      IntegerGradients gradients = run.Worker();
      const auto outcomes = run.Add(gradients, {&good, &broken, &other});
      EXPECT_EQ(outcomes[1].finite, bad == 3e38f && std::isfinite(outcomes[1].norm));
      if (!outcomes[1].finite) {
        EXPECT_EQ(run.Take(), expected);
      }
    }
  }
}

// A weight with two factors would add a product that no norm covers, so its records are dropped.
TEST(IntegerGradients, AWeightThatIsUsedTwiceIsRefused) {
  Summed run(kGrid, ClipRule::Flat(1));
  IntegerGradients gradients = run.Worker();
  const Factors f(4, 5);
  const std::vector<Record> batch(1);
  const OuterFactor factor{.parameter = 0,
                           .first_row = 0,
                           .dy_RN = f.dy_a.data(),
                           .lddy = 20,
                           .x_RK = f.x_a.data(),
                           .ldx = 12,
                           .records = {.rows = 4},
                           .n = 20,
                           .k = 12};
  gradients.BeginRecords(batch);
  gradients.Outer(factor);
  gradients.Outer(factor);
  EXPECT_FALSE(gradients.FinishRecords()[0].finite);
  for (int64_t s : run.Take()) ASSERT_EQ(s, 0);
  gradients.BeginRecords(batch);
  gradients.Outer(factor);
  EXPECT_TRUE(gradients.FinishRecords()[0].finite);
}

// Over many seeds the mean contribution is the gradient itself, on a grid so coarse that nearest integers would be far
// off. Seeds are fixed; 5 standard deviations.
TEST(IntegerGradients, TheMeanHasNoBias) {
  constexpr float kSteps = 2;
  Summed run({.steps_per_unit = kSteps, .max_sum_squares = 1e30}, ClipRule::Flat(1e9));
  Factors f(4, 3, 0.5f);
  constexpr int kSamples = 3000;
  std::vector<double> mean(run.trained.size()), squares(run.trained.size());
  IntegerGradients gradients = run.Worker();
  for (int draw = 0; draw < kSamples; ++draw) {
    f.options.dropout_seed = static_cast<uint64_t>(draw);
    run.Add(gradients, {&f});
    const std::vector<int64_t> own = run.Take();
    for (size_t i = 0; i < own.size(); ++i) {
      mean[i] += static_cast<double>(own[i]) / kSamples;
      squares[i] += static_cast<double>(own[i] * own[i]) / kSamples;
    }
  }
  for (size_t n = 0; n < 20; ++n) {
    for (size_t k = 0; k < 12; ++k) {
      double expected = 0;
      for (size_t t = 0; t < f.rows; ++t)
        expected += static_cast<double>(f.dy_a[t * 20 + n]) * static_cast<double>(f.x_a[t * 12 + k]) * kSteps;
      const size_t i = run.trained.offset(0) + n * 12 + k;
      const double deviation = std::sqrt((squares[i] - mean[i] * mean[i]) / kSamples);
      EXPECT_NEAR(mean[i], expected, 5 * deviation + 1e-3) << n << " " << k;
    }
  }
}

// A record whose norm is one number keeps it, whatever the lengths of its two factors: 16 bits hold it.
TEST(IntegerGradients, ARowThatIsOneNumberIsNotCut) {
  constexpr float kSteps = 1 << 30;
  for (float length = 0.01f; length < 100; length *= 1.17f) {
    Summed run({.steps_per_unit = kSteps, .max_sum_squares = std::pow(2.0, 60)}, ClipRule::Flat(1));
    Factors f(1, 3, 0);
    f.dy_a[7] = 5;
    f.x_a[4] = length;
    const RecordOutcome outcome = run.Add(f);
    EXPECT_GT(outcome.factor, 0) << length;
    const double kept = static_cast<double>(run.Take()[run.trained.offset(0) + 7 * 12 + 4]) / kSteps;
    EXPECT_NEAR(kept, std::min(1.0, 5.0 * length), 2e-3) << length;
  }
}

// These rows cancel in the record's gradient, and each is far beyond 16 bits. Cut to 16 bits they would no longer
// cancel, and their products would exceed 32 bits, so that no norm of them can be trusted.
TEST(IntegerGradients, RowsThatCancelAddNoMoreThanTheBound) {
  const Factors company(4, 5);
  for (const ClipRule& rule : {ClipRule::Flat(1), ClipRule::Automatic(1)}) {
    Summed run(kGrid, rule);
    run.Add(company);
    const std::vector<int64_t> others = run.Take();
    IntegerGradients gradients = run.Worker();
    for (size_t width : {1, 2, 4, 8, 9, 12}) {
      for (float length = 0.25f; length < 1e6f; length *= 4) {
        Factors f(3, 3, 0);
        for (size_t r = 0; r < 3; ++r) {
          const float part = r == 2 ? -2 * length : length;
          std::fill_n(f.dy_a.begin() + static_cast<ptrdiff_t>(r * 20), width, part);
          std::fill_n(f.x_a.begin() + static_cast<ptrdiff_t>(r * 12), width, 1.0f);
          std::fill_n(f.dy_b.begin() + static_cast<ptrdiff_t>(r * 9), std::min<size_t>(width, 9), 1.0f);
          std::fill_n(f.x_b.begin() + static_cast<ptrdiff_t>(r * 33), 2 * width, part);
        }
        run.Add(gradients, {&company, &f});
        std::vector<int64_t> added = run.Take();
        for (size_t i = 0; i < added.size(); ++i) added[i] -= others[i];
        EXPECT_LE(Squares(added), kGrid.max_sum_squares) << width << " numbers of " << length;
      }
    }
  }
}

TEST(IntegerGradients, MemoryIsAsPlanned) {
  Summed run(kGrid, ClipRule::Flat(1));
  EXPECT_EQ(run.Worker().scratch_bytes(),
            IntegerGradients::PlanBytes({run.parameters, run.trained, kMostRecords, kMostRows}));
}

}  // namespace
}  // namespace wisp::integer_gradients_test
