// The release of an evaluation: bounded by what one record may add, charged first, and of later events alone.
#include "runtime/personalise/evaluate_candidate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/layers/packed_weights.h"
#include "runtime/layers/recommender.h"
#include "runtime/train/run/evaluate.h"
#include "runtime/train/run/initialise.h"
#include "runtime/train/run/records.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::evaluate_candidate_test {
namespace {

using privacy::Ledger;

constexpr uint32_t kItems = 30;

class EvaluationTest : public ::testing::Test {
 protected:
  EvaluationTest() {
    architecture_ = UniformArchitecture{
        .num_items = kItems, .max_length = 6, .width = 8, .num_heads = 2, .num_blocks = 2, .inner_width = 16};
    for (std::vector<float>* weights : {&base_, &candidate_}) {
      weights->resize(FlatSize(ListParameters(architecture_)));
      auto random =
          privacy::RandomStream::Reproducible(weights == &base_ ? 1 : 2, privacy::StreamPurpose::kInitialisation);
      InitialiseWeights(architecture_, {.table_deviation = 0.5f}, random, *weights);
    }
    std::mt19937 random(5);
    for (size_t u = 0; u < 60; ++u) Add(std::to_string(u), 1 + random() % 12, random);
    for (uint32_t i = 0; i < kItems; ++i) sequences_.item_keys.push_back(std::to_string(i));
  }

  void Add(const std::string& user, size_t length, std::mt19937& random) {
    for (size_t t = 0; t < length; ++t) sequences_.items.push_back(static_cast<int32_t>(random() % kItems));
    sequences_.offsets.push_back(sequences_.items.size());
    sequences_.user_keys.push_back(user);
  }

  Ledger OpenLedger() {
    return *Ledger::Open(folder_ / "l", {.dataset = "d", .record = privacy::RecordSpec::OfEvents({})});
  }
  static EvaluationOptions Options(Ledger& ledger) {
    return {.ledger = &ledger, .run = "run", .noise_multiplier = 3, .gain_scale = 2, .reproducible_seed = 4};
  }
  Result<Evaluation> Run(const EvaluationOptions& options) {
    return EvaluateCandidate(architecture_, base_.data(), candidate_.data(), sequences_, options);
  }

  test::TemporaryFolder folder_;
  Architecture architecture_;
  std::vector<float> base_, candidate_;
  data::Sequences sequences_;
};

// The sensitivity: whatever a gain is, its contribution on the grid is no longer than the norm for which the noise is
// calibrated.
TEST_F(EvaluationTest, ARecordAddsNoMoreThanItsBound) {
  double longest = 0;
  const auto check = [&](double gain, double scale) {
    const GainOnGrid g = OnGrid(gain, scale);
    const double length = std::hypot(static_cast<double>(g.gain), static_cast<double>(g.square));
    longest = std::max(longest, length);
    EXPECT_LE(length, GainNorm()) << gain << " of " << scale;
  };
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-20, 20);
  for (int i = 0; i < 100000; ++i) check((i % 2 ? 1 : -1) * std::exp2(exponent(random)), std::exp2(exponent(random)));
  for (const double gain : {1.0, -1.0, 1 - 1e-16, 1e308, -1e308}) check(gain, 1);
  EXPECT_GT(longest, 0.999999 * GainNorm()) << "noise is wasted";
  for (const double bad : {std::nan(""), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
    EXPECT_EQ(OnGrid(bad, 1).gain, 0);
    EXPECT_EQ(OnGrid(bad, 1).square, 0);
  }
  EXPECT_EQ(OnGrid(0.25, 0.5).gain, kGainSteps / 2);
  EXPECT_EQ(OnGrid(-0.25, 0.5).square, kGainSteps / 16);
}

// The sum with one more record, less the sum without it, is that record's contribution.
TEST_F(EvaluationTest, OneRecordMoreAddsItsOwnGainAlone) {
  Ledger ledger = OpenLedger();
  const auto without = Run(Options(ledger));
  ASSERT_TRUE(without.ok()) << without.status().message();
  std::mt19937 random(9);
  Add("new", 9, random);
  const auto with = Run(Options(ledger));
  const GainOnGrid own = Gains(architecture_, base_.data(), candidate_.data(), sequences_, Options(ledger)).back();
  EXPECT_NE(own.gain, 0);
  EXPECT_EQ((with->gains - without->gains) * kGainSteps, static_cast<double>(own.gain));
  EXPECT_EQ((with->squares - without->squares) * kGainSteps * kSquareWeight, static_cast<double>(own.square));
}

// The gains are compared with scores of each history from its beginning, computed by hand. An item of the history is
// not shown unless lists may hold such items, and then it counts.
TEST_F(EvaluationTest, GainsAreThoseOfTheNewestEvents) {
  Ledger ledger = OpenLedger();
  const Recommender graph(architecture_, kernels::Device(kernels::BestOps()), {.use = GraphUse::kInference});
  const Buffers buffers = graph.AllocateForInference();
  const KeyValueCache cache = graph.AllocateCache(CacheBlocks::kAll);
  for (const bool allow_seen : {false, true}) {
    for (const uint32_t targets : {1u, 4u, 100u}) {
      EvaluationOptions options = Options(ledger);
      options.lists_of_base = options.lists_of_candidate = {.allow_seen = allow_seen};
      options.num_targets = targets;
      const auto gains = Gains(architecture_, base_.data(), candidate_.data(), sequences_, options);
      for (size_t u = 0; u < sequences_.num_users(); ++u) {
        const std::span<const int32_t> record = sequences_.User(u);
        const size_t count = std::min<size_t>(targets, record.size() - 1);
        double sum[2] = {0, 0};
        for (int model = 0; model < 2; ++model) {
          const PackedWeights weights(graph, model == 0 ? base_.data() : candidate_.data());
          RecordContext context{.weights = weights.view(), .buffers = buffers, .cache = &cache};
          for (size_t t = record.size() - count; t < record.size(); ++t) {
            std::vector<float> scores(kItems);
            std::vector<bool> seen(kItems, false);
            const auto history = record.first(t);
            graph.Score(context, history.last(std::min<size_t>(6, t)), scores.data());
            for (const int32_t id : history) seen[static_cast<size_t>(id)] = !allow_seen;
            const auto target = static_cast<size_t>(record[t]);
            size_t before = 0;
            for (size_t i = 0; i < kItems; ++i)
              before += !seen[i] && (scores[i] > scores[target] || (scores[i] == scores[target] && i < target));
            if (!seen[target] && before < 10) sum[model] += 1 / std::log2(static_cast<double>(before) + 2);
          }
        }
        const double mean = count == 0 ? 0 : (sum[1] - sum[0]) / static_cast<double>(count);
        EXPECT_NEAR(static_cast<double>(gains[u].gain), static_cast<double>(OnGrid(mean, 2).gain), 2) << u;
      }
    }
  }
}

// The difference of the two models' figures in `wisp evaluate --unit` equals the sum of an evaluation by one event of
// each record.
TEST_F(EvaluationTest, EvaluationByRecords_DiffersByTheGains) {
  Ledger ledger = OpenLedger();
  const Recommender graph(architecture_, kernels::Device(kernels::BestOps()), {.use = GraphUse::kInference});
  const std::vector<RankingCase> cases = DivideFromEnd(sequences_, 1, 2).cases;
  Workers workers(1);
  EvaluationOptions options = Options(ledger);
  options.num_targets = 1;
  double gain = 0;
  for (const GainOnGrid& g : Gains(architecture_, base_.data(), candidate_.data(), sequences_, options))
    gain += static_cast<double>(g.gain) / kGainSteps * options.gain_scale;
  const auto ndcg = [&](const std::vector<float>& weights) {
    return EvaluateRanking(graph, weights.data(), cases, workers).ndcg_at_10;
  };
  EXPECT_NE(gain, 0);
  EXPECT_NEAR(gain / static_cast<double>(cases.size()), ndcg(candidate_) - ndcg(base_), 1e-5);
}

// Only events after the moment count, each record by its own times; without times no event counts.
TEST_F(EvaluationTest, OnlyEventsAfterTheMomentEvaluate) {
  Ledger ledger = OpenLedger();
  for (size_t u = 0; u < sequences_.num_users(); ++u) {
    for (size_t t = 0; t < sequences_.User(u).size(); ++t)
      sequences_.times.push_back(static_cast<int64_t>(100 * t + u));
  }
  EvaluationOptions options = Options(ledger);
  options.after = data::Moment{.second = 450};
  const auto after = Gains(architecture_, base_.data(), candidate_.data(), sequences_, options);
  size_t evaluated = 0;
  for (size_t u = 0; u < sequences_.num_users(); ++u) {
    // Only the newest events are later, and only these are tested.
    size_t later = 0;
    for (size_t t = 1; t < sequences_.User(u).size(); ++t) later += 100 * t + u > 450;
    EvaluationOptions same = Options(ledger);
    same.num_targets = static_cast<uint32_t>(std::min<size_t>(later, 8));
    const auto wanted = Gains(architecture_, base_.data(), candidate_.data(), sequences_, same);
    EXPECT_EQ(after[u].gain, later == 0 ? 0 : wanted[u].gain) << u;
    evaluated += after[u].gain != 0;
  }
  EXPECT_GT(evaluated, 10u);
  // These are as many as are counted.
  uint64_t events = 0;
  for (size_t u = 0; u < sequences_.num_users(); ++u) {
    const std::span<const int64_t> times = sequences_.GetTimes(u);
    const auto later = std::count_if(times.begin() + 1, times.end(), [](int64_t time) { return time > 450; });
    events += std::min<uint64_t>(static_cast<uint64_t>(later), options.num_targets);
  }
  EXPECT_GT(events, 0u);
  EXPECT_EQ(*CountEvaluationEvents(sequences_, options), events);
  sequences_.times.clear();
  EXPECT_EQ(*CountEvaluationEvents(sequences_, options), 0u);
  for (const GainOnGrid& g : Gains(architecture_, base_.data(), candidate_.data(), sequences_, options))
    EXPECT_EQ(g.gain, 0);
}

TEST_F(EvaluationTest, ThreadsChangeNothingAndAModelGainsNothingOverItself) {
  Ledger ledger = OpenLedger();
  EvaluationOptions options = Options(ledger);
  const auto one = Run(options);
  options.num_threads = 3;
  EXPECT_EQ(*Run(options), *one);
  for (const GainOnGrid& g : Gains(architecture_, base_.data(), base_.data(), sequences_, options))
    EXPECT_EQ(g.gain, 0);
}

// Copied rows have equal scores, and noise separates them. Evaluation sees only changes of the shown lists, and a gain
// that no list shows is 0.
TEST_F(EvaluationTest, CopiedRowsGiveNoGainThatNoListShows) {
  Ledger ledger = OpenLedger();
  for (const ParameterSpec& p : ListParameters(architecture_)) {
    const bool is_bias = p.role == ParameterRole::kOutputBias;
    const size_t width = is_bias ? 1 : p.cols;
    for (size_t i = 1; (is_bias || p.role == ParameterRole::kItemTable) && i < kItems; i += 2)
      std::copy_n(&base_[p.offset + (i - 1) * width], width, &base_[p.offset + i * width]);
  }
  // People choose the items that were there first, and not the copies.
  for (int32_t& item : sequences_.items) item -= item % 2;
  std::mt19937 random(7);
  std::normal_distribution<float> noise(0, 1e-5f);
  candidate_ = base_;
  for (float& weight : candidate_) weight += noise(random);
  double gain = 0;
  for (const GainOnGrid& g : Gains(architecture_, base_.data(), candidate_.data(), sequences_, Options(ledger)))
    gain += static_cast<double>(g.gain) / kGainSteps;
  EXPECT_LT(gain, 0) << "the list shows the older of two that score alike: noise can only lose";
}

// The evaluation is charged first, with the noise that is sampled. If it is refused, it says nothing.
TEST_F(EvaluationTest, IsChargedFirst) {
  Ledger ledger = OpenLedger();
  EvaluationOptions options = Options(ledger);
  options.reproducible_seed.reset();
  ASSERT_TRUE(ledger.SetLimit(*privacy::EpsilonDelta::Create(3, 1e-5)).ok());
  const auto first = Run(options);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const privacy::LedgerEntry entry = ledger.Entries()->back();
  EXPECT_EQ(entry.mechanism, *privacy::Mechanism::Gaussian({.noise_multiplier = 3}));
  EXPECT_GT(entry.loss_slack, 0);
  const auto results = *ledger.Results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].entry, entry.id);
  EXPECT_EQ(*ParseEvaluation(results[0].text), *first);
  EXPECT_NE(*Run(options), *first) << "each evaluation draws new noise";
  int more = 0;
  while (more < 20 && Run(options).ok()) ++more;
  EXPECT_LT(more, 20);
  EXPECT_EQ(ledger.Results()->size(), ledger.Entries()->size());
  EXPECT_LE(*ledger.Spent(*privacy::Delta::Create(1e-5)), 3);
}

// The noise on both sums is the charged one.
TEST_F(EvaluationTest, TheNoiseIsWhatIsCharged) {
  Ledger ledger = OpenLedger();
  sequences_ = {.offsets = {0}, .item_keys = sequences_.item_keys};
  constexpr int kSamples = 400;
  double gains = 0, squares = 0;
  for (int i = 0; i < kSamples; ++i) {
    EvaluationOptions options = Options(ledger);
    options.reproducible_seed = 100 + static_cast<uint64_t>(i);
    const Evaluation j = *Run(options);
    gains += j.gains * j.gains / kSamples;
    squares += j.squares * j.squares / kSamples;
  }
  const Evaluation noise{.noise_multiplier = 3};
  EXPECT_NEAR(noise.gain_noise(), 3 * std::sqrt(1 + 1.0 / 16), 1e-12);
  EXPECT_NEAR(std::sqrt(gains) / noise.gain_noise(), 1, 0.15);
  EXPECT_NEAR(std::sqrt(squares) / noise.square_noise(), 1, 0.15);
}

TEST_F(EvaluationTest, InvalidEvaluations_AreRefused) {
  Ledger ledger = OpenLedger();
  const auto refused = [&](auto change) {
    EvaluationOptions options = Options(ledger);
    change(options);
    return Run(options).status().code();
  };
  EXPECT_EQ(refused([](EvaluationOptions& o) { o.ledger = nullptr; }), StatusCode::kPrivacyRefused);
  for (const double bad : {0.0, -1.0, std::nan(""), static_cast<double>(INFINITY)}) {
    EXPECT_EQ(refused([&](EvaluationOptions& o) { o.noise_multiplier = bad; }), StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(refused([&](EvaluationOptions& o) { o.gain_scale = bad; }), StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(refused([](EvaluationOptions& o) { o.num_targets = 0; }), StatusCode::kInvalidArgument);
  sequences_.item_keys.pop_back();
  EXPECT_EQ(Run(Options(ledger)).status().code(), StatusCode::kInvalidArgument) << "another catalogue";
  EXPECT_TRUE(ledger.Entries()->empty());
}

}  // namespace
}  // namespace wisp::evaluate_candidate_test
