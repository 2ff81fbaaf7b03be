// Private decoding: the laws of samples, what is charged and when, and what is refused. Statistical tests have fixed
// seeds and alpha = 1e-6 each.
#include "runtime/private_sampling/private_sampling.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "gtest/gtest.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/privacy/noise/chi_square.h"

namespace wisp::private_sampling_test {
namespace {

using privacy::EpsilonDelta;
using privacy::Ledger;
using privacy::Mechanism;

constexpr double kAlpha = 1e-6;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kItems = 5;
const std::vector<float> kScores = {0.5f, -1, 2, 0, 1}, kBase = {0, 1, -1, 0.5f, 0};
const std::vector<double> kMixing = {1, 2, 3, 4, 10};

class PrivateSamplingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto ledger = Ledger::Open(folder_ / "test.ledger",
                               {.dataset = "watch history", .record = privacy::RecordSpec::OfEvents({})});
    ASSERT_TRUE(ledger.ok()) << ledger.status().message();
    ledger_.emplace(*std::move(ledger));
  }

  PrivateSamplerOptions Options(DecodingMode mode, std::optional<uint64_t> seed = std::nullopt) {
    PrivateSamplerOptions o;
    o.mode = mode;
    o.num_items = kItems;
    o.lambda = 0.6;
    if (mode == DecodingMode::kNonUniform) o.mixing = kMixing;
    o.clip = 0.8;
    o.temperature = 0.7;
    o.ledger = &*ledger_;
    o.run = "test";
    o.reproducible_seed = seed;
    return o;
  }
  static SampleRequest Request(DecodingMode mode, size_t count = 1) {
    SampleRequest r{.scores = kScores, .count = count};
    if (mode == DecodingMode::kBaseAnchored) r.base_scores = kBase;
    return r;
  }
  static PrivateSampler Must(PrivateSamplerOptions o) {
    auto sampler = PrivateSampler::Create(std::move(o));
    EXPECT_TRUE(sampler.ok()) << sampler.status().message();
    return *std::move(sampler);
  }
  std::vector<std::string> Charged() {
    std::vector<std::string> texts;
    for (const auto& e : *ledger_->Entries()) texts.push_back(e.mechanism.ToText());
    return texts;
  }

  test::TemporaryFolder folder_;
  std::optional<Ledger> ledger_;
};

// Returns the law of one sample from `left`, written again from docs/algorithms.md, section 7.
std::vector<double> Law(const PrivateSamplerOptions& o, const std::vector<int32_t>& left) {
  std::vector<double> q, u;
  double sum_q = 0, sum_u = 0;
  for (int32_t item : left) {
    const auto j = static_cast<size_t>(item);
    const double anchored = kBase[j] + std::min(o.clip, std::max(-o.clip, static_cast<double>(kScores[j]) - kBase[j]));
    q.push_back(std::exp((o.mode == DecodingMode::kBaseAnchored ? anchored : kScores[j]) / o.temperature));
    u.push_back(o.mode == DecodingMode::kNonUniform ? kMixing[j] : 1);
    sum_q += q.back();
    sum_u += u.back();
  }
  const double lambda = o.mode == DecodingMode::kUniform || o.mode == DecodingMode::kNonUniform ? o.lambda : 1;
  for (size_t i = 0; i < q.size(); ++i) q[i] = lambda * q[i] / sum_q + (1 - lambda) * u[i] / sum_u;
  return q;
}

constexpr DecodingMode kPrivateModes[] = {DecodingMode::kUniform, DecodingMode::kNonUniform,
                                          DecodingMode::kBaseAnchored};

TEST_F(PrivateSamplingTest, OrderedPairsHaveTheLawOfSamplesWithoutReplacement) {
  const std::vector<int32_t> excluded = {3}, support = {0, 1, 2, 4};
  for (DecodingMode mode :
       {DecodingMode::kUniform, DecodingMode::kNonUniform, DecodingMode::kBaseAnchored, DecodingMode::kPlain}) {
    PrivateSamplerOptions o = Options(mode, 31 + static_cast<uint64_t>(mode));
    o.samples_per_charge = 1u << 30;
    o.need.kind = DecodingNeed::Kind::kFree;
    std::vector<double> law(kItems * kItems), first_law(kItems);
    const auto first = Law(o, support);
    for (size_t a = 0; a < support.size(); ++a) {
      std::vector<int32_t> left = support;
      left.erase(left.begin() + static_cast<ptrdiff_t>(a));
      const auto second = Law(o, left);
      first_law[static_cast<size_t>(support[a])] = first[a];
      for (size_t b = 0; b < left.size(); ++b)
        law[static_cast<size_t>(support[a]) * kItems + static_cast<size_t>(left[b])] = first[a] * second[b];
    }
    PrivateSampler sampler = Must(o);
    SampleRequest r = Request(mode, 2);
    r.excluded = excluded;
    std::vector<uint64_t> pairs(kItems * kItems), firsts(kItems);
    for (int i = 0; i < 200000; ++i) {
      const auto items = *sampler.Sample(r);
      ASSERT_EQ(items.size(), 2u);
      ++firsts[static_cast<size_t>(items[0])];
      ++pairs[static_cast<size_t>(items[0]) * kItems + static_cast<size_t>(items[1])];
    }
    EXPECT_GT(ChiSquarePValue(firsts, first_law), kAlpha) << static_cast<int>(mode);
    EXPECT_GT(ChiSquarePValue(pairs, law), kAlpha) << static_cast<int>(mode);
  }
}

TEST_F(PrivateSamplingTest, AllOfASupportComesOutOnceAndNothingElse) {
  const std::vector<int32_t> candidates = {4, 0, 4, 2}, excluded = {0};
  for (DecodingMode mode : kPrivateModes) {
    PrivateSampler sampler = Must(Options(mode));
    SampleRequest r = Request(mode, 10);
    auto all = *sampler.Sample(r);
    EXPECT_EQ(std::set<int32_t>(all.begin(), all.end()).size(), kItems);
    r.candidates = candidates;
    r.excluded = excluded;
    auto few = *sampler.Sample(r);
    EXPECT_EQ(std::set<int32_t>(few.begin(), few.end()), (std::set<int32_t>{2, 4}));
    r.excluded = candidates;
    EXPECT_TRUE(sampler.Sample(r)->empty());
  }
}

TEST_F(PrivateSamplingTest, EachSampleIsChargedWithTheSupportThatIsLeft) {
  const std::vector<int32_t> excluded = {1};
  SampleRequest r = Request(DecodingMode::kUniform, 10);  // four samples; the last one has no choice
  r.excluded = excluded;
  ASSERT_TRUE(Must(Options(DecodingMode::kUniform)).Sample(r).ok());
  std::vector<std::string> expected;
  for (uint64_t support : {4u, 3u, 2u})
    expected.push_back(Mechanism::RandomisedResponse({.support = support, .lambda = 0.6})->ToText());
  EXPECT_EQ(Charged(), expected);
  const auto entry = ledger_->Entries()->back();
  EXPECT_EQ(entry.run, "test");
  EXPECT_EQ(entry.purpose, "decoding");
  EXPECT_EQ(entry.noise, privacy::NoiseKind::kSecure);
}

TEST_F(PrivateSamplingTest, NonUniformAndAnchoredSamplesAreChargedAsTheyCost) {
  ASSERT_TRUE(Must(Options(DecodingMode::kNonUniform)).Sample(Request(DecodingMode::kNonUniform, 2)).ok());
  ASSERT_TRUE(Must(Options(DecodingMode::kBaseAnchored)).Sample(Request(DecodingMode::kBaseAnchored, 3)).ok());
  const auto entries = *ledger_->Entries();
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_NEAR(entries[0].mechanism.min_probability(), 1.0 / 20, 1e-14);
  EXPECT_NEAR(entries[1].mechanism.min_probability(), 1.0 / 18, 1e-14);  // item 1 (2 of 20) may be gone
  EXPECT_LE(entries[0].mechanism.min_probability(), 1.0 / 20);
  for (size_t i = 2; i < 5; ++i) {
    EXPECT_EQ(entries[i].mechanism.word(), "bounded_range");
    EXPECT_GE(entries[i].mechanism.range(), 4 * 0.8 / 0.7);
    EXPECT_NEAR(entries[i].mechanism.range(), 4 * 0.8 / 0.7, 1e-8);
  }
}

TEST_F(PrivateSamplingTest, BlocksCoverSmallerSupportsAndGiveNothingBack) {
  PrivateSamplerOptions o = Options(DecodingMode::kUniform);
  o.samples_per_charge = 4;
  PrivateSampler sampler = Must(o);
  const std::vector<int32_t> few = {0, 1, 2};
  SampleRequest small = Request(DecodingMode::kUniform, 2);
  small.candidates = few;
  ASSERT_TRUE(sampler.Sample(small).ok());
  EXPECT_EQ(sampler.samples_left_in_block(), 2u);
  ASSERT_TRUE(sampler.Sample(small).ok());
  EXPECT_EQ(Charged().size(), 1u);
  EXPECT_EQ(sampler.samples_left_in_block(), 0u);
  ASSERT_TRUE(sampler.Sample(small).ok());
  EXPECT_EQ(Charged().size(), 2u);
  ASSERT_TRUE(sampler.Sample(Request(DecodingMode::kUniform)).ok());  // five items: the block of three is too small
  const std::string three = Mechanism::RandomisedResponse({.support = 3, .lambda = 0.6, .count = 4})->ToText(),
                    five = Mechanism::RandomisedResponse({.support = 5, .lambda = 0.6, .count = 4})->ToText();
  EXPECT_EQ(Charged(), (std::vector<std::string>{three, three, five}));
  ASSERT_TRUE(sampler.Sample(small).ok());
  EXPECT_EQ(Charged().size(), 3u);
}

TEST_F(PrivateSamplingTest, ChargedForTheWholeCatalogueEveryChargeIsTheSame) {
  for (DecodingMode mode : kPrivateModes) {
    const size_t before = Charged().size();
    PrivateSamplerOptions o = Options(mode);
    o.charge_for = ChargeFor::kWholeCatalogue;
    o.samples_per_charge = 2;
    PrivateSampler sampler = Must(o);
    SampleRequest r = Request(mode, 2);
    const std::vector<int32_t> few = {2, 3, 4};
    r.candidates = few;
    ASSERT_TRUE(sampler.Sample(r).ok());
    r.candidates = {};
    ASSERT_TRUE(sampler.Sample(r).ok());
    const auto charged = Charged();
    ASSERT_EQ(charged.size(), before + 2);
    EXPECT_EQ(charged[before], charged[before + 1]);
  }
}

TEST_F(PrivateSamplingTest, RefusedChargeSamplesNoRandomNumberAndReturnsNothing) {
  for (DecodingMode mode : kPrivateModes) {
    PrivateSampler sampler = Must(Options(mode, 7));
    if (!ledger_->Limit()->has_value()) {
      ASSERT_TRUE(sampler.Sample(Request(mode, 2)).ok());
      EXPECT_GT(sampler.random_position(), 0u);
      EXPECT_EQ(ledger_->Entries()->back().noise, privacy::NoiseKind::kReproducible);
      ASSERT_TRUE(ledger_->SetLimit(*EpsilonDelta::Create(1, 1e-6)).ok());
    }
    const uint64_t position = sampler.random_position();
    const size_t charges = Charged().size();
    auto refused = sampler.Sample(Request(mode, 2));  // reproducible samples pass every limit
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
    EXPECT_EQ(sampler.random_position(), position);
    EXPECT_EQ(Charged().size(), charges);
  }
}

TEST_F(PrivateSamplingTest, TheLedgersLimitIsTheDeploymentOfSamples) {
  ASSERT_TRUE(ledger_->SetLimit(*EpsilonDelta::Create(1, 1e-6)).ok());
  PrivateSamplerOptions o = Options(DecodingMode::kUniform);
  // A sample costs pure epsilon log(1 + 5 / 19) = 0.23: four samples and no more at delta 0, a few more at 1e-6.
  o.lambda = 0.05;
  int samples = 0;
  for (; samples < 100; ++samples) {
    auto item = Must(o).Sample(Request(DecodingMode::kUniform));  // a new sampler each time, so it holds no state
    if (item.ok()) continue;
    EXPECT_EQ(item.status().code(), StatusCode::kPrivacyRefused);
    break;
  }
  EXPECT_GE(samples, 4);
  EXPECT_LE(samples, 6);
  EXPECT_LE(*ledger_->Spent(*privacy::Delta::Create(1e-6)), 1);
}

// docs/algorithms.md, section 7: |V| = 1e4, lambda = 1e-4, T = 100 costs 69.3 at delta 0 and 1.38 at delta 1e-6.
TEST_F(PrivateSamplingTest, AHundredSamplesCostWhatTheSpecificationSays) {
  PrivateSamplerOptions o = Options(DecodingMode::kUniform);
  o.num_items = 10000;
  o.lambda = 1e-4;
  o.samples_per_charge = 100;
  PrivateSampler sampler = Must(o);
  const std::vector<float> scores(o.num_items);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(sampler.Sample({.scores = scores}).ok());
  EXPECT_EQ(Charged().size(), 1u);
  EXPECT_NEAR(100 * ComputeEpsilon(UniformSampleCost(o.num_items, o.lambda)), 69.3, 0.05);
  EXPECT_NEAR(*ledger_->Spent(*privacy::Delta::Create(1e-6)), 1.38, 0.01);
}

TEST_F(PrivateSamplingTest, AnchoredSamplesAfterTheFirstStillTellFarItemsApart) {
  PrivateSamplerOptions o = Options(DecodingMode::kBaseAnchored, 41);
  o.num_items = 3;
  o.temperature = 1;
  o.clip = 0.01;
  o.samples_per_charge = 1u << 30;
  PrivateSampler sampler = Must(o);
  const std::vector<float> base = {0, -40, -41};  // both below the floor of the weights while item 0 is there
  std::vector<uint64_t> counts(3);
  for (int i = 0; i < 20000; ++i)
    ++counts[static_cast<size_t>((*sampler.Sample({.scores = base, .base_scores = base, .count = 2}))[1])];
  EXPECT_GT(ChiSquarePValue(counts, std::vector<double>{0, 1 / (1 + std::exp(-1.0)), 1 / (1 + std::exp(1.0))}), kAlpha);
}

TEST_F(PrivateSamplingTest, NoScoreIsAnError) {
  for (float value : {kNan, kInf, -kInf, 3e38f}) {
    for (DecodingMode mode : kPrivateModes) {
      const std::vector<float> scores(kItems, value);
      SampleRequest r = Request(mode, kItems);
      r.scores = scores;
      auto items = Must(Options(mode)).Sample(r);
      ASSERT_TRUE(items.ok());
      EXPECT_EQ(items->size(), kItems);  // a private -inf does not shrink the support
    }
  }
}

TEST_F(PrivateSamplingTest, APublicMinusInfinityLeavesTheSupport) {
  std::vector<float> base = kBase;
  base[1] = base[2] = -kInf;
  SampleRequest r = Request(DecodingMode::kBaseAnchored, 9);
  r.base_scores = base;
  PrivateSampler sampler = Must(Options(DecodingMode::kBaseAnchored));
  const auto items = *sampler.Sample(r);
  EXPECT_EQ(std::set<int32_t>(items.begin(), items.end()), (std::set<int32_t>{0, 3, 4}));
  for (float bad : {kNan, kInf, 1e6f}) {
    base[0] = bad;
    EXPECT_EQ(sampler.Sample(r).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST_F(PrivateSamplingTest, NoGuarantee_IsRefusedWithAReason) {
  using Change = std::function<void(PrivateSamplerOptions&)>;
  struct Case {
    DecodingMode mode;
    Change change;
    const char* reason;
    StatusCode code = StatusCode::kPrivacyRefused;
  };
  constexpr auto kU = DecodingMode::kUniform, kN = DecodingMode::kNonUniform, kB = DecodingMode::kBaseAnchored;
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  const Case cases[] = {
      {kU, [](auto& o) { o.selection = Selection::kArgMax; }, "arg-max"},
      {kB, [](auto& o) { o.selection = Selection::kBeamSearch; }, "beam search"},
      {kU, [](auto& o) { o.after_mixing = AfterMixing::kTemperature; }, "after mixing"},
      {kU, [](auto& o) { o.after_mixing = AfterMixing::kTopK; }, "after mixing"},
      {kN, [](auto& o) { o.after_mixing = AfterMixing::kNucleus; }, "after mixing"},
      {kU, [](auto& o) { o.output = SampleOutput::kProbabilities; }, "probabilities"},
      {kU, [](auto& o) { o.ledger = nullptr; }, "ledger"},
      {kU, [](auto& o) { o.lambda = 1; }, "lambda"},
      {kU, [](auto& o) { o.lambda = -0.1; }, "lambda", kInvalid},
      {kU, [](auto& o) { o.lambda = 1.5; }, "lambda", kInvalid},
      {kN, [](auto& o) { o.lambda = kNan; }, "lambda", kInvalid},
      {kN, [](auto& o) { o.mixing[3] = 0; }, "item 3"},
      {kN, [](auto& o) { o.mixing[2] = kInf; }, "item 2"},
      {kN, [](auto& o) { o.mixing.pop_back(); }, "mixing", kInvalid},
      {kU, [](auto& o) { o.mixing = kMixing; }, "mixing", kInvalid},
      {kB, [](auto& o) { o.clip = 0; }, "clip", kInvalid},
      {kB, [](auto& o) { o.clip = kInf; }, "clip"},
      {kB, [](auto& o) { o.clip = kNan; }, "clip", kInvalid},
      {kB, [](auto& o) { o.top_k = 2; }, "truncation"},
      {kB, [](auto& o) { o.nucleus = 0.9; }, "truncation"},
      {kB, [](auto& o) { o.clip = 1e7; }, "2^20", kInvalid},
      {kU, [](auto& o) { o.temperature = 0; }, "temperature", kInvalid},
      {kU, [](auto& o) { o.nucleus = 0; }, "nucleus", kInvalid},
      {kU, [](auto& o) { o.num_items = 0; }, "catalogue", kInvalid},
      {kU, [](auto& o) { o.samples_per_charge = 0; }, "samples_per_charge", kInvalid},
      {DecodingMode::kPlain, [](auto&) {}, "without a guarantee"},
  };
  for (const Case& c : cases) {
    PrivateSamplerOptions o = Options(c.mode);
    c.change(o);
    auto sampler = PrivateSampler::Create(std::move(o));
    ASSERT_FALSE(sampler.ok()) << c.reason;
    EXPECT_EQ(sampler.status().code(), c.code) << c.reason;
    EXPECT_NE(sampler.status().message().find(c.reason), std::string::npos) << sampler.status().message();
  }
}

TEST_F(PrivateSamplingTest, RequestsThatCannotBeServedChargeNothing) {
  PrivateSampler sampler = Must(Options(DecodingMode::kUniform, 3)),
                 anchored = Must(Options(DecodingMode::kBaseAnchored, 3));
  const std::vector<int32_t> bad = {0, 5}, negative = {-1};
  SampleRequest r = Request(DecodingMode::kUniform);
  r.support_origin = SupportOrigin::kPrivateModel;
  EXPECT_EQ(sampler.Sample(r).status().code(), StatusCode::kPrivacyRefused);
  r = Request(DecodingMode::kUniform);
  r.candidates = bad;
  EXPECT_EQ(sampler.Sample(r).status().code(), StatusCode::kInvalidArgument);
  r = Request(DecodingMode::kUniform);
  r.excluded = negative;
  EXPECT_EQ(sampler.Sample(r).status().code(), StatusCode::kInvalidArgument);
  r.excluded = {};
  r.scores = r.scores.first(4);
  EXPECT_EQ(sampler.Sample(r).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(anchored.Sample(Request(DecodingMode::kUniform)).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(sampler.random_position(), 0u);
  EXPECT_TRUE(Charged().empty());
}

// The charge is fixed, whatever a request mixes in. A request that gives an item less probability than charged is
// refused, and not paid for.
TEST_F(PrivateSamplingTest, AMixtureOfARequestHasToKeepWhatIsChargedFor) {
  PrivateSamplerOptions o = Options(DecodingMode::kNonUniform, 3);
  o.mixing = {};
  o.min_probability = 0.04;
  PrivateSampler sampler = Must(o);
  const std::vector<double> good = {0.05, 1, 0.05, 0.05, 0.05}, low = {0.03, 1, 0.05, 0.05, 0.05},
                            none = {0, 1, 1, 1, 1}, endless = {1, 1, 1, 1, kInf};
  SampleRequest r = Request(DecodingMode::kNonUniform);
  EXPECT_EQ(sampler.Sample(r).status().code(), StatusCode::kInvalidArgument) << "no mixture";
  for (const auto* mixing : {&low, &none, &endless}) {
    r.mixing = *mixing;
    EXPECT_EQ(sampler.Sample(r).status().code(), StatusCode::kInvalidArgument);
  }
  r.mixing = good;
  r.count = 2;
  EXPECT_EQ(sampler.Sample(r).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(sampler.random_position(), 0u);
  EXPECT_TRUE(Charged().empty());
  r.count = 1;
  ASSERT_TRUE(sampler.Sample(r).ok());
  r.mixing = low;
  const std::vector<int32_t> few = {1, 2, 3};  // over these, each is likely enough
  r.candidates = few;
  ASSERT_TRUE(sampler.Sample(r).ok());
  const std::string charged = Mechanism::NonUniformResponse({.min_probability = 0.04, .lambda = 0.6})->ToText();
  EXPECT_EQ(Charged(), (std::vector<std::string>{charged, charged}));
  o.min_probability = 0.7;
  EXPECT_FALSE(PrivateSampler::Create(o).ok());
}

TEST_F(PrivateSamplingTest, PlainSamplingOfGuaranteedWeightsCostsNothing) {
  PrivateSamplerOptions o = Options(DecodingMode::kPlain);
  o.need.kind = DecodingNeed::Kind::kFree;
  o.ledger = nullptr;
  o.top_k = 1;
  EXPECT_EQ(*Must(o).Sample(Request(DecodingMode::kPlain)), (std::vector<int32_t>{2}));
}

}  // namespace
}  // namespace wisp::private_sampling_test
