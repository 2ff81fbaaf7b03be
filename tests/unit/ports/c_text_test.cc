// Texts over the C interface: encoders, classifiers and decoders of random weights, with tokenizers of the golden
// files.
#include "ports/c/wisp_text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "runtime/text/classifier_session.h"
#include "runtime/text/generate.h"
#include "runtime/text/texts.h"
#include "runtime/privacy/ledger/ledger.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/ports/c_text_test_util.h"

namespace wisp::c_text_test {
namespace {

using test::GoldenTokenizer;
using test::TextEncoder;

class CText : public ::testing::Test {
 protected:
  // Writes a model of random weights with that tokenizer.
  std::string Write(const std::string& name, Architecture a, const std::string& tokenizer,
                    const std::string& dataset = "") {
    const std::string path = folder_ / name;
    const std::vector<float> weights = test::RandomWeights(a, 7);
    ModelContents contents{.architecture = a, .weights = weights};
    if (!tokenizer.empty()) contents.tokenizer = GoldenTokenizer(tokenizer);
    if (!dataset.empty()) contents.provenance = {{.description = "converted", .dataset = dataset}};
    if (a.head.kind == HeadKind::kClasses) contents.classifier = ClassifierDescription{.class_names = {"bad", "good"}};
    const Status status = WriteModel(path, contents);
    EXPECT_TRUE(status.ok()) << status.message();
    return path;
  }
  static Architecture Decoder() {
    return UniformArchitecture{.num_items = 460,
                               .max_length = 40,
                               .width = 16,
                               .num_heads = 2,
                               .num_blocks = 2,
                               .inner_width = 24,
                               .activation = ActivationKind::kGeluTanh};
  }
  wisp_text_model* Open(const std::string& path, const wisp_open_options* options = nullptr) {
    wisp_text_model* model = nullptr;
    EXPECT_EQ(wisp_text_open(path.c_str(), options, &model, &error_), WISP_OK) << error_.message;
    return model;
  }

  const test::TemporaryFolder folder_;
  wisp_error error_ = {};
};

TEST_F(CText, EmbedsAsTheSessionDoes) {
  const std::string path = Write("encoder.wisp", TextEncoder(), "bert");
  wisp_text_model* model = Open(path);
  ASSERT_NE(model, nullptr) << error_.message;
  wisp_text_info info = WISP_INIT(wisp_text_info);
  ASSERT_EQ(wisp_text_info_read(model, &info, &error_), WISP_OK);
  EXPECT_EQ(info.width, 16u);
  EXPECT_EQ(info.num_classes, 0u);
  EXPECT_EQ(info.max_length, 12u);
  EXPECT_EQ(info.is_decoder, 0);
  EXPECT_GT(info.bytes, 1000u);
  const char* text = "a good film, and far more words than the model reads at once, so that some are left out";
  int32_t tokens[12];
  size_t count = 12;
  ASSERT_EQ(wisp_text_tokenize(model, text, tokens, &count, &error_), WISP_OK) << error_.message;
  ASSERT_EQ(count, 12u);
  EXPECT_EQ(tokens[0], 2);   // [CLS]
  EXPECT_EQ(tokens[11], 3);  // [SEP] stays
  float vector[16];
  ASSERT_EQ(wisp_text_embed(model, text, vector, 16, &error_), WISP_OK) << error_.message;
  const auto file = ModelFile::Open(path, Verify::kFull, Accept::kEncoder);
  const auto session = *ClassifierSession::Create(file->architecture(), file->tensors(), {});
  float expected[16];
  ASSERT_TRUE(session->Represent(tokens, expected).ok());
  double squares = 0;
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(vector[i], expected[i]);
    squares += static_cast<double>(vector[i]) * static_cast<double>(vector[i]);
  }
  EXPECT_NEAR(squares, 1, 1e-5);
  wisp_text_close(model);
}

// The damage keeps the file's time, which shows whether the weights were read.
TEST_F(CText, VerifiesOnce) {
  const std::string path = Write("decoder.wisp", Decoder(), "gpt2");
  wisp_verified verified = {};
  wisp_open_options options = WISP_INIT(wisp_open_options);
  options.verify = WISP_VERIFY_ONCE;
  wisp_text_model* model = nullptr;
  EXPECT_EQ(wisp_text_open(path.c_str(), &options, &model, &error_), WISP_INVALID_ARGUMENT) << "nowhere to remember";
  options.verified = &verified;
  ASSERT_EQ(wisp_text_open(path.c_str(), &options, &model, &error_), WISP_OK) << error_.message;
  wisp_text_close(model);
  EXPECT_NE(verified.words[0], 0u);
  const auto time = std::filesystem::last_write_time(path);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-static_cast<std::streamoff>(FlatSize(ListParameters(Decoder())) * sizeof(float)), std::ios::end);
    file.write("\1\1\1\1", 4);  // the first weight: weights are at the end of the file
  }
  std::filesystem::last_write_time(path, time);
  model = nullptr;
  EXPECT_EQ(wisp_text_open(path.c_str(), &options, &model, &error_), WISP_OK) << "it is remembered";
  wisp_text_close(model);
  std::filesystem::last_write_time(path, time + std::chrono::seconds(1));
  model = nullptr;
  EXPECT_EQ(wisp_text_open(path.c_str(), &options, &model, &error_), WISP_INVALID_DATA) << "a changed file is verified";
}

TEST_F(CText, ClassifiesWithProbabilities) {
  wisp_text_model* model = Open(Write("classifier.wisp", TextEncoder(2), "bert"));
  ASSERT_NE(model, nullptr);
  EXPECT_STREQ(wisp_text_class_name(model, 1), "good");
  EXPECT_STREQ(wisp_text_class_name(model, 2), "");
  float p[2];
  ASSERT_EQ(wisp_text_classify(model, "a good film", p, 2, &error_), WISP_OK) << error_.message;
  EXPECT_NEAR(p[0] + p[1], 1, 1e-6);
  EXPECT_GT(p[0], 0);
  EXPECT_EQ(wisp_text_classify(model, "a good film", p, 1, &error_), WISP_INVALID_ARGUMENT);
  wisp_text_close(model);
}

struct Heard {
  std::string text;
  size_t calls = 0, most = 1000;
};
int32_t Hear(void* data, const char* text, size_t bytes) {
  auto& heard = *static_cast<Heard*>(data);
  heard.text.append(text, bytes);
  return ++heard.calls < heard.most ? 1 : 0;
}

TEST_F(CText, GeneratesTheSameTextAsItStreams) {
  wisp_text_model* model = Open(Write("decoder.wisp", Decoder(), "gpt2"));
  ASSERT_NE(model, nullptr);
  wisp_generate_options options = WISP_INIT(wisp_generate_options);
  options.max_new_tokens = 20;
  options.seed = 4;
  options.top_k = 50;
  Heard heard;
  wisp_generated made = WISP_INIT(wisp_generated);
  ASSERT_EQ(wisp_text_generate(model, "Once upon", &options, Hear, &heard, &made, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(heard.text, std::string(made.text, made.text_bytes));
  EXPECT_GT(made.prompt_tokens, 0u);
  EXPECT_LE(made.num_tokens, 20u);
  wisp_generated no_size = {};
  Heard nothing;
  EXPECT_EQ(wisp_text_generate(model, "Once upon", &options, Hear, &nothing, &no_size, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(nothing.text, "");
  const std::string first = heard.text;
  // The text starts from the beginning again: the cache of the last text changes nothing.
  heard = {};
  ASSERT_EQ(wisp_text_generate(model, "Once upon", &options, Hear, &heard, nullptr, &error_), WISP_OK);
  EXPECT_EQ(heard.text, first);
  heard = {.most = 2};
  ASSERT_EQ(wisp_text_generate(model, "Once upon", &options, Hear, &heard, &made, &error_), WISP_OK);
  EXPECT_EQ(made.ended, WISP_ENDED_CALLER);
  EXPECT_TRUE(first.starts_with(heard.text));
  wisp_text_close(model);
}

struct HeardTexts {
  std::vector<std::string> texts = std::vector<std::string>(3);
  size_t ended = 99;  // a prompt whose text ends at once
};
int32_t HearOne(void* data, size_t prompt, const char* text, size_t bytes) {
  auto& heard = *static_cast<HeardTexts*>(data);
  heard.texts.at(prompt).append(text, bytes);
  return prompt == heard.ended ? 0 : 1;
}

TEST_F(CText, GeneratesTextsTogetherAsEachAlone) {
  wisp_text_model* model = Open(Write("decoder.wisp", Decoder(), "gpt2"));
  ASSERT_NE(model, nullptr);
  wisp_generate_options options = WISP_INIT(wisp_generate_options);
  options.max_new_tokens = 12;
  options.seed = 4;
  const char* prompts[] = {"Once upon", "a", "the tea"};
  wisp_generated made[] = {WISP_INIT(wisp_generated), WISP_INIT(wisp_generated), WISP_INIT(wisp_generated)};
  HeardTexts heard;
  ASSERT_EQ(wisp_text_generate_batch(model, prompts, 3, &options, 2, HearOne, &heard, made, &error_), WISP_OK)
      << error_.message;
  std::vector<std::string> texts;
  for (const wisp_generated& one : made) texts.emplace_back(one.text, one.text_bytes);
  EXPECT_EQ(heard.texts, texts);
  for (size_t i = 0; i < 3; ++i) {
    options.seed = 4 + i;
    wisp_generated alone = WISP_INIT(wisp_generated);
    ASSERT_EQ(wisp_text_generate(model, prompts[i], &options, nullptr, nullptr, &alone, &error_), WISP_OK);
    EXPECT_EQ(texts[i], std::string(alone.text, alone.text_bytes));
    EXPECT_EQ(made[i].num_tokens, alone.num_tokens);
    EXPECT_EQ(made[i].prompt_tokens, alone.prompt_tokens);
    EXPECT_EQ(made[i].ended, alone.ended);
  }
  options.seed = 4;
  // A caller that knows less of wisp_generated: its structs are shorter, and lie closer together.
  struct Older {
    size_t size;
    const char* text;
    size_t text_bytes;
  };
  Older older[3] = {{sizeof(Older), nullptr, 0}, {sizeof(Older), nullptr, 0}, {sizeof(Older), nullptr, 0}};
  heard = {.ended = 1};
  ASSERT_EQ(wisp_text_generate_batch(model, prompts, 3, &options, 0, HearOne, &heard,
                                     reinterpret_cast<wisp_generated*>(older), &error_),
            WISP_OK);
  EXPECT_EQ(older[2].text, texts[2]);
  EXPECT_LE(older[1].text_bytes, texts[1].size());
  EXPECT_EQ(older[1].text, heard.texts[1]);
  older[2].size = 16;
  EXPECT_EQ(wisp_text_generate_batch(model, prompts, 3, &options, 0, nullptr, nullptr,
                                     reinterpret_cast<wisp_generated*>(older), &error_),
            WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_text_generate_batch(model, prompts, 3, &options, 257, nullptr, nullptr, nullptr, &error_),
            WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_text_generate_batch(model, nullptr, 3, &options, 0, nullptr, nullptr, nullptr, &error_),
            WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_text_generate_batch(nullptr, prompts, 3, &options, 0, nullptr, nullptr, nullptr, &error_),
            WISP_INVALID_ARGUMENT);
  prompts[1] = nullptr;
  EXPECT_EQ(wisp_text_generate_batch(model, prompts, 3, &options, 0, nullptr, nullptr, nullptr, &error_),
            WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("prompts[1] is NULL"), std::string::npos);
  EXPECT_EQ(wisp_text_generate_batch(model, nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr, &error_), WISP_OK);
  wisp_text_close(model);
}

// With a float16 key/value cache the most likely tokens are the same unless two are close, with less memory.
TEST_F(CText, Float16Cache) {
  const std::string path = Write("decoder.wisp", Decoder(), "gpt2");
  wisp_open_options options = WISP_INIT(wisp_open_options);
  std::vector<std::string> texts;
  std::vector<uint64_t> bytes;
  for (const int32_t half : {0, 1}) {
    options.float16_cache = half;
    wisp_text_model* model = Open(path, &options);
    ASSERT_NE(model, nullptr);
    wisp_text_info info = WISP_INIT(wisp_text_info);
    ASSERT_EQ(wisp_text_info_read(model, &info, &error_), WISP_OK);
    bytes.push_back(info.bytes);
    wisp_generate_options how = WISP_INIT(wisp_generate_options);
    how.max_new_tokens = 20;
    how.greedy = 1;
    wisp_generated made = WISP_INIT(wisp_generated);
    ASSERT_EQ(wisp_text_generate(model, "Once", &how, nullptr, nullptr, &made, &error_), WISP_OK) << error_.message;
    EXPECT_GT(made.num_tokens, 0u);
    texts.emplace_back(made.text, made.text_bytes);
    wisp_text_close(model);
  }
  EXPECT_EQ(texts[1], texts[0]);
  // Each number in blocks, positions (and the padding of their last panel), keys and values takes two bytes less.
  EXPECT_GE(bytes[0] - bytes[1], 2u * 40 * 2 * 16 * 2);
  const auto refused = [&](const std::string& of, int32_t half, wisp_code code, const char* sentence) {
    options.float16_cache = half;
    wisp_text_model* model = nullptr;
    EXPECT_EQ(wisp_text_open(of.c_str(), &options, &model, &error_), code) << half;
    EXPECT_EQ(model, nullptr);
    EXPECT_NE(std::string(error_.message).find(sentence), std::string::npos) << error_.message;
  };
  refused(path, 2, WISP_INVALID_ARGUMENT, "float16_cache is 2, allowed are 0 and 1");
  refused(path, -1, WISP_INVALID_ARGUMENT, "float16_cache is -1, allowed are 0 and 1");
  const char kKeepsNone[] = "keeps no keys and values: leave float16_cache at 0";
  refused(Write("encoder.wisp", TextEncoder(), "bert"), 1, WISP_UNSUPPORTED, kKeepsNone);
  refused(Write("classifier.wisp", TextEncoder(2), "bert"), 1, WISP_UNSUPPORTED, kKeepsNone);
}

TEST_F(CText, EndsWhereItIsTold) {
  wisp_text_model* model = Open(Write("decoder.wisp", Decoder(), "gpt2"));
  ASSERT_NE(model, nullptr);
  wisp_generate_options options = WISP_INIT(wisp_generate_options);
  options.max_new_tokens = 1000;
  options.seed = 9;
  wisp_generated made = WISP_INIT(wisp_generated);
  ASSERT_EQ(wisp_text_generate(model, "Once", &options, nullptr, nullptr, &made, &error_), WISP_OK) << error_.message;
  EXPECT_TRUE(made.ended == WISP_ENDED_CONTEXT || made.ended == WISP_ENDED_TOKEN) << made.ended;
  EXPECT_LE(made.num_tokens + made.prompt_tokens, 40u);
  const std::string whole(made.text, made.text_bytes);
  ASSERT_GT(whole.size(), 6u);
  // A text that occurs in the result, across the borders of tokens.
  const std::string stop = whole.substr(whole.size() / 2, 3);
  const char* stops[] = {stop.c_str()};
  options.stop = stops;
  options.num_stop = 1;
  Heard heard;
  ASSERT_EQ(wisp_text_generate(model, "Once", &options, Hear, &heard, &made, &error_), WISP_OK);
  EXPECT_EQ(made.ended, WISP_ENDED_STOP);
  EXPECT_EQ(std::string(made.text), whole.substr(0, whole.find(stop)));
  EXPECT_EQ(heard.text, std::string(made.text));
  wisp_text_close(model);
}

TEST_F(CText, GeneratesPrivatelyAndChargesTheLedger) {
  wisp_text_model* tuned = Open(Write("tuned.wisp", Decoder(), "gpt2", "notes"));
  wisp_text_model* base = Open(Write("base.wisp", Decoder(), "gpt2", "webtext"));
  ASSERT_TRUE(tuned != nullptr && base != nullptr);
  const std::string ledger = folder_ / "notes.ledger";
  const char* public_data[] = {"webtext"};
  const char* notes[] = {"the tea is cold", "\xff", "a bagel"};
  wisp_private_options samples = WISP_INIT(wisp_private_options);
  samples.ledger_path = ledger.c_str();
  samples.public_datasets = public_data;
  samples.num_public_datasets = 1;
  samples.epsilon = 8;
  samples.delta = 1e-6;
  samples.planned_samples = 12;
  samples.samples_per_charge = 6;
  wisp_private_text_options options = WISP_INIT(wisp_private_text_options);
  options.samples = &samples;
  wisp_private_generator* generator = nullptr;
  const auto open = [&](wisp_text_model* model) {
    wisp_private_generator_close(generator);
    generator = nullptr;
    return wisp_private_generator_open(model, &options, &generator, &error_);
  };
  const auto says = [&](const char* word) {
    EXPECT_NE(std::string(error_.message).find(word), std::string::npos) << error_.message;
  };
  // Private texts in the prompt of public weights alone.
  options.private_texts = notes;
  options.num_private_texts = 3;
  EXPECT_EQ(open(base), WISP_INVALID_ARGUMENT);
  says("contexts");
  options.contexts = 3;
  EXPECT_EQ(open(tuned), WISP_PRIVACY_REFUSED);
  says("must be public");
  ASSERT_EQ(open(base), WISP_OK) << error_.message;
  EXPECT_EQ(wisp_private_generator_is_free(generator), 0);
  wisp_generate_options limits = WISP_INIT(wisp_generate_options);
  limits.max_new_tokens = 6;
  Heard heard;
  wisp_generated made = WISP_INIT(wisp_generated);
  EXPECT_EQ(wisp_private_generate(generator, "\xff", &limits, Hear, &heard, &made, &error_), WISP_INVALID_DATA);
  EXPECT_FALSE(std::filesystem::exists(ledger)) << "a prompt that was refused made a ledger";
  wisp_generated no_size = {};
  EXPECT_EQ(wisp_private_generate(generator, "the", &limits, Hear, &heard, &no_size, &error_), WISP_INVALID_ARGUMENT);
  says("WISP_INIT");
  EXPECT_FALSE(std::filesystem::exists(ledger)) << "a text was paid for that could not be given";
  ASSERT_EQ(wisp_private_generate(generator, "the", &limits, Hear, &heard, &made, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(heard.text, std::string(made.text, made.text_bytes));
  EXPECT_LE(made.num_tokens, 6u);
  limits.greedy = 1;
  EXPECT_EQ(wisp_private_generate(generator, "the", &limits, nullptr, nullptr, nullptr, &error_), WISP_PRIVACY_REFUSED);
  says("arg-max");
  limits.greedy = 0;
  limits.seed = 5;
  EXPECT_EQ(wisp_private_generate(generator, "the", &limits, nullptr, nullptr, nullptr, &error_), WISP_PRIVACY_REFUSED);
  limits.seed = 0;
  limits.max_new_tokens = 20;
  EXPECT_EQ(wisp_private_generate(generator, "the", &limits, Hear, &heard, &made, &error_), WISP_PRIVACY_REFUSED);
  says("the budget has room for");
  // One text was charged for, not everything that a user wrote.
  samples.unit = WISP_UNIT_USER;
  EXPECT_EQ(open(base), WISP_PRIVACY_REFUSED);
  says("protects one interaction");
  samples.unit = WISP_UNIT_INTERACTION;
  EXPECT_EQ(open(base), WISP_OK) << error_.message;
  samples.unit = static_cast<wisp_unit>(0);
  // The weights learned without a guarantee, and have their base beside them.
  const std::string other = folder_ / "tuned.ledger";
  samples.ledger_path = other.c_str();
  options = WISP_INIT(wisp_private_text_options);
  options.samples = &samples;
  options.base_model = base;
  ASSERT_EQ(open(tuned), WISP_OK) << error_.message;
  limits.max_new_tokens = 12;
  ASSERT_EQ(wisp_private_generate(generator, "the", &limits, nullptr, nullptr, nullptr, &error_), WISP_OK);
  EXPECT_EQ(wisp_private_generate(generator, "the", &limits, nullptr, nullptr, nullptr, &error_), WISP_PRIVACY_REFUSED);
  // Public weights are free to sample from; no ledger is named.
  samples = WISP_INIT(wisp_private_options);
  samples.public_datasets = public_data;
  samples.num_public_datasets = 1;
  options.base_model = nullptr;
  ASSERT_EQ(open(base), WISP_OK) << error_.message;
  EXPECT_EQ(wisp_private_generator_is_free(generator), 1);
  EXPECT_EQ(wisp_private_generate(generator, "the", &limits, nullptr, nullptr, nullptr, &error_), WISP_OK);
  EXPECT_EQ(wisp_private_generator_open(nullptr, &options, &generator, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_private_generate(nullptr, "a", nullptr, nullptr, nullptr, nullptr, &error_), WISP_INVALID_ARGUMENT);
  wisp_private_generator_close(generator);
  wisp_text_close(tuned);
  wisp_text_close(base);
}

// A decoder learned lines, paragraphs or chunks: its ledger has the program's unit, also for private texts.
TEST_F(CText, ALedgerOfADecoderIsOfInteractionsUnlessAUnitIsGiven) {
  wisp_text_model* tuned = Open(Write("tuned.wisp", Decoder(), "gpt2", "notes"));
  wisp_text_model* base = Open(Write("base.wisp", Decoder(), "gpt2", "webtext"));
  ASSERT_TRUE(tuned != nullptr && base != nullptr);
  const char* public_data[] = {"webtext"};
  const char* notes[] = {"the tea is cold", "a bagel"};
  wisp_private_options samples = WISP_INIT(wisp_private_options);
  samples.public_datasets = public_data;
  samples.num_public_datasets = 1;
  samples.clip = 1;
  // Charges one token to the ledger of that name, and returns its unit.
  const auto unit = [&](const std::string& name, bool of_texts) -> std::string {
    const std::string path = folder_ / name;
    samples.ledger_path = path.c_str();
    wisp_private_text_options options = WISP_INIT(wisp_private_text_options);
    options.samples = &samples;
    options.base_model = of_texts ? nullptr : base;
    options.private_texts = of_texts ? notes : nullptr;
    options.num_private_texts = options.contexts = of_texts ? 2 : 0;
    options.dataset = of_texts ? "notes" : nullptr;
    wisp_private_generator* generator = nullptr;
    wisp_generate_options one = WISP_INIT(wisp_generate_options);
    one.max_new_tokens = 1;
    if (wisp_private_generator_open(of_texts ? base : tuned, &options, &generator, &error_) != WISP_OK ||
        wisp_private_generate(generator, "the", &one, nullptr, nullptr, nullptr, &error_) != WISP_OK) {
      wisp_private_generator_close(generator);
      return error_.message;
    }
    wisp_private_generator_close(generator);
    const auto ledger = privacy::Ledger::OpenExisting(path);
    return std::string(privacy::ToText(ledger->unit())) + (ledger->unit_chosen() ? "" : " by nobody's choice");
  };
  EXPECT_EQ(unit("weights", false), "interaction by nobody's choice");
  EXPECT_EQ(unit("texts", true), "interaction");
  samples.unit = WISP_UNIT_USER;
  EXPECT_EQ(unit("users", false), "user");
  EXPECT_EQ(unit("users-texts", true), "user");
  samples.unit = static_cast<wisp_unit>(0);
  // Tokens from weights cost the same whatever a record was, so an existing ledger of users takes them.
  EXPECT_EQ(unit("users", false), "user");
  EXPECT_NE(unit("users-texts", true).find("protects one user"), std::string::npos) << error_.message;
  wisp_text_close(tuned);
  wisp_text_close(base);
}

TEST_F(CText, RefusesWhatAModelIsNotFor) {
  wisp_text_model* encoder = Open(Write("encoder.wisp", TextEncoder(), "bert"));
  wisp_text_model* decoder = Open(Write("decoder.wisp", Decoder(), "gpt2"));
  ASSERT_TRUE(encoder != nullptr && decoder != nullptr);
  float numbers[16];
  size_t count = 1;
  int32_t token = 0;
  EXPECT_EQ(wisp_text_generate(encoder, "a", nullptr, nullptr, nullptr, nullptr, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("no decoder"), std::string::npos) << error_.message;
  EXPECT_EQ(wisp_text_embed(decoder, "a", numbers, 16, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_text_classify(encoder, "a", numbers, 2, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_text_embed(encoder, "a \xff", numbers, 16, &error_), WISP_INVALID_DATA);
  EXPECT_NE(std::string(error_.message).find("2"), std::string::npos) << error_.message;
  EXPECT_EQ(wisp_text_embed(encoder, "a", numbers, 15, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_text_tokenize(encoder, "a good film", &token, &count, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_GT(count, 3u);
  EXPECT_EQ(wisp_text_embed(nullptr, "a", numbers, 16, &error_), WISP_INVALID_ARGUMENT);
  wisp_generate_options options = WISP_INIT(wisp_generate_options);
  options.temperature = -1;
  EXPECT_EQ(wisp_text_generate(decoder, "a", &options, nullptr, nullptr, nullptr, &error_), WISP_INVALID_ARGUMENT);
  const std::string longer(400, 'x');
  EXPECT_EQ(wisp_text_generate(decoder, longer.c_str(), nullptr, nullptr, nullptr, nullptr, &error_),
            WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("positions"), std::string::npos) << error_.message;
  wisp_text_model* none = nullptr;
  EXPECT_EQ(wisp_text_open(Write("bare.wisp", TextEncoder(), "").c_str(), nullptr, &none, &error_),
            WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("tokenizer"), std::string::npos) << error_.message;
  // There are more tokens than rows.
  Architecture small = Decoder();
  small.num_items = 100;
  EXPECT_EQ(wisp_text_open(Write("small.wisp", small, "gpt2").c_str(), nullptr, &none, &error_), WISP_INVALID_DATA);
  EXPECT_EQ(none, nullptr);
  wisp_text_close(encoder);
  wisp_text_close(decoder);
  wisp_text_close(nullptr);
}

}  // namespace
}  // namespace wisp::c_text_test
