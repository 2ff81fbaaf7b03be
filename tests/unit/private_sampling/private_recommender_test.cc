// Private recommendations from sessions: what is charged, when it is free, what ends it, what is refused.
#include "runtime/private_sampling/private_recommender.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "gtest/gtest.h"
#include "runtime/privacy/accounting/accountant.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/model/model_test_util.h"
#include "tests/unit/privacy/noise/chi_square.h"

namespace wisp::private_recommender_test {
namespace {

using privacy::EpsilonDelta;
using privacy::Ledger;

const UniformArchitecture kArchitecture = {.num_items = 40,
                                           .max_length = 6,
                                           .width = 8,
                                           .num_heads = 2,
                                           .num_blocks = 1,
                                           .inner_width = 8,
                                           .output_bias = OutputBias::kTrained};
const std::vector<int32_t> kHistory = {3, 17, 5};
const std::vector<std::string> kPublic = {"shipped"};
const ProvenanceEntry kShipped{.description = "trained offline", .dataset = "shipped"};
const ProvenanceEntry kDevice{.description = "fine-tuned", .dataset = "history"};
const ProvenanceEntry kGuaranteed{
    .mechanisms = {"Gaussian"}, .epsilon = 2, .delta = 1e-6, .noise = NoiseOrigin::kSecure, .dataset = "history"};

class PrivateRecommenderTest : public ::testing::Test {
 protected:
  PrivateRecommenderTest()
      : ledger_(*Ledger::Open(folder_ / "l", {.dataset = "history", .record = privacy::RecordSpec::OfEvents({})})) {
    base_ = Open(1, {kShipped});
    model_ = Open(2, {kShipped, kDevice});
  }
  std::unique_ptr<Session> Open(uint32_t seed, std::vector<ProvenanceEntry> provenance, float shift = 0) {
    std::vector<float> weights = wisp::test::RandomWeights(kArchitecture, seed);
    for (const ParameterSpec& p : ListParameters(kArchitecture)) {
      for (size_t i = 0; p.name.find("bias") != std::string::npos && p.size() == 40 && i < 40; ++i)
        weights[p.offset + i] += shift;
    }
    const std::string path = folder_ / ("m" + std::to_string(++models_));
    EXPECT_TRUE(
        WriteModel(path, {.architecture = kArchitecture, .weights = weights, .provenance = std::move(provenance)})
            .ok());
    return *Session::Open(path);
  }
  PrivateRecommenderOptions Mixed(SampleGoal goal = {.lambda = 1e-2}) {
    return {.goal = goal, .public_datasets = kPublic, .ledger = &ledger_};
  }
  PrivateRecommenderOptions Anchored(SampleGoal goal = {.clip = 0.5}) {
    PrivateRecommenderOptions o = Mixed(goal);
    o.base = base_.get();
    return o;
  }
  PrivateRecommender Must(const PrivateRecommenderOptions& o) {
    auto r = PrivateRecommender::Create(*model_, o);
    EXPECT_TRUE(r.ok()) << r.status().message();
    return *std::move(r);
  }
  uint64_t Charged() {
    uint64_t sum = 0;
    for (const auto& e : *ledger_.Entries()) sum += e.mechanism.steps();
    return sum;
  }
  // Returns kGuaranteed for a run that was charged to a ledger, by default ledger_.
  ProvenanceEntry Paid() { return PaidFrom(ledger_); }
  static ProvenanceEntry PaidFrom(Ledger& ledger) {
    EXPECT_TRUE(
        ledger.Charge({.mechanism = *privacy::Mechanism::Gaussian({.noise_multiplier = 1}), .run = "training"}).ok());
    ProvenanceEntry entry = kGuaranteed;
    entry.receipt = *ledger.MakeReceipt("training");
    return entry;
  }
  double Spent() { return *ledger_.Spent(*privacy::Delta::Create(1e-6)); }

  test::TemporaryFolder folder_;
  Ledger ledger_;
  int models_ = 0;
  std::unique_ptr<Session> base_, model_;
};

TEST_F(PrivateRecommenderTest, EverySampleIsChargedAndTheFigureGrows) {
  double before = 0;
  uint64_t samples = 0;
  for (const auto& options : {Mixed(), Anchored()}) {
    PrivateRecommender r = Must(options);
    EXPECT_FALSE(r.is_free());
    EXPECT_EQ(r.mode(), options.base == nullptr ? DecodingMode::kUniform : DecodingMode::kBaseAnchored);
    const auto items = *r.Recommend(kHistory, {.count = 7});
    EXPECT_EQ(std::set(items.begin(), items.end()).size(), 7u);
    for (int32_t seen : kHistory) EXPECT_EQ(std::count(items.begin(), items.end(), seen), 0);
    EXPECT_EQ(r.samples_charged(), 7u);
    EXPECT_EQ(Charged(), samples += 7);
    EXPECT_GT(Spent(), before);
    before = Spent();
  }
  // All are charged as samples from the whole catalogue.
  EXPECT_EQ((*ledger_.Entries())[0].mechanism.support(), 40u);
  EXPECT_NEAR((*ledger_.Entries())[7].mechanism.range(), 2, 1e-6);
}

// The samples reveal `history`: a ledger of other data does not pay for them, and records nothing.
TEST_F(PrivateRecommenderTest, ALedgerOfOtherDataDoesNotPay) {
  Ledger other = *Ledger::Open(folder_ / "other", {.dataset = "shopping", .record = privacy::RecordSpec::OfEvents({})});
  for (PrivateRecommenderOptions options : {Mixed(), Anchored()}) {
    options.ledger = &other;
    const Status status = PrivateRecommender::Create(*model_, options).status();
    EXPECT_EQ(status.code(), StatusCode::kPrivacyRefused);
    EXPECT_NE(status.message().find("is of the data set 'shopping', and what is to be charged is 'history'"),
              std::string::npos)
        << status.message();
  }
  EXPECT_TRUE(other.Entries()->empty());
}

TEST_F(PrivateRecommenderTest, BlocksGiveNothingBack) {
  PrivateRecommenderOptions options = Mixed();
  options.samples_per_charge = 8;
  PrivateRecommender first = Must(options);
  ASSERT_TRUE(first.Recommend(kHistory, {.count = 3}).ok());
  EXPECT_EQ(Charged(), 8u);
  ASSERT_TRUE(first.Recommend(kHistory, {.count = 5}).ok());
  EXPECT_EQ(Charged(), 8u) << "the rest of the block was paid for";
  ASSERT_TRUE(first.Recommend(kHistory, {.count = 1}).ok());
  PrivateRecommender second = Must(options);  // simulates a restart
  ASSERT_TRUE(second.Recommend(kHistory, {.count = 1}).ok());
  EXPECT_EQ(Charged(), 24u);
}

TEST_F(PrivateRecommenderTest, WeightsWithAGuaranteeAndPublicOnesAreFree) {
  const auto dp = Open(3, {kShipped, Paid()});
  for (Session* session : {dp.get(), base_.get()}) {
    PrivateRecommender r = *PrivateRecommender::Create(*session, {.public_datasets = kPublic});
    EXPECT_TRUE(r.is_free());
    ASSERT_EQ(r.Recommend(kHistory, {.count = 5})->size(), 5u);
    EXPECT_EQ(r.samples_charged(), 0u);
    PrivateRecommender with_ledger = *PrivateRecommender::Create(*session, Mixed());
    ASSERT_TRUE(with_ledger.Recommend(kHistory, {.count = 5}).ok());
  }
  EXPECT_EQ(Charged(), 1u) << "what the weights cost";
  EXPECT_EQ((*PrivateRecommender::Create(*dp, Mixed())).reason(),
            "the weights carry a guarantee for all data that is not declared public: sampling is free post-processing");
  // The data are not declared public, so samples are charged to the ledger of the revealed data, which is not this one.
  PrivateRecommenderOptions nothing_public = Mixed();
  nothing_public.public_datasets = {};
  const auto other = PrivateRecommender::Create(*dp, nothing_public);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(other.status().message().find("is of the data set 'history', and what is to be charged is 'shipped'"),
            std::string::npos)
      << other.status().message();
  Ledger shipped =
      *Ledger::Open(folder_ / "shipped", {.dataset = "shipped", .record = privacy::RecordSpec::OfEvents({})});
  nothing_public.ledger = &shipped;
  EXPECT_FALSE(PrivateRecommender::Create(*dp, nothing_public)->is_free());
  EXPECT_EQ(PrivateRecommender::Create(*model_, nothing_public).status().code(), StatusCode::kPrivacyRefused)
      << "two data sets, one ledger";
}

TEST_F(PrivateRecommenderTest, ALedgerThatLacksWhatModelOrBaseCostIsRefused) {
  // This run was charged to another ledger of the same data.
  Ledger other = *Ledger::Open(folder_ / "other", {.dataset = "history", .record = privacy::RecordSpec::OfEvents({})});
  const ProvenanceEntry elsewhere = PaidFrom(other);
  const auto dp = Open(3, {kShipped, elsewhere}), then_bare = Open(4, {kShipped, elsewhere, kDevice});
  const auto refused = [&](Session& model, Session* base, bool other_data = false) {
    PrivateRecommenderOptions o = base == nullptr ? Mixed() : Anchored();
    if (base != nullptr) o.base = base;
    o.other_data = other_data;
    const auto made = PrivateRecommender::Create(model, o);
    const bool is = !made.ok() && made.status().code() == StatusCode::kPrivacyRefused &&
                    made.status().message().find("did not pay for it") != std::string::npos;
    EXPECT_EQ(made.ok(), !is) << made.status().message();
    return is;
  };
  EXPECT_TRUE(refused(*dp, nullptr)) << "free, but the ledger's total leaves out what they show";
  EXPECT_TRUE(refused(*then_bare, nullptr));
  EXPECT_TRUE(refused(*model_, dp.get())) << "a base that spent on the same data";
  EXPECT_FALSE(refused(*model_, base_.get()));
  EXPECT_FALSE(refused(*model_, dp.get(), /*other_data=*/true));
  EXPECT_EQ(Charged(), 0u);
  const ProvenanceEntry here = Paid();
  EXPECT_TRUE(refused(*dp, nullptr)) << "as much was spent, but not for these weights";
  EXPECT_FALSE(refused(*Open(5, {kShipped, here}), nullptr));
  EXPECT_FALSE(refused(*Open(6, {kShipped, here, kDevice}), nullptr));
  EXPECT_FALSE(refused(*model_, Open(7, {kShipped, here}).get()));
  EXPECT_TRUE(refused(*Open(8, {kShipped, here, elsewhere}), nullptr));
  // A path and its name denote the same data. An unbounded epsilon is no payment, so samples are charged.
  ProvenanceEntry dear = elsewhere, unbounded = elsewhere;
  dear.dataset = "/data/history";
  unbounded.epsilon = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(refused(*Open(9, {kShipped, dear}), nullptr));
  EXPECT_FALSE(refused(*Open(10, {kShipped, unbounded}), nullptr));
}

TEST_F(PrivateRecommenderTest, ADeploymentEndsWithItsLastSample) {
  const EpsilonDelta target = *EpsilonDelta::Create(2, 1e-6);
  for (const bool anchored : {false, true}) {
    ledger_ = *Ledger::Open(folder_ / (anchored ? "anchored" : "mixed"),
                            {.dataset = "history", .record = privacy::RecordSpec::OfEvents({})});
    const SampleGoal goal{.planned = SampleGoal::Planned{target, 30}};
    PrivateRecommenderOptions options = anchored ? Anchored(goal) : Mixed(goal);
    options.samples_per_charge = 10;
    for (int call = 0; call < 3; ++call) {
      PrivateRecommender r = Must(options);  // three processes; the first sets the limit
      EXPECT_EQ(ledger_.Limit()->value().epsilon(), 2);
      const auto items = r.Recommend(kHistory, {.count = 10});
      ASSERT_TRUE(items.ok()) << items.status().message();
    }
    EXPECT_LE(Spent(), 2);
    EXPECT_GT(Spent(), 1.97) << "budget is wasted";
    PrivateRecommender r = Must(options);
    const auto refused = r.Recommend(kHistory, {.count = 1});
    EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
    EXPECT_EQ(Charged(), 30u) << "what was refused was charged";
  }
}

TEST_F(PrivateRecommenderTest, ATargetNeedsALimitWhereSomethingWasSpent) {
  const SampleGoal goal{.planned = SampleGoal::Planned{*EpsilonDelta::Create(2, 1e-6), 30}};
  const auto training = *privacy::Mechanism::Gaussian({.noise_multiplier = 10});
  ASSERT_TRUE(ledger_.Charge({.mechanism = training, .run = "training"}).ok());
  EXPECT_EQ(PrivateRecommender::Create(*model_, Mixed(goal)).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_FALSE(ledger_.Limit()->has_value());
  ASSERT_TRUE(ledger_.SetLimit(*EpsilonDelta::Create(4, 1e-6)).ok());
  EXPECT_TRUE(PrivateRecommender::Create(*model_, Mixed(goal)).ok());
  EXPECT_EQ(ledger_.Limit()->value().epsilon(), 4);
}

TEST_F(PrivateRecommenderTest, AnEpsilonPerSampleIsKept) {
  for (const double epsilon : {1e-3, 0.2, 3.0}) {
    EXPECT_LE(Must(Mixed({.epsilon_per_sample = epsilon})).epsilon_per_sample(), epsilon * (1 + 1e-12));
    EXPECT_GT(Must(Mixed({.epsilon_per_sample = epsilon})).epsilon_per_sample(), epsilon * (1 - 1e-9));
    EXPECT_LE(Must(Anchored({.epsilon_per_sample = epsilon})).epsilon_per_sample(), epsilon);
    EXPECT_GT(Must(Anchored({.epsilon_per_sample = epsilon})).epsilon_per_sample(), epsilon * (1 - 1e-9));
  }
  // A short public list allows far more samples; each is charged for the rest of it.
  PrivateRecommenderOptions options = Mixed({.epsilon_per_sample = 0.2});
  options.charge_for = ChargeFor::kSupportLeft;
  options.largest_support = 4;
  PrivateRecommender r = Must(options);
  EXPECT_GT(r.lambda(), 9 * Must(Mixed({.epsilon_per_sample = 0.2})).lambda());
  const std::vector<int32_t> candidates = {30, 31, 32, 33};
  const auto items = *r.Recommend(kHistory, {.count = 4, .candidates = candidates});
  EXPECT_EQ(std::set(items.begin(), items.end()), std::set(candidates.begin(), candidates.end()));
  const auto entries = *ledger_.Entries();
  ASSERT_EQ(entries.size(), 3u) << "the last one is no choice";
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(entries[i].mechanism.support(), 4 - i);
}

// The law is nearly all q, almost without randomness, so the best item of the right session must come out.
TEST_F(PrivateRecommenderTest, SamplesFollowTheSessionsScores) {
  PrivateRecommenderOptions mixed = Mixed({.lambda = 1 - 1e-9});
  mixed.temperature = 1e-3;
  mixed.samples_per_charge = 100;
  PrivateRecommender of_model = Must(mixed);
  for (int32_t item = 0; item < 10; ++item) {
    const std::vector<int32_t> history = {item, 39 - item};
    EXPECT_EQ((*of_model.Recommend(history, {.count = 1}))[0], (*model_->Recommend(history, {.count = 1}))[0].item);
  }
  PrivateRecommenderOptions options = Anchored({.clip = 1e-6});  // almost nothing of the model is left: the base's best
  options.temperature = 1e-3;
  PrivateRecommender r = Must(options);
  for (int32_t item = 0; item < 10; ++item) {
    const std::vector<int32_t> history = {item, 39 - item};
    EXPECT_EQ((*r.Recommend(history, {.count = 1}))[0], (*base_->Recommend(history, {.count = 1}))[0].item);
  }
}

TEST_F(PrivateRecommenderTest, AnchoredSamplesHaveTheLawOfTheCentredScores) {
  PrivateRecommenderOptions options = Anchored({.clip = 1.5});
  options.temperature = 0.8;
  options.samples_per_charge = 20000;
  options.reproducible_seed = 9;
  std::vector<float> f(40), b(40);
  ASSERT_TRUE(model_->Score(kHistory, f).ok() && base_->Score(kHistory, b).ok());
  double mean = 0, sum = 0;
  for (size_t j = 0; j < 40; ++j) mean += (f[j] - b[j]) / 40;
  std::vector<double> law(40);
  for (size_t j = 0; j < 40; ++j) law[j] = std::exp((b[j] + std::clamp(f[j] - mean - b[j], -1.5, 1.5)) / 0.8);
  for (int32_t seen : kHistory) law[static_cast<size_t>(seen)] = 0;
  for (double w : law) sum += w;
  PrivateRecommender r = Must(options);
  std::vector<uint64_t> counts(40);
  for (int i = 0; i < 20000; ++i) ++counts[static_cast<size_t>((*r.Recommend(kHistory, {.count = 1}))[0])];
  for (double& w : law) w /= sum;
  EXPECT_GT(ChiSquarePValue(counts, law), 1e-6);
}

TEST_F(PrivateRecommenderTest, WhatIsTheSameForAllItemsDoesNotUseUpTheClip) {
  PrivateRecommenderOptions options = Anchored({.clip = 3});
  options.reproducible_seed = 5;
  const auto shifted = Open(2, {kShipped, kDevice}, 50);
  PrivateRecommender as_it_is = Must(options), moved = *PrivateRecommender::Create(*shifted, options);
  options.goal = {.clip = 1e-6};  // if all were clipped, only the base would be left
  PrivateRecommender base_alone = Must(options);
  std::vector<int32_t> one, other, third;
  for (int32_t item = 0; item < 30; ++item) {
    const std::vector<int32_t> history = {item};
    one.push_back((*as_it_is.Recommend(history, {.count = 1}))[0]);
    other.push_back((*moved.Recommend(history, {.count = 1}))[0]);
    third.push_back((*base_alone.Recommend(history, {.count = 1}))[0]);
  }
  EXPECT_EQ(one, other);
  EXPECT_NE(one, third);
}

TEST_F(PrivateRecommenderTest, ThePublicModelsBestMayBeTheSupport) {
  PrivateRecommender r = Must(Anchored());
  std::set<int32_t> best;
  for (const Recommendation& b : *base_->Recommend(kHistory, {.count = 6})) best.insert(b.item);
  const auto items = *r.Recommend(kHistory, {.count = 10, .base_top = 6});
  EXPECT_EQ(std::set(items.begin(), items.end()), best);
  EXPECT_FALSE(Must(Mixed()).Recommend(kHistory, {.base_top = 6}).ok());
}

TEST_F(PrivateRecommenderTest, NoGuarantee_IsRefusedAndNotCharged) {
  const auto refused = [&](PrivateRecommenderOptions o, StatusCode code, const char* word) {
    const auto r = PrivateRecommender::Create(*model_, o);
    EXPECT_EQ(r.status().code(), code) << word;
    EXPECT_NE(r.status().message().find(word), std::string::npos) << r.status().message();
  };
  const auto with = [&](auto&& change, bool anchored = false) {
    PrivateRecommenderOptions o = anchored ? Anchored() : Mixed();
    change(o);
    return o;
  };
  constexpr auto kRefused = StatusCode::kPrivacyRefused, kInvalid = StatusCode::kInvalidArgument;
  refused(with([](auto& o) { o.ledger = nullptr; }), kRefused, "ledger");
  refused(with([](auto& o) { o.selection = Selection::kArgMax; }), kRefused, "arg-max");
  refused(with([](auto& o) { o.after_mixing = AfterMixing::kTopK; }), kRefused, "after mixing");
  refused(with([](auto& o) { o.top_k = 5; }, true), kRefused, "top-k");
  refused(with([](auto& o) { o.public_datasets = {}; }, true), kRefused, "base model must be public");
  refused(with([&](auto& o) { o.base = model_.get(); }, true), kRefused, "base model must be public");
  refused(with([](auto& o) { o.goal = {.lambda = 1}; }), kRefused, "lambda");
  refused(with([](auto& o) { o.goal = {}; }), kInvalid, "exactly one");
  refused(with([](auto& o) { o.goal = {.lambda = 0.1, .epsilon_per_sample = 1}; }), kInvalid, "exactly one");
  refused(with([](auto& o) { o.goal = {.lambda = 0.1}; }, true), kInvalid, "clip");
  refused(with([](auto& o) { o.goal = {.clip = 0.1}; }), kInvalid, "lambda");
  refused(with([](auto& o) { o.mode = DecodingMode::kBaseAnchored; }), kInvalid, "base model");
  refused(with([](auto& o) { o.goal = {.epsilon_per_sample = 1e-12}; }, true), kRefused, "arithmetic");
  refused(with([](auto& o) {
            o.goal = {.planned = SampleGoal::Planned{*EpsilonDelta::Create(1, 1e-3), 10}}, o.num_records_public = 1000;
          }),
          kRefused, "1 / 1000");
  PrivateRecommender r = Must(Mixed());
  EXPECT_EQ(r.Recommend(kHistory, {.support_origin = SupportOrigin::kPrivateModel}).status().code(), kRefused);
  EXPECT_EQ(Charged(), 0u);
  EXPECT_FALSE(ledger_.Limit()->has_value());
}

// The scores for a user without history are the model's, like others', so sampling for such a user is paid for.
TEST_F(PrivateRecommenderTest, NoHistory_SamplesAreCharged) {
  PrivateRecommender r = Must(Mixed());
  EXPECT_EQ(r.Recommend({}, {.count = 3})->size(), 3u);
  EXPECT_EQ(Charged(), 3u);
}

// An error must not reveal for free how people's records changed the weights.
TEST_F(PrivateRecommenderTest, NoHistory_SamplesAreChargedForAnyScores) {
  std::vector<float> weights = wisp::test::RandomWeights(kArchitecture, 2);
  for (size_t i = 0; i < kArchitecture.width; ++i) weights[7 * kArchitecture.width + i] = 3e38f;
  const std::string path = folder_ / "large";
  ASSERT_TRUE(
      WriteModel(path, {.architecture = kArchitecture, .weights = weights, .provenance = {kShipped, kDevice}}).ok());
  model_ = *Session::Open(path);
  EXPECT_EQ(model_->Recommend({}, {}).status().code(), StatusCode::kInvalidData) << "the scores are finite";
  PrivateRecommender r = Must(Mixed());
  EXPECT_TRUE(r.Recommend({}, {.count = 3}).ok());
  EXPECT_EQ(Charged(), 3u);
}

// A refused request leaves the limit unchanged, also the limit that it asked for.
TEST_F(PrivateRecommenderTest, ANewLimitIsWrittenOnlyWhereNothingIsRefused) {
  ASSERT_TRUE(ledger_.SetLimit(*EpsilonDelta::Create(1, 1e-6)).ok());
  PrivateRecommenderOptions options = Mixed();
  options.new_limit = *EpsilonDelta::Create(50, 0.5);
  options.num_records_public = 1000;
  EXPECT_EQ(PrivateRecommender::Create(*model_, options).status().code(), StatusCode::kPrivacyRefused);
  options.new_limit = *EpsilonDelta::Create(50, 1e-6);
  options.selection = Selection::kArgMax;
  EXPECT_EQ(PrivateRecommender::Create(*model_, options).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ((*ledger_.Limit())->epsilon(), 1);
  options.selection = Selection::kSample;
  EXPECT_TRUE(PrivateRecommender::Create(*model_, options).ok());
  EXPECT_EQ((*ledger_.Limit())->epsilon(), 50);
}

TEST_F(PrivateRecommenderTest, ALargeDeltaHasToBeAllowed) {
  ASSERT_TRUE(ledger_.SetLimit(*EpsilonDelta::Create(5, 1.0 / 1000)).ok());
  PrivateRecommenderOptions options = Mixed();
  EXPECT_TRUE(PrivateRecommender::Create(*model_, options).ok()) << "how many records there are was not said";
  options.num_records_public = 999;
  EXPECT_TRUE(PrivateRecommender::Create(*model_, options).ok());
  options.num_records_public = 1000;
  EXPECT_EQ(PrivateRecommender::Create(*model_, options).status().code(), StatusCode::kPrivacyRefused);
  options.allow_large_delta = true;
  EXPECT_TRUE(PrivateRecommender::Create(*model_, options).ok());
  options.num_records_public = 1001;
  EXPECT_EQ(PrivateRecommender::Create(*model_, options).status().code(), StatusCode::kPrivacyRefused)
      << "more than 1 / records is no paper's";
}

// The device of one person, or of a household.
TEST_F(PrivateRecommenderTest, WithFewRecordsNothingAllowsALargeDelta) {
  PrivateRecommenderOptions options = Mixed();
  options.num_records_public = 5;
  options.allow_large_delta = true;
  for (double delta : {0.9, 0.2, 1.1e-5}) {
    options.new_limit = *EpsilonDelta::Create(50, delta);
    const Status refused = PrivateRecommender::Create(*model_, options).status();
    EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused) << delta;
    EXPECT_NE(refused.message().find("allowed with 5 records is at most 1e-05"), std::string::npos)
        << refused.message();
    EXPECT_FALSE(ledger_.Limit()->has_value());
  }
  options.new_limit = *EpsilonDelta::Create(50, 1e-5);
  EXPECT_TRUE(PrivateRecommender::Create(*model_, options).ok());
  // An existing limit does not allow it either.
  options.new_limit.reset();
  ASSERT_TRUE(ledger_.SetLimit(*EpsilonDelta::Create(50, 0.1)).ok());
  EXPECT_EQ(PrivateRecommender::Create(*model_, options).status().code(), StatusCode::kPrivacyRefused);
}

}  // namespace
}  // namespace wisp::private_recommender_test
