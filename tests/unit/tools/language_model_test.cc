// A decoder as a language model: its losses, gradients and their lengths equal those of torch and transformers
// (tools/convert/goldens.py). Records stay apart, each is clipped by itself, and nothing is sampled that is not paid
// for.
#include "runtime/train/run/language.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/text/texts.h"
#include "runtime/layers/recommender.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/trainer.h"
#include "tests/unit/tools/hugging_face_test_util.h"
#include "tools/convert/byte_tokenizer.h"

namespace wisp::language_model_test {
namespace {

struct Case {
  std::vector<int32_t> ids;
  double loss, norm;
  Record record() const {
    const std::span<const int32_t> all(ids);
    return {all.first(all.size() - 1), all.last(all.size() - 1)};
  }
};

class LanguageModel : public ::testing::TestWithParam<const char*> {
 protected:
  LanguageModel() {
    const std::string folder = test::GoldenFolder(GetParam());
    Read(folder, "m.wisp", architecture_, weights_);
    // Gradients have the names and shapes of weights.
    Architecture same;
    Read(folder + "/gradient", "g.wisp", same, gradient_);
    EXPECT_EQ(same, architecture_);
    const auto j = nlohmann::json::parse(test::ReadAll(folder + "/gradient/losses.json"));
    for (const auto& c : j["cases"]) cases_.push_back({c["ids"], c["loss"], c["norm"]});
    for (const Case& c : cases_) records_.push_back(c.record());
    of_ = j["of"];
  }

  void Read(const std::string& folder, const char* name, Architecture& architecture, std::vector<float>& weights) {
    const Status converted = test::Convert(folder, folder_ / name);
    ASSERT_TRUE(converted.ok()) << converted.message();
    const auto model = ModelFile::Open(folder_ / name, Verify::kFull);
    ASSERT_TRUE(model.ok()) << model.status().message();
    architecture = model->architecture();
    std::vector<float> dequantised;
    const std::span<const float> all = model->AllWeights(dequantised);
    weights.assign(all.begin(), all.end());
  }

  // Takes one step of plain descent, whose length is the gradient's.
  std::vector<float> Moved(std::span<const Record> records, TrainingOptions o, StepReport* report = nullptr) {
    o.num_steps = 1;
    o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 1, .momentum = 0};
    o.num_threads = 1;
    auto trainer = Trainer::Create(architecture_, weights_, records, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    const auto step = (*trainer)->Step();
    EXPECT_TRUE(step.ok()) << step.status().message();
    if (report != nullptr) *report = *step;
    std::vector<float> moved = weights_;
    for (size_t i = 0; i < moved.size(); ++i) moved[i] -= (*trainer)->weights()[i];
    return moved;
  }

  test::TemporaryFolder folder_;
  Architecture architecture_;
  std::vector<float> weights_, gradient_;
  std::vector<Case> cases_;
  std::vector<Record> records_;
  size_t of_ = 0;
};

double Length(const std::vector<float>& v) {
  double sum = 0;
  for (const float x : v) sum += double{x} * x;
  return std::sqrt(sum);
}

TEST_P(LanguageModel, LossesAndLengthsOfGradientsAreThoseOfTheReference) {
  for (size_t i = 0; i < cases_.size(); ++i) {
    StepReport report;
    Moved({&records_[i], 1}, {.expected_batch = 1}, &report);
    EXPECT_NEAR(report.mean_loss, cases_[i].loss, 1e-5 * cases_[i].loss);
  }
}

TEST_P(LanguageModel, TheGradientIsThatOfTheReference) {
  const std::vector<float> moved = Moved({&records_[of_], 1}, {.expected_batch = 1});
  double largest = 0, difference = 0;
  for (size_t i = 0; i < moved.size(); ++i) {
    largest = std::max(largest, std::abs(double{gradient_[i]}));
    difference = std::max(difference, std::abs(double{moved[i]} - gradient_[i]));
  }
  EXPECT_GT(largest, 0.1);
  EXPECT_LT(difference, 1e-5 * largest);
  EXPECT_NEAR(Length(gradient_), cases_[of_].norm, 1e-5 * cases_[of_].norm);
}

// Clipping cuts each record's own length, not that of their sum. The noise is a ten-thousandth of the bound.
TEST_P(LanguageModel, APrivateStepClipsEachRecordAlone) {
  auto ledger = privacy::Ledger::Open(
      folder_ / "l",
      {.dataset = "texts", .record = privacy::RecordSpec::OfEvents({.unit = privacy::PrivacyUnit::kInteraction})});
  ASSERT_TRUE(ledger.ok());
  const double clip = 0.5;
  for (const Method method : {Method::kPhantom, Method::kOrdinary}) {
    TrainingOptions o{.method = method,
                      .sampling = Sampling::kPoisson,
                      .privacy = {.noise_multiplier = 1e-4,
                                  .clipping_norm = clip,
                                  .clipping = ClipKind::kFlat,
                                  .ledger = &*ledger,
                                  .run = "clip",
                                  .reproducible_seed = 3}};
    std::vector<float> sum(weights_.size());
    const auto n = static_cast<uint32_t>(records_.size());
    for (size_t i = 0; i < records_.size(); ++i) {
      o.expected_batch = o.num_records_public = 1;
      StepReport report;
      const std::vector<float> own = Moved({&records_[i], 1}, o, &report);
      if (method == Method::kPhantom) {
        EXPECT_NEAR(report.mean_norm, cases_[i].norm, 1e-5 * cases_[i].norm);
        EXPECT_EQ(report.num_clipped, 1u);
        EXPECT_NEAR(Length(own), clip, 0.01 * clip);
      } else {
        EXPECT_NEAR(Length(own), cases_[i].norm, 1e-4 * cases_[i].norm);
      }
      for (size_t k = 0; k < sum.size(); ++k) sum[k] += own[k] / static_cast<float>(n);
    }
    o.expected_batch = o.num_records_public = n;
    const std::vector<float> together = Moved(records_, o);
    double difference = 0;
    for (size_t k = 0; k < sum.size(); ++k) difference = std::max(difference, std::abs(double{sum[k]} - together[k]));
    EXPECT_LT(difference, method == Method::kPhantom ? 2e-4 : 1e-5);
  }
}

TEST_P(LanguageModel, RefusedCharge_MovesNothing) {
  auto ledger = privacy::Ledger::Open(
      folder_ / "l",
      {.dataset = "texts", .record = privacy::RecordSpec::OfEvents({.unit = privacy::PrivacyUnit::kInteraction})});
  ASSERT_TRUE(ledger.ok());
  ASSERT_TRUE(ledger->SetLimit(*privacy::EpsilonDelta::Create(0.5, 1e-5)).ok());
  const TrainingOptions o{.method = Method::kPhantom,
                          .sampling = Sampling::kPoisson,
                          .num_steps = 1,
                          .expected_batch = 1,
                          .num_records_public = 4,
                          .num_threads = 1,
                          .privacy = {.noise_multiplier = 0.3, .ledger = &*ledger, .run = "refused"}};
  auto trainer = Trainer::Create(architecture_, weights_, records_, o);
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  EXPECT_EQ((*trainer)->Step().status().code(), StatusCode::kPrivacyRefused);
  EXPECT_TRUE(std::equal(weights_.begin(), weights_.end(), (*trainer)->weights().begin()));
  EXPECT_TRUE(ledger->Entries()->empty());
}

// Computes these losses without the trainer, over hidden states of all positions at once, on any number of threads.
TEST_P(LanguageModel, EvaluationHasTheLossesOfTheReference) {
  const Recommender graph(architecture_, kernels::BestOps(), {.use = GraphUse::kInference});
  double nats = 0;
  size_t tokens = 0;
  for (const Case& c : cases_) {
    nats += c.loss * static_cast<double>(c.ids.size() - 1);
    tokens += c.ids.size() - 1;
  }
  double first = 0;
  for (const size_t threads : {1u, 2u, 3u}) {
    Workers workers(threads);
    const LanguageQuality q = EvaluateLanguage(graph, weights_.data(), records_, workers);
    EXPECT_EQ(q.num_tokens, tokens);
    EXPECT_NEAR(q.nats, nats, 1e-5 * nats);
    if (threads == 1) first = q.nats;
    EXPECT_EQ(q.nats, first);
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, LanguageModel, ::testing::Values("gpt2", "llama"),
                         [](const auto& of) { return std::string(of.param); });

// Inputs and targets of a record are its own tokens, shifted by one.
TEST(LanguageRecords, TargetsFollowInputsWithinTheRecord) {
  const data::TextSequences texts{.tokens = {1, 2, 3, 7, 8}, .begin = {0, 3, 5}, .text = {0, 1}};
  const std::vector<Record> records = ViewRecords(texts);
  ASSERT_EQ(records.size(), 2u);
  const auto copy = [](std::span<const int32_t> ids) { return std::vector<int32_t>(ids.begin(), ids.end()); };
  EXPECT_EQ(copy(records[0].inputs), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(copy(records[0].targets), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(copy(records[1].inputs), (std::vector<int32_t>{7}));
  EXPECT_EQ(copy(records[1].targets), (std::vector<int32_t>{8}));
}

TEST(LanguageRecords, BytesAreATokenEachAndAnEndIsMarkedWhereATextEnds) {
  const auto image = convert::ByteTokenizerImage();
  ASSERT_TRUE(image.ok()) << image.status().message();
  const auto tokenizer = text::Tokenizer::Open("bytes", *image);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ASSERT_EQ(tokenizer->size(), 257u);
  std::string every;
  for (int byte = 1; byte < 128; ++byte) every.push_back(static_cast<char>(byte));
  every += "\xc3\xa9\xf0\x9f\x98\x80";
  std::vector<int32_t> ids;
  EXPECT_FALSE(*AppendRecord(*tokenizer, every, TextEnd::kMarked, 1000, nullptr, ids));
  ASSERT_EQ(ids.size(), every.size() + 1);
  for (size_t i = 0; i < every.size(); ++i) EXPECT_EQ(ids[i], static_cast<unsigned char>(every[i]));
  EXPECT_EQ(ids.back(), 256);
  EXPECT_EQ(*tokenizer->Decode(ids, {}), every);
  EXPECT_EQ(*BytesAskedFor(*tokenizer, ids), every.size() - 1);
  const auto append = [&](TextEnd end, size_t most) {
    ids = {5};
    const auto cut = AppendRecord(*tokenizer, "abc", end, most, nullptr, ids);
    return std::pair(*cut, ids);
  };
  EXPECT_EQ(append(TextEnd::kOpen, 9), std::pair(false, std::vector<int32_t>{5, 'a', 'b', 'c'}));
  EXPECT_EQ(append(TextEnd::kMarked, 4), std::pair(false, std::vector<int32_t>{5, 'a', 'b', 'c', 256}));
  // A text that is cut does not end there.
  EXPECT_EQ(append(TextEnd::kMarked, 3), std::pair(true, std::vector<int32_t>{5, 'a', 'b', 'c'}));
  EXPECT_EQ(append(TextEnd::kMarked, 2), std::pair(true, std::vector<int32_t>{5, 'a', 'b'}));
  EXPECT_EQ(AppendRecord(*tokenizer, "\xff", TextEnd::kOpen, 9, nullptr, ids).status().code(),
            StatusCode::kInvalidData);
}

}  // namespace
}  // namespace wisp::language_model_test
