// Handles of the C interface in a forked process: each can be closed, and what was made for the parent is used or
// refused.
#include <gtest/gtest.h>

#include "ports/c/wisp_deployment.h"
#include "ports/c/wisp_text.h"
#include "runtime/privacy/ledger/ledger.h"
#include "tests/unit/core/in_child.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/ports/c_test_util.h"
#include "tests/unit/ports/c_text_test_util.h"

namespace wisp::c_fork_test {
namespace {

using test::InChild;

constexpr char kRefused[] = "was opened before this process was forked off; open it here again";

class CFork : public ::testing::Test {
 protected:
  // So large that two threads share one history.
  std::string WriteItems(const std::string& name, const std::string& dataset) const {
    const Architecture a = UniformArchitecture{
        .num_items = 300, .max_length = 64, .width = 64, .num_heads = 2, .num_blocks = 2, .inner_width = 256};
    return Write(name, {.architecture = a}, dataset);
  }
  std::string WriteTexts(const std::string& name, bool decoder, const std::string& dataset) const {
    const Architecture a = decoder ? Architecture(UniformArchitecture{.num_items = 460,
                                                                      .max_length = 40,
                                                                      .width = 64,
                                                                      .num_heads = 2,
                                                                      .num_blocks = 2,
                                                                      .inner_width = 256,
                                                                      .activation = ActivationKind::kGeluTanh})
                                   : test::TextEncoder(2);
    ModelContents contents{.architecture = a, .tokenizer = test::GoldenTokenizer(decoder ? "gpt2" : "bert")};
    if (!decoder) contents.classifier = ClassifierDescription{.class_names = {"bad", "good"}};
    return Write(name, std::move(contents), dataset);
  }
  std::string Write(const std::string& name, ModelContents contents, const std::string& dataset) const {
    const std::string path = folder_ / name;
    const std::vector<float> weights = wisp::test::RandomWeights(contents.architecture, 7);
    contents.weights = weights;
    contents.provenance = {{.description = "converted", .dataset = dataset}};
    const Status status = WriteModel(path, contents);
    EXPECT_TRUE(status.ok()) << status.message();
    return path;
  }
  static std::string Say(wisp_code code, const wisp_error& error) {
    return std::to_string(code) + " " + error.message + "\n";
  }

  const test::TemporaryFolder folder_;
  const wisp_open_options two_ = [] {
    wisp_open_options options = WISP_INIT(wisp_open_options);
    options.num_threads = 2;
    return options;
  }();
  wisp_error error_ = {};
};

TEST_F(CFork, Models_ServeOnOneThreadAndClose) {
  wisp_model* model = nullptr;
  ASSERT_EQ(wisp_model_open_with(WriteItems("m.wisp", "shop").c_str(), &two_, &model, &error_), WISP_OK)
      << error_.message;
  std::vector<int32_t> history(40);
  for (size_t i = 0; i < history.size(); ++i) history[i] = static_cast<int32_t>(i * 7);
  const int32_t* histories[] = {history.data(), history.data() + 1};
  const size_t lengths[] = {40, 39};
  wisp_batch_options batch = WISP_INIT(wisp_batch_options);
  batch.num_threads = 2;
  const auto recommend = [&](size_t length) -> std::string {
    wisp_recommendation top[3];
    size_t count = 3, found[2];
    std::string said;
    if (wisp_recommend(model, history.data(), length, nullptr, top, &count, &error_) != WISP_OK) return error_.message;
    for (const wisp_recommendation& r : top) said += std::to_string(r.item) + " ";
    wisp_recommendation both[6];
    if (wisp_recommend_batch(model, histories, lengths, 2, nullptr, &batch, 3, both, found, &error_) != WISP_OK)
      return error_.message;
    for (const wisp_recommendation& r : both) said += std::to_string(r.item) + " ";
    return said;
  };
  const std::string expected = recommend(40);
  (void)recommend(30);  // so that the child computes all positions again
  EXPECT_EQ(InChild([&] {
              const std::string said = recommend(40);
              wisp_model_close(model);
              return said;
            }),
            expected);
  EXPECT_EQ(InChild([&] {
              wisp_model_close(model);
              return std::string("closed");
            }),
            "closed");
  EXPECT_EQ(recommend(40), expected) << "of the parent";
  wisp_model_close(model);
}

TEST_F(CFork, TextModels_AnswerOnOneThreadAndClose) {
  for (const bool decoder : {false, true}) {
    wisp_text_model* model = nullptr;
    ASSERT_EQ(wisp_text_open(WriteTexts("t.wisp", decoder, "notes").c_str(), &two_, &model, &error_), WISP_OK)
        << error_.message;
    const auto answer = [&](const char* text) -> std::string {
      if (!decoder) {
        float shares[2];
        if (wisp_text_classify(model, text, shares, 2, &error_) != WISP_OK) return error_.message;
        return std::to_string(shares[0]);
      }
      wisp_generate_options options = WISP_INIT(wisp_generate_options);
      options.greedy = 1;
      options.max_new_tokens = 5;
      wisp_generated made = WISP_INIT(wisp_generated);
      if (wisp_text_generate(model, text, &options, nullptr, nullptr, &made, &error_) != WISP_OK) return error_.message;
      return made.text;
    };
    const std::string expected = answer("the tea is cold and so is all else");
    (void)answer("a bagel");
    EXPECT_EQ(InChild([&] {
                const std::string said = answer("the tea is cold and so is all else");
                wisp_text_close(model);
                return said;
              }),
              expected);
    EXPECT_EQ(answer("the tea is cold and so is all else"), expected) << "of the parent";
    wisp_text_close(model);
  }
}

TEST_F(CFork, Logs_RefuseAndClose) {
  const std::string path = folder_ / "events.db";
  wisp_log* log = nullptr;
  ASSERT_EQ(wisp_log_open(path.c_str(), &log, &error_), WISP_OK) << error_.message;
  ASSERT_EQ(wisp_log_append(log, "anna", "k1", 1, &error_), WISP_OK);
  const std::string refused = "2 event log '" + path + "' " + kRefused + "\n";
  EXPECT_EQ(InChild([&] {
              std::string said = Say(wisp_log_append(log, "anna", "k2", 2, &error_), error_);
              const wisp_event event = {"anna", "k2", 2};
              said += Say(wisp_log_append_all(log, &event, 1, &error_), error_);
              wisp_log_counts counts = WISP_INIT(wisp_log_counts);
              said += Say(wisp_log_count(log, &counts, &error_), error_);
              uint64_t gone = 0;
              said += Say(wisp_log_erase(log, "anna", &gone, &error_), error_);
              wisp_log_close(log);
              return said;
            }),
            refused + refused + refused + refused);
  // The log is as the parent left it, and can be appended to.
  ASSERT_EQ(wisp_log_append(log, "anna", "k3", 3, &error_), WISP_OK) << error_.message;
  wisp_log_counts counts = WISP_INIT(wisp_log_counts);
  ASSERT_EQ(wisp_log_count(log, &counts, &error_), WISP_OK);
  EXPECT_EQ(counts.events, 2u);
  wisp_log_close(log);
}

// The handles behind private sampling and private runs.
TEST_F(CFork, Ledgers_RefuseAndClose) {
  const std::string path = folder_ / "l";
  auto ledger = std::make_unique<privacy::Ledger>(*privacy::Ledger::Open(
      path, {.dataset = "shop", .record = privacy::RecordSpec::OfEvents({.unit = privacy::PrivacyUnit::kUser})}));
  const privacy::ChargeRequest charge{
      .mechanism = *privacy::Mechanism::Gaussian({.noise_multiplier = 10}), .run = "run", .purpose = "training"};
  ASSERT_TRUE(ledger->Charge(charge).ok());
  const std::string refused = "ledger '" + path + "' " + kRefused;
  EXPECT_EQ(InChild([&] {
              const std::string said = ledger->Charge(charge).status().message();
              ledger.reset();
              return said;
            }).substr(0, refused.size()),
            refused);
  EXPECT_TRUE(ledger->Charge(charge).ok());
  EXPECT_EQ(ledger->Entries()->size(), 2u);
}

// The child gets neither samples that the parent paid for nor charges on its connection.
TEST_F(CFork, PrivateRecommenders_RefuseAndClose) {
  const std::string path = folder_ / "shop.ledger";
  wisp_model* model = nullptr;
  ASSERT_EQ(wisp_model_open_with(WriteItems("m.wisp", "shop").c_str(), &two_, &model, &error_), WISP_OK);
  wisp_private_options how = WISP_INIT(wisp_private_options);
  how.ledger_path = path.c_str();
  how.lambda = 0.1;
  for (const uint32_t samples_per_charge : {1u, 10u}) {
    how.samples_per_charge = samples_per_charge;
    wisp_private_recommender* samples = nullptr;
    ASSERT_EQ(wisp_private_recommender_open(model, &how, &samples, &error_), WISP_OK) << error_.message;
    const int32_t history[] = {1, 2};
    int32_t items[1];
    const auto sample = [&] {
      size_t count = 1;
      return Say(wisp_private_recommend(samples, history, 2, nullptr, items, &count, &error_), error_);
    };
    ASSERT_EQ(sample(), "0 \n");
    EXPECT_EQ(InChild([&] {
                std::string said = sample();
                wisp_private_recommender_close(samples);
                wisp_model_close(model);
                return said;
              }),
              std::string("2 the ledger of these samples ") + kRefused + "\n");
    EXPECT_EQ(sample(), "0 \n") << "of the parent";
    wisp_private_recommender_close(samples);
  }
  wisp_model_close(model);
}

TEST_F(CFork, PrivateGenerators_RefuseAndClose) {
  const std::string path = folder_ / "notes.ledger";
  wisp_text_model *model = nullptr, *base = nullptr;
  ASSERT_EQ(wisp_text_open(WriteTexts("t.wisp", true, "notes").c_str(), &two_, &model, &error_), WISP_OK);
  ASSERT_EQ(wisp_text_open(WriteTexts("b.wisp", true, "web").c_str(), &two_, &base, &error_), WISP_OK);
  const char* web[] = {"web"};
  wisp_private_options samples = WISP_INIT(wisp_private_options);
  samples.ledger_path = path.c_str();
  samples.public_datasets = web;
  samples.num_public_datasets = 1;
  samples.clip = 1;
  samples.samples_per_charge = 8;
  wisp_private_text_options options = WISP_INIT(wisp_private_text_options);
  options.samples = &samples;
  options.base_model = base;
  wisp_private_generator* generator = nullptr;
  ASSERT_EQ(wisp_private_generator_open(model, &options, &generator, &error_), WISP_OK) << error_.message;
  wisp_generate_options two = WISP_INIT(wisp_generate_options);
  two.max_new_tokens = 2;
  const auto generate = [&] {
    return Say(wisp_private_generate(generator, "the", &two, nullptr, nullptr, nullptr, &error_), error_);
  };
  ASSERT_EQ(generate(), "0 \n");
  const std::string said = InChild([&] {
    const std::string refused = generate();
    wisp_private_generator_close(generator);
    wisp_text_close(model);
    return refused;
  });
  EXPECT_EQ(said.substr(0, 2), "2 ");
  EXPECT_NE(said.find(kRefused), std::string::npos) << said;
  EXPECT_EQ(generate(), "0 \n") << "of the parent";
  wisp_private_generator_close(generator);
  wisp_text_close(model);
  wisp_text_close(base);
}

}  // namespace
}  // namespace wisp::c_fork_test
