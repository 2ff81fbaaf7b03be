// The checks at the C interface: structs of every size, enums out of range, NULLs, empty lists, damaged weights.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "ports/c/wisp_embed.h"
#include "ports/c/wisp_deployment.h"
#include "tests/unit/ports/c_test_util.h"

namespace wisp::c_interface_test {
namespace {

using test::AtEverySize;
using test::Cut;
using test::Put;

class CInterface : public ::testing::Test {
 protected:
  CInterface() {
    test::WriteTiny(path_);
    EXPECT_EQ(wisp_model_open(path_.c_str(), &model_, &error_), WISP_OK) << error_.message;
  }
  ~CInterface() override { wisp_model_close(model_); }

  wisp_code Recommend(const wisp_recommend_options* options, size_t* count) {
    return wisp_recommend(model_, history_, 3, options, top_, count, &error_);
  }
  wisp_code OpenWith(const std::string& path, wisp_open_options options) {
    wisp_model* model = nullptr;
    const wisp_code code = wisp_model_open_with(path.c_str(), &options, &model, &error_);
    EXPECT_EQ(model != nullptr, code == WISP_OK);
    wisp_model_close(model);
    return code;
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "m.wisp";
  wisp_model* model_ = nullptr;
  wisp_error error_ = {};
  const int32_t history_[3] = {1, 2, 3};
  wisp_recommendation top_[12] = {};
};

TEST_F(CInterface, ResultStructs_AreFilledAsFarAsTheyGo) {
  wisp_model_memory whole = WISP_INIT(wisp_model_memory);
  ASSERT_EQ(wisp_model_plan_memory(path_.c_str(), &whole, &error_), WISP_OK);
  AtEverySize(wisp_model_memory{}, [&](Cut<wisp_model_memory>& cut) {
    ASSERT_EQ(wisp_model_plan_memory(path_.c_str(), cut.get(), &error_),
              cut.IsPossible() ? WISP_OK : WISP_INVALID_ARGUMENT);
    wisp_model_memory expected = whole;
    expected.size = cut.get()->size;
    if (cut.IsPossible()) {
      EXPECT_EQ(std::memcmp(cut.get(), &expected, expected.size), 0);
    }
  });
  wisp_personalise_options options = WISP_INIT(wisp_personalise_options);
  options.model_path = path_.c_str();
  options.num_records_public = 20;
  AtEverySize(wisp_personalise_memory{}, [&](Cut<wisp_personalise_memory>& cut) {
    EXPECT_EQ(wisp_personalise_plan_memory(&options, cut.get(), &error_),
              cut.IsPossible() ? WISP_OK : WISP_INVALID_ARGUMENT)
        << error_.message;
  });
}

TEST_F(CInterface, OptionStructs_AreReadAsFarAsTheyGo) {
  AtEverySize(wisp_open_options{}, [&](Cut<wisp_open_options>& cut) {
    wisp_model* model = nullptr;
    EXPECT_EQ(wisp_model_open_with(path_.c_str(), cut.get(), &model, &error_),
              cut.IsPossible() ? WISP_OK : WISP_INVALID_ARGUMENT)
        << error_.message;
    wisp_model_close(model);
    wisp_model_memory memory = WISP_INIT(wisp_model_memory);
    EXPECT_EQ(wisp_model_plan_memory_with(path_.c_str(), cut.get(), &memory, &error_),
              cut.IsPossible() ? WISP_OK : WISP_INVALID_ARGUMENT);
  });
  AtEverySize(wisp_recommend_options{}, [&](Cut<wisp_recommend_options>& cut) {
    size_t count = 12;
    EXPECT_EQ(Recommend(cut.get(), &count), cut.IsPossible() ? WISP_OK : WISP_INVALID_ARGUMENT) << error_.message;
    EXPECT_EQ(count, cut.IsPossible() ? 9u : 12u);
  });
  AtEverySize(wisp_batch_options{}, [&](Cut<wisp_batch_options>& cut) {
    const int32_t* histories[] = {history_};
    const size_t lengths[] = {3};
    size_t found = 99;
    EXPECT_EQ(wisp_recommend_batch(model_, histories, lengths, 1, nullptr, cut.get(), 2, top_, &found, &error_),
              cut.IsPossible() ? WISP_OK : WISP_INVALID_ARGUMENT)
        << error_.message;
    EXPECT_EQ(found, cut.IsPossible() ? 2u : 99u);
  });
}

// A newer caller's struct: a zero in an unknown field asks for nothing.
TEST_F(CInterface, OptionsThatAreNotKnown_AreRefusedUnlessZero) {
  struct Newer {
    wisp_recommend_options known;
    uint64_t later;
  } newer = {WISP_INIT(wisp_recommend_options), 0};
  newer.known.size = sizeof(newer);
  size_t count = 12;
  EXPECT_EQ(Recommend(&newer.known, &count), WISP_OK) << error_.message;
  newer.later = uint64_t{1} << 63;
  EXPECT_EQ(Recommend(&newer.known, &count), WISP_UNSUPPORTED);
}

TEST_F(CInterface, ItemsOfTheHistory_ComeBackAsTheModelOrTheCallSays) {
  wisp_recommend_options options = WISP_INIT(wisp_recommend_options);
  for (const auto& [said, items] : {std::pair(0, 9u), {1, 12u}, {2, 9u}}) {
    size_t count = 12;
    options.allow_seen = said;
    EXPECT_EQ(Recommend(&options, &count), WISP_OK) << error_.message;
    EXPECT_EQ(count, items) << said;
  }
  size_t count = 12;
  options.allow_seen = 3;
  EXPECT_EQ(Recommend(&options, &count), WISP_INVALID_ARGUMENT);
}

TEST_F(CInterface, Enums_OutOfRangeAreRefused) {
  for (const int32_t number : {-1, 3, 4, 1000, INT32_MIN, INT32_MAX}) {
    wisp_open_options open = WISP_INIT(wisp_open_options);
    Put(open.backend, number);
    EXPECT_EQ(OpenWith(path_, open), WISP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error_.message).find("no backend " + std::to_string(number)), std::string::npos)
        << error_.message;
    wisp_statement_format format = WISP_STATEMENT_TEXT;
    Put(format, number);
    size_t needed = 0;
    EXPECT_EQ(wisp_privacy_statement("none.ledger", 1e-6, format, nullptr, 0, &needed, &error_), WISP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error_.message).find("no format " + std::to_string(number)), std::string::npos)
        << error_.message;
    if (number == 3) continue;  // WISP_VERIFY_NEVER
    open.backend = WISP_BACKEND_SIMD;
    Put(open.verify, number);
    EXPECT_EQ(OpenWith(path_, open), WISP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error_.message).find("no verification " + std::to_string(number)), std::string::npos)
        << error_.message;
  }
}

TEST_F(CInterface, Null_IsRefusedWhereItIsNotAllowed) {
  wisp_model* model = nullptr;
  wisp_model_memory memory = WISP_INIT(wisp_model_memory);
  size_t count = 2, found = 0;
  const int32_t* histories[] = {history_};
  const int32_t* no_histories[] = {nullptr};
  const size_t lengths[] = {3};
  char text[8];
  int32_t items[2];
  wisp_log* log = nullptr;
  const wisp_personalise_options tune = WISP_INIT(wisp_personalise_options);
  wisp_personalise_memory tune_memory = WISP_INIT(wisp_personalise_memory);
  ASSERT_EQ(wisp_log_open((folder_ / "log.db").c_str(), &log, nullptr), WISP_OK);
  const wisp_code codes[] = {
      wisp_model_open(nullptr, &model, nullptr),
      wisp_model_open(path_.c_str(), nullptr, nullptr),
      wisp_model_open_with(nullptr, nullptr, &model, nullptr),
      wisp_model_open_with(path_.c_str(), nullptr, nullptr, nullptr),
      wisp_model_plan_memory(nullptr, &memory, nullptr),
      wisp_model_plan_memory(path_.c_str(), nullptr, nullptr),
      wisp_recommend(nullptr, history_, 3, nullptr, top_, &count, nullptr),
      wisp_recommend(model_, nullptr, 3, nullptr, top_, &count, nullptr),
      wisp_recommend(model_, history_, 3, nullptr, nullptr, &count, nullptr),
      wisp_recommend(model_, history_, 3, nullptr, top_, nullptr, nullptr),
      wisp_recommend_batch(nullptr, histories, lengths, 1, nullptr, nullptr, 2, top_, &found, nullptr),
      wisp_recommend_batch(model_, nullptr, lengths, 1, nullptr, nullptr, 2, top_, &found, nullptr),
      wisp_recommend_batch(model_, no_histories, lengths, 1, nullptr, nullptr, 2, top_, &found, nullptr),
      wisp_recommend_batch(model_, histories, nullptr, 1, nullptr, nullptr, 2, top_, &found, nullptr),
      wisp_recommend_batch(model_, histories, lengths, 1, nullptr, nullptr, 2, nullptr, &found, nullptr),
      wisp_recommend_batch(model_, histories, lengths, 1, nullptr, nullptr, 2, top_, nullptr, nullptr),
      wisp_log_open(nullptr, &log, nullptr),
      wisp_log_open("log.db", nullptr, nullptr),
      wisp_log_append(nullptr, "u", "k1", 1, nullptr),
      wisp_log_append(log, nullptr, "k1", 1, nullptr),
      wisp_log_append(log, "u", nullptr, 1, nullptr),
      wisp_log_history(nullptr, model_, "u", items, &count, nullptr),
      wisp_log_history(log, nullptr, "u", items, &count, nullptr),
      wisp_log_history(log, model_, nullptr, items, &count, nullptr),
      wisp_log_history(log, model_, "u", nullptr, &count, nullptr),
      wisp_log_history(log, model_, "u", items, nullptr, nullptr),
      wisp_personalise(nullptr, nullptr, nullptr),
      wisp_personalise(&tune, nullptr, nullptr),
      wisp_personalise_plan_memory(nullptr, &tune_memory, nullptr),
      wisp_personalise_plan_memory(&tune, &tune_memory, nullptr),
      wisp_personalise_plan_memory(&tune, nullptr, nullptr),
      wisp_privacy_statement(nullptr, 1e-6, WISP_STATEMENT_TEXT, text, 8, &count, nullptr),
      wisp_privacy_statement("l", 1e-6, WISP_STATEMENT_TEXT, nullptr, 8, &count, nullptr),
      wisp_privacy_statement("l", 1e-6, WISP_STATEMENT_TEXT, text, 8, nullptr, nullptr)};
  for (size_t i = 0; i < std::size(codes); ++i) EXPECT_EQ(codes[i], WISP_INVALID_ARGUMENT) << "call " << i;
  wisp_log_close(log);
  wisp_log_close(nullptr);
  wisp_model_close(nullptr);
  EXPECT_EQ(wisp_model_num_items(nullptr), 0u);
  EXPECT_EQ(wisp_model_find_item(model_, nullptr), -1);
  EXPECT_STREQ(wisp_model_item_key(nullptr, 0), "");
  EXPECT_STREQ(wisp_model_item_name(model_, -1), "");
}

// An empty list of candidates means no item; a missing list means no restriction.
TEST_F(CInterface, EmptyCandidates_GiveAnEmptyList) {
  wisp_recommend_options options = WISP_INIT(wisp_recommend_options);
  options.candidates = history_;
  size_t count = 12;
  ASSERT_EQ(Recommend(&options, &count), WISP_OK);
  EXPECT_EQ(count, 0u);
  const int32_t* histories[] = {history_, history_};
  const size_t lengths[] = {3, 2};
  size_t found[] = {99, 99};
  ASSERT_EQ(wisp_recommend_batch(model_, histories, lengths, 2, &options, nullptr, 2, top_, found, &error_), WISP_OK);
  EXPECT_EQ(found[0] + found[1], 0u);
  options.candidates = nullptr;
  ASSERT_EQ(Recommend(&options, &(count = 12)), WISP_OK);
  EXPECT_EQ(count, 9u);
  options.num_candidates = 1;
  EXPECT_EQ(Recommend(&options, &count), WISP_INVALID_ARGUMENT);
  // Other errors are still found.
  options.candidates = history_;
  options.num_candidates = 0;
  const int32_t outside[] = {12};
  EXPECT_EQ(wisp_recommend(model_, outside, 1, &options, top_, &count, &error_), WISP_INVALID_ARGUMENT);
}

TEST_F(CInterface, ThreadsOfOneHistory_ChangeNoScore) {
  size_t count = 12;
  ASSERT_EQ(Recommend(nullptr, &count), WISP_OK);
  const std::vector<wisp_recommendation> expected(top_, top_ + count);
  wisp_model_memory one = WISP_INIT(wisp_model_memory), three = one;
  ASSERT_EQ(wisp_model_plan_memory(path_.c_str(), &one, &error_), WISP_OK);
  wisp_open_options options = WISP_INIT(wisp_open_options);
  options.num_threads = 3;
  ASSERT_EQ(wisp_model_plan_memory_with(path_.c_str(), &options, &three, &error_), WISP_OK) << error_.message;
  EXPECT_GT(three.activation_bytes, one.activation_bytes);
  const wisp_run_tasks in_turn = [](void*, size_t num_tasks, wisp_task task, void* data) {
    for (size_t i = 0; i < num_tasks; ++i) task(data, i);
  };
  for (const wisp_run_tasks run_tasks : {wisp_run_tasks{nullptr}, in_turn}) {
    options.run_tasks = run_tasks;
    wisp_model_close(model_);
    ASSERT_EQ(wisp_model_open_with(path_.c_str(), &options, &model_, &error_), WISP_OK) << error_.message;
    ASSERT_EQ(Recommend(nullptr, &(count = 12)), WISP_OK);
    ASSERT_EQ(count, expected.size());
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(top_[i].item, expected[i].item);
      EXPECT_EQ(top_[i].score, expected[i].score);
    }
  }
  options.num_threads = 1025;
  EXPECT_EQ(OpenWith(path_, options), WISP_INVALID_ARGUMENT);
  options.num_threads = 2;
  options.backend = WISP_BACKEND_XNNPACK;
  EXPECT_EQ(OpenWith(path_, options), WISP_UNSUPPORTED);
}

// A float16 key/value cache: nearly the same scores with less memory, as planned.
TEST_F(CInterface, HalfCache_IsSmallerAndNearlyTheSame) {
  wisp_open_options options = WISP_INIT(wisp_open_options);
  std::vector<std::vector<wisp_recommendation>> best;
  std::vector<uint64_t> bytes;
  for (const int32_t half : {0, 1}) {
    options.float16_cache = half;
    wisp_model_memory memory = WISP_INIT(wisp_model_memory);
    ASSERT_EQ(wisp_model_plan_memory_with(path_.c_str(), &options, &memory, &error_), WISP_OK) << error_.message;
    bytes.push_back(memory.activation_bytes);
    wisp_model* model = nullptr;
    ASSERT_EQ(wisp_model_open_with(path_.c_str(), &options, &model, &error_), WISP_OK) << error_.message;
    size_t count = 12;
    ASSERT_EQ(wisp_recommend(model, history_, 3, nullptr, top_, &count, &error_), WISP_OK) << error_.message;
    best.emplace_back(top_, top_ + count);
    const int32_t* histories[] = {history_};
    const size_t lengths[] = {3};
    std::vector<wisp_recommendation> in_batch(12);
    size_t found = 0;
    ASSERT_EQ(
        wisp_recommend_batch(model, histories, lengths, 1, nullptr, nullptr, 12, in_batch.data(), &found, &error_),
        WISP_OK)
        << error_.message;
    ASSERT_EQ(found, count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(in_batch[i].score, top_[i].score) << "float16_cache " << half;
    wisp_model_close(model);
  }
  EXPECT_LT(bytes[1], bytes[0]);
  ASSERT_EQ(best[0].size(), best[1].size());
  for (const wisp_recommendation& exact : best[0]) {
    const auto near = std::find_if(best[1].begin(), best[1].end(), [&](const auto& r) { return r.item == exact.item; });
    ASSERT_NE(near, best[1].end());
    EXPECT_NEAR(near->score, exact.score, 1e-2);
  }
  const auto same = [](const auto& a, const auto& b) { return a.score == b.score; };
  EXPECT_FALSE(std::equal(best[0].begin(), best[0].end(), best[1].begin(), same)) << "nothing was rounded: no halves";
  for (const int32_t half : {-1, 2, INT32_MAX}) {
    options.float16_cache = half;
    wisp_model_memory memory = WISP_INIT(wisp_model_memory);
    EXPECT_EQ(OpenWith(path_, options), WISP_INVALID_ARGUMENT);
    EXPECT_EQ(wisp_model_plan_memory_with(path_.c_str(), &options, &memory, &error_), WISP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error_.message).find("float16_cache is " + std::to_string(half) + ", allowed are 0 and 1"),
              std::string::npos)
        << error_.message;
  }
}

TEST_F(CInterface, DamagedRow_IsFoundOnOpening) {
  test::DamageTensor(path_, "item_embedding", 5 * 8 * sizeof(float), 8 * sizeof(float));
  wisp_open_options options = WISP_INIT(wisp_open_options);
  wisp_model* model = nullptr;
  EXPECT_EQ(wisp_model_open(path_.c_str(), &model, &error_), WISP_INVALID_DATA);
  EXPECT_NE(std::string(error_.message).find("m.wisp: tensor item_embedding is damaged"), std::string::npos)
      << error_.message;
  for (const wisp_verify verify : {WISP_VERIFY_DEFAULT, WISP_VERIFY_ALWAYS, WISP_VERIFY_ONCE}) {
    wisp_verified verified = {};
    options.verify = verify;
    options.verified = &verified;
    EXPECT_EQ(OpenWith(path_, options), WISP_INVALID_DATA);
    EXPECT_EQ(verified.words[0], 0u) << "remembered as whole";
  }
  options.verify = WISP_VERIFY_NEVER;
  EXPECT_EQ(OpenWith(path_, options), WISP_OK);
  options.backend = WISP_BACKEND_INT8;
  EXPECT_NE(OpenWith(path_, options), WISP_OK) << "8-bit weights made of what is no number";
}

TEST_F(CInterface, NonFiniteScore_IsAnError) {
  test::DamageTensor(path_, "item_embedding", 5 * 8 * sizeof(float), 8 * sizeof(float));
  wisp_open_options options = WISP_INIT(wisp_open_options);
  options.verify = WISP_VERIFY_NEVER;
  wisp_model_close(model_);
  ASSERT_EQ(wisp_model_open_with(path_.c_str(), &options, &model_, &error_), WISP_OK);
  for (size_t wanted : {1u, 3u, 12u}) {
    size_t count = wanted, found[] = {77, 77};
    EXPECT_EQ(Recommend(nullptr, &count), WISP_INVALID_DATA) << wanted;
    EXPECT_NE(std::string(error_.message).find("m.wisp"), std::string::npos) << error_.message;
    EXPECT_EQ(count, wanted);
    const int32_t* histories[] = {history_, history_};
    const size_t lengths[] = {3, 2};
    EXPECT_EQ(wisp_recommend_batch(model_, histories, lengths, 2, nullptr, nullptr, std::min<size_t>(wanted, 6), top_,
                                   found, &error_),
              WISP_INVALID_DATA);
    EXPECT_EQ(found[0], 77u) << "outputs are untouched on failure";
  }
  // If the candidates do not include it, or it is excluded, there is no error.
  wisp_recommend_options without = WISP_INIT(wisp_recommend_options);
  const int32_t candidates[] = {4, 6, 7}, damaged[] = {5};
  without.candidates = candidates;
  without.num_candidates = 3;
  size_t count = 12;
  ASSERT_EQ(Recommend(&without, &count), WISP_OK) << error_.message;
  EXPECT_EQ(count, 3u);
  for (size_t i = 0; i < count; ++i) EXPECT_TRUE(std::isfinite(top_[i].score));
  without = WISP_INIT(wisp_recommend_options);
  without.excluded = damaged;
  without.num_excluded = 1;
  EXPECT_EQ(Recommend(&without, &(count = 12)), WISP_OK) << error_.message;
}

// Undamaged but useless: every weight is a number, and no score is.
TEST_F(CInterface, OverflowingScores_AreAnError) {
  const std::vector<float> weights(FlatSize(ListParameters(test::kTiny)), 1e30f);
  ASSERT_TRUE(WriteModel(path_, {.architecture = test::kTiny,
                                 .weights = weights,
                                 .provenance = {{.mechanisms = {"none"}, .epsilon = 0, .noise = NoiseOrigin::kSecure}}})
                  .ok());
  wisp_model_close(model_);
  ASSERT_EQ(wisp_model_open(path_.c_str(), &model_, &error_), WISP_OK) << error_.message;
  size_t count = 12, found = 77;
  EXPECT_EQ(Recommend(nullptr, &count), WISP_INVALID_DATA);
  const int32_t* histories[] = {history_};
  const size_t lengths[] = {3};
  EXPECT_EQ(wisp_recommend_batch(model_, histories, lengths, 1, nullptr, nullptr, 6, top_, &found, &error_),
            WISP_INVALID_DATA);
}

// The damage keeps the file's time, which shows whether the weights were read.
TEST_F(CInterface, VerifyOnce_ReadsAFileOnce) {
  wisp_verified verified = {};
  wisp_open_options options = WISP_INIT(wisp_open_options);
  options.verify = WISP_VERIFY_ONCE;
  EXPECT_EQ(OpenWith(path_, options), WISP_INVALID_ARGUMENT) << "there is nowhere to remember it";
  options.verified = &verified;
  ASSERT_EQ(OpenWith(path_, options), WISP_OK);
  EXPECT_NE(verified.words[0], 0u);
  const auto time = std::filesystem::last_write_time(path_);
  test::DamageTensor(path_, "item_embedding", 0, 4);
  std::filesystem::last_write_time(path_, time);
  EXPECT_EQ(OpenWith(path_, options), WISP_OK) << "it is remembered";
  std::filesystem::last_write_time(path_, time + std::chrono::seconds(1));
  EXPECT_EQ(OpenWith(path_, options), WISP_INVALID_DATA) << "a changed file is verified again";
  std::filesystem::last_write_time(path_, time);
  std::filesystem::copy_file(path_, folder_ / "copy.wisp");
  std::filesystem::last_write_time(folder_ / "copy.wisp", time);
  EXPECT_EQ(OpenWith(folder_ / "copy.wisp", options), WISP_INVALID_DATA) << "another file is verified";
  verified.words[0] ^= 1;
  EXPECT_EQ(OpenWith(path_, options), WISP_INVALID_DATA) << "other contents are verified";
}

TEST_F(CInterface, Messages_HoldNothingThatATerminalActsOn) {
  wisp_model* model = nullptr;
  EXPECT_EQ(wisp_model_open("no\x1b]0;such\x07\xc2\x9b"
                            "2J\xff.wisp",
                            &model, &error_),
            WISP_IO);
  EXPECT_NE(std::string(error_.message).find("no?]0;such??2J?.wisp"), std::string::npos) << error_.message;
}

// A path may hold line ends and characters that reverse the writing direction.
TEST_F(CInterface, Messages_AreOneLine) {
  wisp_model* model = nullptr;
  EXPECT_EQ(wisp_model_open("no\nwisp: all is well\xe2\x80\xae.wisp", &model, &error_), WISP_IO);
  EXPECT_NE(std::string(error_.message).find("no?wisp: all is well?.wisp"), std::string::npos) << error_.message;
  wisp_log* log = nullptr;
  EXPECT_EQ(wisp_log_open("none\n/log.db", &log, &error_), WISP_IO);
  EXPECT_EQ(std::string(error_.message).find('\n'), std::string::npos) << error_.message;
}

// Many functions return (size_t)-1 on failure.
TEST_F(CInterface, ANumberThatNoListHas_IsRefused) {
  size_t count = 3;
  wisp_recommend_options options = WISP_INIT(wisp_recommend_options);
  const int32_t* const histories[] = {history_};
  for (const size_t many : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 31}) {
    EXPECT_EQ(wisp_recommend(model_, history_, many, nullptr, top_, &count, &error_), WISP_INVALID_ARGUMENT);
    for (auto [list, number] : {std::pair(&options.excluded, &options.num_excluded),
                                std::pair(&options.candidates, &options.num_candidates)}) {
      options = WISP_INIT(wisp_recommend_options);
      *list = history_;
      *number = many;
      EXPECT_EQ(Recommend(&options, &count), WISP_INVALID_ARGUMENT);
    }
    EXPECT_EQ(wisp_recommend_batch(model_, histories, &many, 1, nullptr, nullptr, 3, top_, &count, &error_),
              WISP_INVALID_ARGUMENT);
    EXPECT_EQ(wisp_recommend_batch(model_, histories, &count, many, nullptr, nullptr, 3, top_, &count, &error_),
              WISP_INVALID_ARGUMENT);
    const wisp_new_item item = {"key", nullptr, nullptr};
    const char* const key = "0";
    const std::string out = folder_ / "out.wisp";
    EXPECT_EQ(wisp_catalogue_add(path_.c_str(), &item, many, out.c_str(), &error_), WISP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error_.message).find("allowed are 0 to 2147483647"), std::string::npos) << error_.message;
    EXPECT_EQ(wisp_catalogue_retire(path_.c_str(), &key, many, 0, out.c_str(), &error_), WISP_INVALID_ARGUMENT);
    wisp_log* log = nullptr;
    ASSERT_EQ(wisp_log_open((folder_ / "log.db").c_str(), &log, &error_), WISP_OK) << error_.message;
    const wisp_event event = {"anna", "k1", 1};
    EXPECT_EQ(wisp_log_append_all(log, &event, many, &error_), WISP_INVALID_ARGUMENT);
    wisp_log_close(log);
  }
  wisp_model* model = nullptr;
  EXPECT_EQ(wisp_model_open_memory("m", history_, SIZE_MAX, nullptr, &model, &error_), WISP_INVALID_ARGUMENT);
}

TEST_F(CInterface, LogOfNoFile_IsRefused) {
  for (const char* path : {"", ":memory:", "file:log.db", "file::memory:?cache=shared"}) {
    wisp_log* log = nullptr;
    EXPECT_EQ(wisp_log_open(path, &log, &error_), WISP_INVALID_ARGUMENT) << path;
    EXPECT_EQ(log, nullptr);
  }
}

}  // namespace
}  // namespace wisp::c_interface_test
