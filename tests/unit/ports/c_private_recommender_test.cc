// The checks at the C interface of private samples: structs of every size, enums out of range, NULLs, empty lists,
// damaged weights.
// Needs PRIVATE_SAMPLING.
#include "ports/c/wisp_embed.h"
#include "tests/unit/ports/c_test_util.h"

namespace wisp::c_private_recommender_test {
namespace {

using test::AtEverySize;
using test::Cut;
using test::Put;

class CPrivateRecommender : public ::testing::Test {
 protected:
  CPrivateRecommender() {
    test::WriteTiny(path_);
    OpenModel({});
  }
  ~CPrivateRecommender() override {
    wisp_private_recommender_close(samples_);
    wisp_model_close(model_);
  }
  // Opens the file again.
  void OpenModel(wisp_open_options options) {
    options.size = sizeof(options);
    wisp_model_close(model_);
    EXPECT_EQ(wisp_model_open_with(path_.c_str(), &options, &model_, &error_), WISP_OK) << error_.message;
  }
  wisp_code Open(const wisp_private_options& options) {
    return wisp_private_recommender_open(model_, &options, &samples_, &error_);
  }
  wisp_code Sample(const wisp_recommend_options* options) {
    count_ = 12;
    return wisp_private_recommend(samples_, history_, 3, options, items_, &count_, &error_);
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "m.wisp";
  wisp_model* model_ = nullptr;
  wisp_private_recommender* samples_ = nullptr;
  const wisp_private_options defaults_ = WISP_INIT(wisp_private_options);
  wisp_error error_ = {};
  const int32_t history_[3] = {1, 2, 3};
  int32_t items_[12];
  size_t count_ = 12;
};

TEST_F(CPrivateRecommender, Options_AreReadAsFarAsTheyGo) {
  AtEverySize(wisp_private_options{}, [&](Cut<wisp_private_options>& cut) {
    wisp_private_recommender* recommender = nullptr;
    EXPECT_EQ(wisp_private_recommender_open(model_, cut.get(), &recommender, &error_),
              cut.IsPossible() ? WISP_OK : WISP_INVALID_ARGUMENT)
        << error_.message;
    wisp_private_recommender_close(recommender);
  });
}

TEST_F(CPrivateRecommender, Decoding_OutOfRangeIsRefused) {
  for (const int32_t number : {-1, 3, 4, 1000, INT32_MIN, INT32_MAX}) {
    wisp_private_options samples = defaults_;
    Put(samples.decoding, number);
    EXPECT_EQ(Open(samples), WISP_INVALID_ARGUMENT) << number;
  }
}

TEST_F(CPrivateRecommender, Null_IsRefusedWhereItIsNotAllowed) {
  const wisp_code codes[] = {wisp_private_recommender_open(nullptr, &defaults_, &samples_, nullptr),
                             wisp_private_recommender_open(model_, nullptr, &samples_, nullptr),
                             wisp_private_recommender_open(model_, &defaults_, nullptr, nullptr),
                             wisp_private_recommend(nullptr, history_, 3, nullptr, items_, &count_, nullptr)};
  for (size_t i = 0; i < std::size(codes); ++i) EXPECT_EQ(codes[i], WISP_INVALID_ARGUMENT) << "call " << i;
  wisp_private_recommender_close(nullptr);
}

// An empty list of candidates means no item; a missing list means no restriction.
TEST_F(CPrivateRecommender, EmptyCandidates_GiveAnEmptyList) {
  ASSERT_EQ(Open(defaults_), WISP_OK) << error_.message;
  wisp_recommend_options options = WISP_INIT(wisp_recommend_options);
  options.candidates = history_;
  ASSERT_EQ(Sample(&options), WISP_OK) << error_.message;
  EXPECT_EQ(count_, 0u);
  options.candidates = nullptr;
  ASSERT_EQ(Sample(&options), WISP_OK) << error_.message;
  EXPECT_EQ(count_, 9u);
}

TEST_F(CPrivateRecommender, NonFiniteScore_IsRefusedOnOpening) {
  test::DamageTensor(path_, "item_embedding", 5 * 8 * sizeof(float), 8 * sizeof(float));
  OpenModel({.verify = WISP_VERIFY_NEVER});
  EXPECT_EQ(Open(defaults_), WISP_INVALID_DATA) << "nothing is sampled, or paid for, from damaged weights";
  EXPECT_EQ(samples_, nullptr);
}

// Undamaged but useless: every weight is a number, and no score is.
TEST_F(CPrivateRecommender, OverflowingScores_AreAnError) {
  const std::vector<float> weights(FlatSize(ListParameters(test::kTiny)), 1e30f);
  ASSERT_TRUE(WriteModel(path_, {.architecture = test::kTiny,
                                 .weights = weights,
                                 .provenance = {{.mechanisms = {"none"}, .epsilon = 0, .noise = NoiseOrigin::kSecure}}})
                  .ok());
  OpenModel({});
  ASSERT_EQ(Open(defaults_), WISP_OK) << error_.message;
  EXPECT_EQ(wisp_private_recommender_is_free(samples_), 1);
  EXPECT_EQ(Sample(nullptr), WISP_INVALID_DATA);
  EXPECT_EQ(count_, 12u);
}

}  // namespace
}  // namespace wisp::c_private_recommender_test
