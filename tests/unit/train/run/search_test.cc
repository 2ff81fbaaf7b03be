// A private search: its charge, the noise that makes its candidates equal, its number of runs, and their scores.
#include "runtime/train/run/search.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/privacy/accounting/kinds/private_search.h"
#include "runtime/privacy/accounting/mechanism_kind.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/count_grid.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/run/evaluate.h"
#include "runtime/train/run/initialise.h"
#include "tests/unit/model/model_test_util.h"
#include "tests/unit/train/run/ring_job.h"

namespace wisp::search_test {
namespace {

using privacy::kRenyiOrders;
using privacy::Mechanism;

class SearchTest : public ::testing::Test {
 protected:
  SearchTest() { job_.spec.goal = {.epsilon = 4, .delta = 1e-4}; }

  TrainingOptions Options(uint32_t batch, uint64_t steps) const {
    TrainingOptions o = MakeOptions(job_.spec);
    o.expected_batch = batch;
    o.num_steps = steps;
    return o;
  }
  Result<SearchPlan> Plan(const std::vector<TrainingOptions>& candidates, uint32_t runs = 6) const {
    return PlanSearch({.architecture = job_.spec.architecture,
                       .goal = job_.spec.goal,
                       .candidates = candidates,
                       .expected_runs = runs,
                       .run = "search"});
  }
  // The cost of a candidate's run at an order, by the trainer's own charges and the score.
  double RunCost(const SearchPlan& plan, TrainingOptions o, double noise, uint32_t order) const {
    o.privacy.noise_multiplier = noise;
    const auto charges = PrivacyPlan::Create(job_.spec.architecture, o)->Charges(o.num_steps);
    double cost = privacy::StepRdp(*Mechanism::Gaussian({.noise_multiplier = plan.score_noise}), order);
    for (const auto& c : *charges) {
      cost += static_cast<double>(c.mechanism.steps()) * privacy::StepRdp(c.mechanism, order) +
              c.loss_slack * (2.0 * order - 1) / (order - 1.0);
    }
    return cost;
  }

  Result<PrivacyPlan> PlanOfSteps(TrainingOptions o) const {
    o.privacy.noise_multiplier = 1;
    return PrivacyPlan::Create(job_.spec.architecture, o);
  }

  test::TemporaryFolder folder_;
  data::Sequences sequences_ = test::RingSequences(100);
  privacy::Ledger ledger_ = test::OpenRingLedger(folder_ / "real");
  TrainingJob job_ = test::RingJob(sequences_, ledger_);
};

TEST_F(SearchTest, ChargesTheWholeSearchOnce_UpToItsTarget) {
  const auto plan = Plan({Options(20, 60), Options(20, 60)});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(&plan->charge.mechanism.kind(), &privacy::kPrivateSearchKind);
  EXPECT_EQ(plan->charge.mechanism.Parameter("expected_runs"), 6);
  EXPECT_EQ(plan->charge.mechanism.steps(), 1u);
  EXPECT_EQ(plan->charge.purpose, kSearchPurpose);
  ASSERT_TRUE(ChargeSearch(*plan, *privacy::EpsilonDelta::Create(5, 1e-4), ledger_).ok());
  const double spent = *ledger_.Spent(*privacy::Delta::Create(1e-4));
  EXPECT_LE(spent, 4);
  EXPECT_GT(spent, 3.99);
  ASSERT_EQ(ledger_.Entries()->size(), 1u);
  // The next one passes the limit, and leaves nothing.
  const auto refused = ChargeSearch(*plan, std::nullopt, ledger_);
  EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(ledger_.Entries()->size(), 1u);
  // A larger search costs more noise.
  EXPECT_GT(Plan({Options(20, 60)}, 12)->noise[0], plan->noise[0]);
}

TEST_F(SearchTest, NoCandidateCostsMoreThanWhatIsCharged) {
  const std::vector<TrainingOptions> candidates = {Options(20, 60), Options(40, 30), Options(10, 200), Options(20, 60),
                                                   Options(20, 10)};
  const auto plan = Plan(candidates);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const privacy::RenyiSums charged = privacy::RunRdp(plan->charge.mechanism);
  for (size_t i = 0; i < candidates.size(); ++i) {
    double nearest = 0;
    for (size_t j = 0; j < kRenyiOrders.size() && std::isfinite(charged[j]); ++j) {
      const double cost = RunCost(*plan, candidates[i], plan->noise[i], kRenyiOrders[j]);
      EXPECT_LE(cost, charged[j] * (1 + 1e-9)) << i << " order " << kRenyiOrders[j];
      nearest = std::max(nearest, cost / charged[j]);
    }
    EXPECT_GT(nearest, 0.99) << i;  // nor much less at every order
  }
  const double score_slack = privacy::DiscretisationLoss(
      {.sigma_in_steps = CountSigma(plan->score_noise), .num_coordinates = 1, .num_steps = 1});
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double of_steps = PlanOfSteps(candidates[i])->LossSlack(candidates[i].num_steps, plan->noise[i]);
    EXPECT_GE(plan->charge.mechanism.Parameter("loss_slack"), of_steps + score_slack) << i;
  }
  EXPECT_EQ(plan->noise[0], plan->noise[3]);
  EXPECT_LT(plan->noise[4], plan->noise[0]);
  // A score is a small part of a run.
  const double score = 4 / (2 * plan->score_noise * plan->score_noise);
  EXPECT_LT(score, 0.3 * charged[2]);
}

TEST_F(SearchTest, GivenNoise_IsThatOfTheFirstCandidate) {
  job_.spec.goal = {.noise_multiplier = 3, .delta = 1e-4};
  const auto plan = Plan({Options(20, 60), Options(40, 60)});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->noise[0], 3);
  EXPECT_GT(plan->noise[1], 3);
}

TEST_F(SearchTest, RunsWithoutAProof_AreRefused) {
  const auto refuses = [&](const TrainingOptions& o, StatusCode code) {
    const auto plan = Plan({Options(20, 60), o});
    EXPECT_EQ(plan.status().code(), code) << plan.status().message();
  };
  TrainingOptions o = Options(20, 60);
  o.sampling = Sampling::kAllocation;
  refuses(o, StatusCode::kPrivacyRefused);
  o = Options(20, 60);
  o.privacy.noise_schedule = NoiseSchedule::kLearningRate;
  o.optimizer.decay = Decay::kLinear;
  refuses(o, StatusCode::kPrivacyRefused);
  o = Options(20, 60);
  o.privacy.reproducible_seed = 1;
  refuses(o, StatusCode::kPrivacyRefused);
  refuses(Options(200, 60), StatusCode::kInvalidArgument);  // more than there are records
  refuses(Options(20, 0), StatusCode::kInvalidArgument);
  for (const uint32_t runs : {0u, 3u, 10'001u})
    EXPECT_EQ(Plan({Options(20, 60)}, runs).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Plan({}).status().code(), StatusCode::kInvalidArgument);
  job_.spec.goal.delta = 0.5;
  EXPECT_EQ(Plan({Options(20, 60)}).status().code(), StatusCode::kPrivacyRefused);
}

// A run with the plan's noise is within its share, and one with less noise, or with another charge, is not.
TEST_F(SearchTest, ARunThatCostsMoreThanItsShare_IsFound) {
  const auto plan = Plan({Options(20, 6), Options(40, 3)});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto run = [&](const std::string& name, size_t candidate, double factor) {
    privacy::Ledger of_run = test::OpenRingLedger(folder_ / name);
    TrainingJob job = job_;
    job.spec.training = candidate == 0 ? Options(20, 6) : Options(40, 3);
    job.spec.training.privacy.ledger = &of_run;
    job.spec.goal = {.noise_multiplier = plan->noise[candidate] * factor, .delta = 1e-4};
    const auto result = RunTrainingJob(job);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return of_run;
  };
  EXPECT_TRUE(CheckRunIsPaid(*plan, run("first", 0, 1)).ok());
  EXPECT_TRUE(CheckRunIsPaid(*plan, run("second", 1, 1)).ok());
  EXPECT_EQ(CheckRunIsPaid(*plan, run("less", 1, 0.99)).code(), StatusCode::kPrivacyRefused);
  privacy::Ledger more = run("more", 0, 1);
  ASSERT_TRUE(more.Charge({.mechanism = *Mechanism::Gaussian({.noise_multiplier = 50}), .run = "run"}).ok());
  EXPECT_EQ(CheckRunIsPaid(*plan, more).code(), StatusCode::kPrivacyRefused);
}

// The chance of a false alarm is below 1e-6: five deviations of each count, over 14 counts.
TEST(SamplePoisson, HasItsProbabilities) {
  auto random = privacy::RandomStream::Reproducible(11, privacy::StreamPurpose::kSampling);
  constexpr int kSamples = 200'000;
  for (const uint32_t mean : {1u, 4u}) {
    std::vector<int> seen(64);
    for (int i = 0; i < kSamples; ++i) ++seen[std::min<uint64_t>(63, SamplePoisson(random, mean))];
    double probability = std::exp(-1.0 * mean);
    for (uint32_t k = 0; k < 7; ++k) {
      const double expected = kSamples * probability;
      EXPECT_NEAR(seen[k], expected, 5 * std::sqrt(expected * (1 - probability))) << mean << " " << k;
      probability *= mean / (k + 1.0);
    }
  }
}

class Score : public SearchTest {
 protected:
  Score() : weights_(FlatSize(ListParameters(job_.spec.architecture))) {
    auto random = privacy::RandomStream::Reproducible(5, privacy::StreamPurpose::kInitialisation);
    InitialiseWeights(job_.spec.architecture, {.table_deviation = 0.3f}, random, weights_);
  }
  // In records; the noise is that of the seed.
  double Of(const data::Sequences& sequences, double score_noise, uint64_t seed) {
    const SearchPlan plan{.charge = {.mechanism = *Mechanism::Gaussian({.noise_multiplier = 1})},
                          .score_noise = score_noise};
    auto noise = privacy::RandomStream::Reproducible(seed, privacy::StreamPurpose::kNoise);
    Workers workers(2);
    return static_cast<double>(ScorePrivately(job_.spec.architecture, ParameterSource(weights_.data()), sequences,
                                              HoldOut::kTest, {}, plan, workers, noise)) /
           kCountSteps;
  }
  std::vector<float> weights_;
};

TEST_F(Score, IsTheSumOfTheListsGains) {
  const RecordSet records = MakeRecords(sequences_, job_.spec.architecture.max_length, HoldOut::kTest);
  const auto graph =
      MakeModelView(job_.spec.architecture, kernels::Device(kernels::BestOps()), {.use = GraphUse::kInference});
  Workers workers(1);
  const RankingQuality quality = EvaluateRanking(*graph, ParameterSource(weights_.data()), records.test, workers);
  EXPECT_GT(quality.ndcg_at_10, 0);
  EXPECT_NEAR(Of(sequences_, 1e-9, 1), quality.ndcg_at_10 * static_cast<double>(quality.num_users), 1e-6);
}

TEST_F(Score, ARecordMovesItByAtMostOne) {
  data::Sequences more = sequences_;
  test::AddRingUser(more, 100);
  const double change = Of(more, 1e-9, 1) - Of(sequences_, 1e-9, 1);
  EXPECT_GE(change, 0);
  EXPECT_LE(change, 1);
  // Items that the model does not have add nothing.
  data::Sequences strange = more;
  strange.items.back() = 1000;
  EXPECT_EQ(Of(strange, 1e-9, 1), Of(sequences_, 1e-9, 1));
  // Scores that are no numbers do not either.
  std::fill(weights_.begin(), weights_.end(), std::nanf(""));
  EXPECT_GE(Of(sequences_, 1e-9, 1), 0);
  EXPECT_LE(Of(sequences_, 1e-9, 1), static_cast<double>(sequences_.num_users()));
}

// Over 2,000 seeds the deviation of the noise is within 8 %: five of its own deviations.
TEST_F(Score, HasTheNoiseOfThePlan) {
  const data::Sequences few = test::RingSequences(2);
  const double exact = Of(few, 1e-9, 1);
  double squares = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) squares += std::pow(Of(few, 7, seed) - exact, 2);
  EXPECT_NEAR(std::sqrt(squares / 2000), 7, 0.56);
}

}  // namespace
}  // namespace wisp::search_test
