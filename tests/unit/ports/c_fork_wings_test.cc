// Handles of texts and of private samples in a forked process: each can be closed, and what was made for the parent is
// used or refused.
// Needs PRIVATE_SAMPLING.
#include <gtest/gtest.h>

#include "ports/c/wisp_text.h"
#include "tests/unit/ports/c_fork_test_util.h"
#include "tests/unit/ports/c_text_test_util.h"

namespace wisp::c_fork_wings_test {
namespace {

using test::InChild;
using test::kRefused;

class CForkWings : public test::CFork {
 protected:
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
};

TEST_F(CForkWings, TextModels_AnswerOnOneThreadAndClose) {
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

// The child gets neither samples that the parent paid for nor charges on its connection.
TEST_F(CForkWings, PrivateRecommenders_RefuseAndClose) {
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

TEST_F(CForkWings, PrivateGenerators_RefuseAndClose) {
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
}  // namespace wisp::c_fork_wings_test
