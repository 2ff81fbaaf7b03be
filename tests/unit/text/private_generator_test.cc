// Private text generation: the law of a token, charges before tokens, what ends a budget, what is refused, and private
// texts in the prompt. Statistical tests have fixed seeds and alpha = 1e-6 each.
#include "runtime/text/private_sampling/private_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>

#include "runtime/private_sampling/context_sum.h"
#include "runtime/private_sampling/sample_law.h"
#include "runtime/text/texts.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/privacy/noise/chi_square.h"
#include "tests/unit/text/text_test_util.h"

namespace wisp::private_generator_test {
namespace {

using privacy::EpsilonDelta;
using privacy::Ledger;

constexpr double kAlpha = 1e-6;
constexpr uint32_t kTokens = 450, kTop = 7;
const std::vector<std::string> kPublic = {"webtext"};
const ProvenanceEntry kShipped{.description = "converted", .dataset = "webtext"};
const ProvenanceEntry kDevice{.description = "fine-tuned", .dataset = "notes"};
const std::vector<std::string> kNotes = {"the tea is cold", "a bagel for lunch, and then another one", "tea"};

const privacy::LedgerOptions kLedger{.dataset = "notes", .record = privacy::RecordSpec::OfEvents({})};

class PrivateGeneratorTest : public ::testing::Test {
 protected:
  PrivateGeneratorTest() : ledger_(*Ledger::Open(folder_ / "l", kLedger)) {
    base_ = Open(1, {kShipped});
    model_ = Open(2, {kShipped, kDevice});
  }
  std::unique_ptr<Session> Open(uint32_t seed, std::vector<ProvenanceEntry> provenance,
                                const std::string& tokenizer = "gpt2") {
    const Architecture a = UniformArchitecture{.num_items = 460,
                                               .max_length = 48,
                                               .width = 16,
                                               .num_heads = 2,
                                               .num_blocks = 1,
                                               .inner_width = 16,
                                               .activation = ActivationKind::kGeluTanh};
    std::vector<float> weights = test::RandomWeights(a, seed);
    for (float& w : weights) w *= 0.8f;  // so that no token is almost certain
    const std::string path = folder_ / ("m" + std::to_string(++models_));
    ModelContents contents{.architecture = a, .weights = weights, .provenance = std::move(provenance)};
    contents.tokenizer = text::test::OpenGolden(tokenizer).image;
    EXPECT_TRUE(WriteModel(path, contents).ok());
    return *Session::Open(path);
  }
  PrivateGeneratorOptions Mixed(SampleGoal goal = {.lambda = 0.5}) {
    return {.samples = {.goal = goal, .public_datasets = kPublic, .ledger = &ledger_, .samples_per_charge = 8}};
  }
  PrivateGeneratorOptions Anchored(SampleGoal goal = {.clip = 1}) {
    PrivateGeneratorOptions o = Mixed(goal);
    o.samples.base = base_.get();
    return o;
  }
  PrivateGeneratorOptions WithBase() {
    PrivateGeneratorOptions o = Anchored({.lambda = 0.5});
    o.samples.mode = DecodingMode::kNonUniform;
    return o;
  }
  PrivateGeneratorOptions Aggregate(SampleGoal goal = {.clip = 2}, uint32_t contexts = 4) {
    PrivateGeneratorOptions o = Mixed(goal);
    o.samples.contexts = contexts;
    return o;
  }
  Result<PrivateGenerator> Make(const PrivateGeneratorOptions& o, Session* of = nullptr,
                                const std::vector<std::string>& notes = kNotes) {
    Session& session = of != nullptr ? *of : o.samples.contexts > 0 ? *base_ : *model_;
    tokenizers_.push_back(std::make_unique<text::Tokenizer>(*FindTokenizer(session.file())));
    PrivateTexts texts;
    if (o.samples.contexts > 0) texts = {.texts = notes};
    return PrivateGenerator::Create(session, *tokenizers_.back(), o, texts);
  }
  PrivateGenerator Must(const PrivateGeneratorOptions& o, Session* of = nullptr) {
    auto made = Make(o, of);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *std::move(made);
  }
  uint64_t Charged() {
    uint64_t sum = 0;
    for (const auto& e : *ledger_.Entries()) sum += e.mechanism.steps();
    return sum;
  }
  std::vector<PrivateGeneratorOptions> All() { return {Mixed(), WithBase(), Anchored(), Aggregate()}; }

  // Returns the scores of the tokens after a text.
  std::vector<float> Scores(Session& session, const std::vector<int32_t>& tokens) {
    std::vector<float> scores(460);
    EXPECT_TRUE(session.Score(tokens, scores).ok());
    scores.resize(kTokens);
    return scores;
  }
  std::vector<int32_t> Ids(const std::string& t) { return text::test::EncodeIds(*text::test::OpenGolden("gpt2"), t); }

  test::TemporaryFolder folder_;
  Ledger ledger_;
  int models_ = 0;
  std::unique_ptr<Session> base_, model_;
  std::vector<std::unique_ptr<text::Tokenizer>> tokenizers_;
};

std::vector<size_t> Best(const std::vector<float>& scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(count);
  return order;
}

std::vector<double> Softmax(const std::vector<double>& scores, const std::vector<size_t>& support) {
  std::vector<double> law(scores.size(), 0.0);
  double largest = -1e300, sum = 0;
  for (size_t j : support) largest = std::max(largest, scores[j]);
  for (size_t j : support) sum += law[j] = std::exp(scores[j] - largest);
  for (double& p : law) p /= sum;
  return law;
}

// Returns the difference of f and b, centred over all tokens and clipped.
std::vector<double> Clipped(const std::vector<float>& f, const std::vector<float>& b, double clip) {
  std::vector<double> d(f.size());
  double mean = 0;
  for (size_t j = 0; j < f.size(); ++j) mean += (static_cast<double>(f[j]) - b[j]) / static_cast<double>(f.size());
  for (size_t j = 0; j < f.size(); ++j) d[j] = std::clamp(static_cast<double>(f[j]) - mean - b[j], -clip, clip);
  return d;
}

// Computes the laws of docs/algorithms.md, section 7, again from the sessions' own scores.
TEST_F(PrivateGeneratorTest, ATokenHasTheLawThatItIsChargedFor) {
  const std::string prompt = "the tea";
  const std::vector<float> f = Scores(*model_, Ids(prompt)), b = Scores(*base_, Ids(prompt));
  const double tau = 0.8, clip = 1.5, lambda = 0.6, floor = 0.3;
  const auto over = [&](const std::vector<float>& x) {
    std::vector<double> y(x.begin(), x.end());
    for (double& v : y) v /= tau;
    return y;
  };
  std::vector<size_t> support = Best(b, kTop);
  const std::vector<double> q = Softmax(over(f), support), u = Softmax({b.begin(), b.end()}, support);
  std::vector<double> uniform(kTokens), with_base(kTokens), anchored(b.begin(), b.end());
  for (size_t j : support) {
    uniform[j] = lambda * q[j] + (1 - lambda) / kTop;
    with_base[j] = lambda * q[j] + (1 - lambda) * ((1 - floor) * u[j] + floor / kTop);
  }
  const std::vector<double> moved = Clipped(f, b, clip);
  for (size_t j = 0; j < kTokens; ++j) anchored[j] = (anchored[j] + moved[j]) / tau;
  anchored = Softmax(anchored, support);
  // Three notes for four contexts: the fourth adds nothing.
  const std::vector<float> p = Scores(*base_, Ids("\nthe tea"));
  const std::vector<size_t> of_public = Best(p, kTop);
  std::vector<double> aggregate(p.begin(), p.end());
  for (const std::string& note : kNotes) {
    std::vector<int32_t> tokens = Ids(note);
    for (int32_t id : Ids("\nthe tea")) tokens.push_back(id);
    const std::vector<double> d = Clipped(Scores(*base_, tokens), p, clip);
    for (size_t j = 0; j < kTokens; ++j) aggregate[j] += d[j] / 4;
  }
  for (double& score : aggregate) score /= tau;
  aggregate = Softmax(aggregate, of_public);

  struct Case {
    PrivateGeneratorOptions options;
    std::vector<double> law;
  };
  PrivateGeneratorOptions mixed = Mixed({.lambda = lambda});
  mixed.samples.mode = DecodingMode::kUniform;
  mixed.samples.base = base_.get();
  PrivateGeneratorOptions based = WithBase();
  based.samples.goal = {.lambda = lambda};
  based.samples.mixing_floor = floor;
  uint64_t seed = 100;
  for (Case c : {Case{mixed, uniform},
                 {based, with_base},
                 {Anchored({.clip = clip}), anchored},
                 {Aggregate({.clip = clip}), aggregate}}) {
    c.options.base_top = kTop;
    c.options.samples.temperature = tau;
    c.options.samples.samples_per_charge = 1u << 20;
    c.options.samples.reproducible_seed = ++seed;
    PrivateGenerator generator = Must(c.options);
    std::vector<uint64_t> counts(kTokens);
    for (int i = 0; i < 8000; ++i) {
      const Result<Generated> text = generator.Generate(prompt, {.max_new_tokens = 1});
      ASSERT_TRUE(text.ok()) << text.status().message();
      const Generated& made = *text;
      ++counts[made.tokens.empty() ? 0 : static_cast<size_t>(made.tokens[0])];  // 0 is the end token
    }
    EXPECT_GT(ChiSquarePValue(counts, c.law), kAlpha) << seed;
    EXPECT_LT(*std::max_element(c.law.begin(), c.law.end()), 0.7) << "a law that tells nothing";
  }
}

TEST_F(PrivateGeneratorTest, EveryTokenIsChargedBeforeItIsShown) {
  for (PrivateGeneratorOptions o : All()) {
    o.samples.samples_per_charge = 1;
    PrivateGenerator generator = Must(o);
    const uint64_t before = Charged();
    const Generated made = *generator.Generate("the", {.max_new_tokens = 5}, [&](std::string_view) {
      EXPECT_EQ(Charged() - before, generator.setup().sampler.samples_charged());
      return true;
    });
    EXPECT_EQ(Charged() - before, made.tokens.size() + (made.ended == Ended::kEndToken ? 1 : 0));
  }
  const auto mechanism = [&](size_t i) { return (*ledger_.Entries())[i].mechanism; };
  EXPECT_EQ(mechanism(0).support(), kTokens);
  EXPECT_NEAR(ledger_.Entries()->back().mechanism.range(), 2 * 2.0 / 4, 1e-7);
}

// The cost follows from the declared B, not from the number of texts or from unreadable ones.
TEST_F(PrivateGeneratorTest, TextsThatAreMissingOrUnreadableChangeNoChargeAndNoLength) {
  std::vector<std::string> long_ones(9, std::string(4000, 'x'));
  for (const std::vector<std::string>& notes :
       {std::vector<std::string>{}, {"a"}, long_ones, {"\xff\xfe", "", "tea"}}) {
    const uint64_t before = Charged();
    auto generator = Make(Aggregate({.clip = 1}), nullptr, notes);
    ASSERT_TRUE(generator.ok()) << generator.status().message();
    const auto made = generator->Generate("the", {.max_new_tokens = 8});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(Charged() - before, 8u);
    EXPECT_NEAR(ledger_.Entries()->back().mechanism.range(), 2 * 1.0 / 4, 1e-7);
    EXPECT_EQ(generator->left_out(), notes.size() == 3 ? 1u : 0u);
    EXPECT_EQ(made->prompt_tokens, Ids("\nthe").size());
  }
}

// With one text more or less, no token, given all earlier samples, becomes more likely than charged.
TEST_F(PrivateGeneratorTest, OneTextMovesNoTokensLawByMoreThanIsCharged) {
  tokenizers_.push_back(std::make_unique<text::Tokenizer>(*FindTokenizer(base_->file())));
  const double clip = 0.7;
  const AggregateOptions law{.clip = clip, .temperature = 0.5, .contexts = 4};
  const double epsilon = ComputeEpsilon(AggregateSampleCost({.clip = clip, .temperature = 0.5, .contexts = 4}));
  std::vector<int32_t> all(kTokens);
  std::iota(all.begin(), all.end(), 0);
  const auto logs = [&](const std::vector<std::string>& notes, const std::vector<int32_t>& sampled) {
    PrivateContexts contexts = *PrivateContexts::Create(*base_, *tokenizers_.back(), {.texts = notes}, "the",
                                                        {.contexts = 4, .max_new_tokens = 8});
    std::vector<float> scores(460);
    EXPECT_TRUE(contexts.PublicScores(sampled, scores).ok());
    scores.resize(kTokens);
    std::vector<int64_t> sums(kTokens);
    EXPECT_TRUE(contexts.Sum(sampled, clip, scores, sums).ok());
    std::vector<double> weights;
    AggregateWeights(sums, scores, all, law, weights);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& w : weights) w = std::log(w / total);
    return weights;
  };
  double worst = 0;
  for (size_t gone = 0; gone < kNotes.size(); ++gone) {
    std::vector<std::string> without = kNotes;
    without.erase(without.begin() + static_cast<ptrdiff_t>(gone));
    for (const std::vector<int32_t>& sampled : {std::vector<int32_t>{}, {40, 41}, {300, 2, 17}}) {
      const std::vector<double> a = logs(kNotes, sampled), b = logs(without, sampled);
      for (size_t j = 0; j < kTokens; ++j) worst = std::max(worst, std::abs(a[j] - b[j]));
    }
  }
  EXPECT_LE(worst, epsilon);
  EXPECT_GT(worst, 0.5 * epsilon) << "the texts do nothing";
}

TEST_F(PrivateGeneratorTest, ABudgetEndsInWordsAndNothingIsSampledThen) {
  const SampleGoal goal{.planned = SampleGoal::Planned{*EpsilonDelta::Create(2, 1e-6), 12}};
  for (PrivateGeneratorOptions o : {Anchored(goal), Aggregate(goal)}) {
    ledger_ = *Ledger::Open(folder_ / ("l" + std::to_string(++models_)), kLedger);
    o.samples.samples_per_charge = 4;
    o.only_text = true;
    uint64_t sampled = 0;
    for (int text = 0; sampled < 12; ++text) {
      ledger_ = *Ledger::Open(ledger_.path(), kLedger);  // simulates a restart
      PrivateGenerator generator = Must(o);
      std::string shown;
      const auto show = [&](std::string_view more) { return shown += more, true; };
      const auto room = static_cast<uint32_t>(12 - sampled);
      const auto refused = generator.Generate("the", {.max_new_tokens = room + 1}, show);
      ASSERT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
      EXPECT_NE(refused.status().message().find("room for " + std::to_string(room) + " tokens, and up to"),
                std::string::npos)
          << refused.status().message();
      EXPECT_EQ(Charged(), sampled) << "what was refused was charged";
      EXPECT_TRUE(shown.empty());
      const auto made = generator.Generate("the", {.max_new_tokens = std::min(room, 6u)}, show);
      ASSERT_TRUE(made.ok()) << made.status().message();
      sampled = Charged();
      EXPECT_GE(sampled, made->tokens.size());
    }
    EXPECT_EQ(sampled, 12u);
    EXPECT_EQ(ledger_.Limit()->value().epsilon(), 2);
    EXPECT_LE(*ledger_.Spent(*privacy::Delta::Create(1e-6)), 2);
    PrivateGenerator generator = Must(o);
    EXPECT_EQ(generator.Generate("the", {.max_new_tokens = 1}).status().code(), StatusCode::kPrivacyRefused);
  }
}

// There is no ledger before a text may be sampled: a refusal before that has promised nothing.
TEST_F(PrivateGeneratorTest, ARefusedFirstTextLeavesNoLedger) {
  const SampleGoal goal{.planned = SampleGoal::Planned{*EpsilonDelta::Create(2, 1e-6), 12}};
  for (const bool of_texts : {false, true}) {
    PrivateGeneratorOptions o = of_texts ? Aggregate(goal) : Anchored(goal);
    PrivateGenerator generator = Must(o);
    PrivateGenerateOptions empty_stop;
    empty_stop.stop.emplace_back();
    const auto code = [&](const std::string& prompt, const PrivateGenerateOptions& limits) {
      return generator.Generate(prompt, limits).status().code();
    };
    EXPECT_EQ(code("the \xff", {.max_new_tokens = 4}), StatusCode::kInvalidData);
    EXPECT_EQ(code(std::string(300, 'x'), {.max_new_tokens = 4}), StatusCode::kInvalidArgument);
    EXPECT_EQ(code("the", empty_stop), StatusCode::kInvalidArgument);
    EXPECT_EQ(code("the", {.max_new_tokens = 13}), StatusCode::kPrivacyRefused) << "beyond the target to be";
    EXPECT_FALSE(std::filesystem::exists(ledger_.path())) << "a refused text made a ledger";
    ASSERT_EQ(code("the", {.max_new_tokens = 4}), StatusCode::kOk);
    EXPECT_EQ((*ledger_.Limit())->epsilon(), 2);
    ASSERT_EQ(ledger_.Plans()->size(), 1u);
    EXPECT_EQ(ledger_.Plans()->front().mechanisms.front().mechanism.steps(), 12u);
    EXPECT_LT(ledger_.Plans()->front().seq, ledger_.Entries()->front().seq);
    ledger_ = *Ledger::Open(folder_ / "second", kLedger);
  }
}

// The limit covers a whole text only by a plan; blocks chosen one after the other would not fit.
TEST_F(PrivateGeneratorTest, CoveredText_IsSampledToItsEnd) {
  PrivateGeneratorOptions o = Anchored({.clip = 0.3});
  o.samples.samples_per_charge = 2;
  // The cost of 16 tokens together, slightly increased. It is PLD's figure, below any that a filter gives.
  const std::vector cost = {*privacy::Mechanism::BoundedRange({.range = 4 * 0.3 + kAnchoredRangeSlack, .count = 16})};
  const double together = privacy::StateEpsilon(cost, *privacy::Delta::Create(1e-6))->epsilon;
  for (int text = 0; text < 5; ++text) {  // some end early
    ledger_ = *Ledger::Open(folder_ / ("t" + std::to_string(text)), kLedger);
    o.samples.new_limit = *EpsilonDelta::Create(together * 1.001, 1e-6);
    const auto made = Must(o).Generate("the", {.max_new_tokens = 16});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_LE(Charged(), 16u);
    EXPECT_NEAR(*ledger_.Spent(*privacy::Delta::Create(1e-6)), together, 1e-3);
    EXPECT_EQ(Must(o).Generate("the", {.max_new_tokens = 17}).status().code(), StatusCode::kPrivacyRefused);
  }
}

// Both generators found an empty ledger. The second one to sample hears of the first one's charges.
TEST_F(PrivateGeneratorTest, ATargetThatComesTooLateIsRefused) {
  PrivateGenerator generator = Must(Anchored({.planned = SampleGoal::Planned{*EpsilonDelta::Create(2, 1e-6), 12}}));
  ASSERT_TRUE(Must(Anchored()).Generate("the", {.max_new_tokens = 1}).ok());
  const uint64_t charged = Charged();
  const auto refused = generator.Generate("the", {.max_new_tokens = 1});
  EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(refused.status().message().find("nothing would end the samples"), std::string::npos);
  EXPECT_EQ(Charged(), charged);
}

// The last tokens of a budget can be sampled although no whole block of them fits.
TEST_F(PrivateGeneratorTest, TheLastBlockIsAsLongAsWhatIsLeft) {
  PrivateGeneratorOptions o = Anchored({.planned = SampleGoal::Planned{*EpsilonDelta::Create(2, 1e-6), 10}});
  o.samples.samples_per_charge = 4;
  PrivateGenerator generator = Must(o);
  for (const uint64_t charged : {8u, 10u}) {
    const auto made = generator.Generate("the", {.max_new_tokens = 5});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_LE(Charged(), charged);
  }
  EXPECT_LE(*ledger_.Spent(*privacy::Delta::Create(1e-6)), 2);
}

// The budget that was there when the text began is gone. All tokens shown so far were paid for, and no more are shown.
TEST_F(PrivateGeneratorTest, ATextEndsWhereAnotherProcessHasSpentTheRest) {
  PrivateGeneratorOptions o = Anchored({.planned = SampleGoal::Planned{*EpsilonDelta::Create(2, 1e-6), 20}});
  o.samples.samples_per_charge = 3;
  PrivateGenerator generator = Must(o);
  Ledger other = *Ledger::Open(ledger_.path(), kLedger);
  o.samples.ledger = &other;
  o.samples.samples_per_charge = 11;
  PrivateGenerator spends = Must(o);
  size_t pushes = 0;
  const auto made = generator.Generate("the", {.max_new_tokens = 12}, [&](std::string_view) {
    if (++pushes == 1) {
      EXPECT_TRUE(spends.Generate("a", {.max_new_tokens = 1}).ok());
    }
    return true;
  });
  // Sometimes the sample is the end token, before the budget is gone.
  if (made.ok() && made->ended == Ended::kEndToken) GTEST_SKIP() << "the text ended by itself";
  EXPECT_EQ(made.status().code(), StatusCode::kPrivacyRefused) << "a text went on without a budget";
  EXPECT_LE(pushes, 9u);
  EXPECT_EQ(Charged(), 20u);
}

TEST_F(PrivateGeneratorTest, WeightsWithAGuaranteeAndPublicOnesAreFree) {
  ASSERT_TRUE(
      ledger_.Charge({.mechanism = *privacy::Mechanism::Gaussian({.noise_multiplier = 1}), .run = "training"}).ok());
  const ProvenanceEntry paid{.mechanisms = {"Gaussian"},
                             .epsilon = 2,
                             .delta = 1e-6,
                             .noise = NoiseOrigin::kSecure,
                             .dataset = "notes",
                             .receipt = *ledger_.MakeReceipt("training")};
  const auto dp = Open(3, {kShipped, paid});
  for (Session* session : {dp.get(), base_.get()}) {
    PrivateGeneratorOptions o = Mixed();
    o.samples.top_k = 5;
    PrivateGenerator generator = Must(o, session);
    EXPECT_TRUE(generator.is_free());
    EXPECT_TRUE(generator.Generate("the", {.max_new_tokens = 6}).ok());
    o.samples.ledger = nullptr;
    EXPECT_TRUE(Must(o, session).Generate("the", {.max_new_tokens = 6}).ok());
  }
  EXPECT_EQ(Charged(), 1u) << "what the weights cost";
  // Another ledger pays, so the total of this one would leave out what the text reveals.
  Ledger elsewhere = *Ledger::Open(folder_ / "other", kLedger);
  PrivateGeneratorOptions o = Mixed();
  o.samples.ledger = &elsewhere;
  EXPECT_EQ(Make(o, dp.get()).status().code(), StatusCode::kPrivacyRefused);
}

TEST_F(PrivateGeneratorTest, NoGuarantee_IsRefusedAndNotCharged) {
  const auto refused = [&](PrivateGeneratorOptions o, const std::function<void(PrivateGeneratorOptions&)>& change,
                           const char* word, StatusCode code = StatusCode::kPrivacyRefused, Session* of = nullptr) {
    change(o);
    const auto made = Make(o, of);
    EXPECT_EQ(made.status().code(), code) << word;
    EXPECT_NE(made.status().message().find(word), std::string::npos) << made.status().message();
  };
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  refused(
      Mixed(), [](auto& o) { o.samples.selection = Selection::kArgMax; }, "arg-max");
  refused(
      Aggregate(), [](auto& o) { o.samples.selection = Selection::kBeamSearch; }, "beam search");
  refused(
      Mixed(), [](auto& o) { o.samples.after_mixing = AfterMixing::kTopK; }, "after mixing");
  refused(
      Anchored(), [](auto& o) { o.samples.top_k = 5; }, "truncation by private scores");
  refused(
      Aggregate(), [](auto& o) { o.samples.nucleus = 0.9; }, "truncation by private scores");
  refused(
      Mixed(), [](auto& o) { o.samples.ledger = nullptr; }, "needs a ledger");
  refused(
      Aggregate(), [](auto& o) { o.samples.ledger = nullptr; }, "needs a ledger");
  refused(
      Anchored(), [&](auto& o) { o.samples.base = model_.get(); }, "base model must be public");
  refused(
      Aggregate(), [](auto&) {}, "the model itself must be public", StatusCode::kPrivacyRefused, model_.get());
  refused(
      Aggregate(), [&](auto& o) { o.samples.base = base_.get(); }, "has no base model", kInvalid);
  refused(
      Aggregate(), [](auto& o) { o.samples.mode = DecodingMode::kUniform; }, "mode aggregate alone", kInvalid);
  refused(
      Mixed(), [](auto& o) { o.samples.mode = DecodingMode::kAggregate; }, "mode aggregate alone", kInvalid);
  refused(
      Mixed(), [](auto& o) { o.samples.mode = DecodingMode::kNonUniform; }, "needs the base model", kInvalid);
  refused(
      WithBase(), [](auto& o) { o.samples.mixing_floor = 0; }, "allowed are 1e-4 to 1", kInvalid);
  refused(
      Mixed(), [](auto& o) { o.base_top = 5; }, "there is no base model", kInvalid);
  refused(
      Mixed(), [](auto& o) { o.samples.goal = {}; }, "exactly one", kInvalid);
  const auto other = Open(4, {kShipped}, "llama2");
  refused(
      Anchored(), [&](auto& o) { o.samples.base = other.get(); }, "another tokenizer", kInvalid);
  EXPECT_EQ(Must(Mixed()).Generate(std::string(300, 'x'), {.max_new_tokens = 4}).status().code(), kInvalid);
  PrivateGenerateOptions empty_stop;
  empty_stop.stop.emplace_back();
  EXPECT_EQ(Must(Mixed()).Generate("the", empty_stop).status().code(), kInvalid);
  EXPECT_EQ(Must(Aggregate()).Generate("the", {.max_new_tokens = 46}).status().code(), kInvalid)
      << "no position for a text";
  EXPECT_EQ(Charged(), 0u);
}

// The end of a text depends only on the sampled tokens.
TEST_F(PrivateGeneratorTest, EndsBeforeAStopText) {
  PrivateGeneratorOptions o = Anchored({.clip = 1});
  o.samples.samples_per_charge = 1000;
  o.samples.reproducible_seed = 4;
  const std::string whole = Must(o).Generate("the", {.max_new_tokens = 30})->text;
  ASSERT_GT(whole.size(), 8u);
  const std::string stop = whole.substr(whole.size() / 2, 3);
  PrivateGenerateOptions ends{.max_new_tokens = 30};
  ends.stop.push_back(stop);
  const Generated made = *Must(o).Generate("the", ends);
  EXPECT_EQ(made.ended, Ended::kStopText);
  EXPECT_EQ(made.text, whole.substr(0, whole.find(stop)));
}

TEST_F(PrivateGeneratorTest, TheOrderOfTextsChangesNothing) {
  PrivateGeneratorOptions o = Aggregate({.clip = 3}, 2);  // three texts: the last two share a cache
  o.samples.reproducible_seed = 6;
  const std::vector<std::string> turned = {kNotes[2], kNotes[0], kNotes[1]};
  auto one = Make(o), other = Make(o, nullptr, turned);
  EXPECT_EQ(one->Generate("the", {.max_new_tokens = 10})->tokens,
            other->Generate("the", {.max_new_tokens = 10})->tokens);
}

}  // namespace
}  // namespace wisp::private_generator_test
