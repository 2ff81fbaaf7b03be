// New items of a model: old rows do not change, new ones come from public data.
#include "runtime/model/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::catalogue_test {
namespace {

class CatalogueTest : public ::testing::Test {
 protected:
  CatalogueTest() {
    architecture_ = UniformArchitecture{
        .num_items = 4, .max_length = 5, .width = 4, .num_heads = 1, .num_blocks = 1, .inner_width = 4};
    architecture_.head.output_bias = OutputBias::kFixed;
    parameters_ = ListParameters(architecture_);
    std::vector<float> weights(FlatSize(parameters_));
    for (const ParameterSpec& p : parameters_)
      std::iota(weights.begin() + static_cast<std::ptrdiff_t>(p.offset),
                weights.begin() + static_cast<std::ptrdiff_t>(p.offset + p.size()), 1.0f);
    const Status written = WriteModel(
        path_, {.architecture = architecture_,
                .weights = weights,
                .item_keys = {"tea", "tea-mint", "soup", "cake"},
                .item_names = {"Tea", "Mint tea", "Lentil soup", "Cake"},
                .provenance = {
                    {.description = "made up", .mechanisms = {"none"}, .epsilon = 0, .noise = NoiseOrigin::kSecure}}});
    EXPECT_TRUE(written.ok()) << written.message();
  }
  // Returns row `item` of the item table, [4], with its bias after it.
  static std::vector<float> Row(const std::vector<float>& weights, const Architecture& a, size_t item) {
    const auto parameters = ListParameters(a);
    const ParameterSpec& table = parameters[RequireParameter(parameters, ParameterRole::kItemTable)];
    const ParameterSpec& bias = parameters[RequireParameter(parameters, ParameterRole::kOutputBias)];
    const float* row = weights.data() + table.offset + item * table.cols;
    std::vector<float> all(row, row + table.cols);
    all.push_back(weights[bias.offset + item]);
    return all;
  }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "m.wisp";
  Architecture architecture_;
  std::vector<ParameterSpec> parameters_;
};

TEST_F(CatalogueTest, RowsComeFromANeighbourFromWordsOrFromAll) {
  const ModelFile base = *ModelFile::Open(path_, Verify::kFull);
  const auto grown = AddItems(base, std::vector<NewItem>{{"tea-iced", "Iced tea", "cake"},
                                                         {"soup-pea", "Pea soup", ""},
                                                         {"mint", "", ""},
                                                         {"radio", "Radio", ""}});
  ASSERT_TRUE(grown.ok()) << grown.status().message();
  EXPECT_EQ(grown->origins,
            (std::vector{RowOrigin::kNeighbour, RowOrigin::kWords, RowOrigin::kWords, RowOrigin::kMean}));
  const Architecture& a = grown->contents.architecture;
  ASSERT_EQ(a.num_items, 8u);
  for (size_t item = 0; item < 4; ++item)
    EXPECT_EQ(Row(grown->weights, a, item)[0], static_cast<float>(4 * item + 1)) << item;
  EXPECT_EQ(Row(grown->weights, a, 4), Row(grown->weights, a, 3)) << "like cake";
  EXPECT_EQ(Row(grown->weights, a, 5), Row(grown->weights, a, 2)) << "soup is in one name";
  EXPECT_EQ(Row(grown->weights, a, 6), Row(grown->weights, a, 1)) << "its key is its name";
  EXPECT_EQ(Row(grown->weights, a, 7), (std::vector<float>{7, 8, 9, 10, 2.5f})) << "the mean";
  // All but the items is unchanged, and the file holds everything.
  ASSERT_TRUE(WriteModel(folder_ / "grown.wisp", grown->contents).ok());
  const ModelFile file = *ModelFile::Open(folder_ / "grown.wisp", Verify::kFull);
  EXPECT_EQ(file.item_key(7), "radio");
  EXPECT_EQ(file.item_name(6), "mint");
  ASSERT_EQ(file.provenance().size(), 1u);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterSpec& p = parameters_[i];
    EXPECT_TRUE(std::equal(base.Tensor(i), base.Tensor(i) + p.size(), file.Tensor(i))) << p.name;
  }
}

// Two words: the rarer one counts more.
TEST_F(CatalogueTest, RareWordsCountMore) {
  const ModelFile base = *ModelFile::Open(path_, Verify::kFull);
  const auto grown = AddItems(base, std::vector<NewItem>{{"x", "Tea soup", ""}});
  const float first = Row(grown->weights, grown->contents.architecture, 4)[0];
  // The mean over "tea" (rows 1 and 5) is 3, over "soup" it is 9.
  EXPECT_GT(first, 6);
  EXPECT_LT(first, 9);
}

TEST_F(CatalogueTest, InvalidItems_AreRefused) {
  const ModelFile base = *ModelFile::Open(path_);
  const auto refused = [&](const NewItem& item) {
    return AddItems(base, std::vector<NewItem>{item}).status().code() == StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused({"", "nameless", ""}));
  EXPECT_TRUE(refused({"tea", "Tea again", ""}));
  EXPECT_TRUE(refused({"x", "X", "nothing"}));
  EXPECT_FALSE(AddItems(base, std::vector<NewItem>{{"x", "", ""}, {"x", "", ""}}).ok());
}

// In a model with item features a new row follows from features, and the item is served at once.
TEST_F(CatalogueTest, NewItems_GetRowsFromTheirFeatures) {
  Architecture a = architecture_;
  a.item_features = 2;
  const auto parameters = ListParameters(a);
  std::vector<float> weights(FlatSize(parameters));
  const auto set = [&](ParameterRole role, std::initializer_list<float> values) {
    std::copy(values.begin(), values.end(), weights.data() + parameters[RequireParameter(parameters, role)].offset);
  };
  set(ParameterRole::kItemTower, {1, 2, 3, 4, 10, 20, 30, 40});
  set(ParameterRole::kItemFeatures, {1, 0, 0, 1, 1, 1, 2, 0});
  set(ParameterRole::kOutputBias, {4, 3, 2, 1});
  RowsFromFeatures(a, 0, weights);
  EXPECT_EQ(Row(weights, a, 2), (std::vector<float>{11, 22, 33, 44, 2}));
  ASSERT_TRUE(WriteModel(path_, {.architecture = a, .weights = weights, .item_keys = {"a", "b", "c", "d"}}).ok());
  const ModelFile base = *ModelFile::Open(path_, Verify::kFull);
  EXPECT_EQ(base.architecture(), a);
  const auto grown = AddItems(base, std::vector<NewItem>{{.key = "e", .features = {0.5f, 2}}, {"f", "", "d", {0, 1}}});
  ASSERT_TRUE(grown.ok()) << grown.status().message();
  EXPECT_EQ(grown->origins, (std::vector{RowOrigin::kFeatures, RowOrigin::kFeatures}));
  EXPECT_TRUE(grown->contents.untrained.empty());
  EXPECT_EQ(Row(grown->weights, grown->contents.architecture, 4), (std::vector<float>{20.5f, 41, 61.5f, 82, 2.5f}));
  EXPECT_EQ(Row(grown->weights, grown->contents.architecture, 5), (std::vector<float>{10, 20, 30, 40, 1}));
  for (const std::vector<float>& features : {std::vector<float>{}, std::vector<float>{1, 2, 3}}) {
    const Status status = AddItems(base, std::vector<NewItem>{{.key = "e", .features = features}}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("each item of the model has 2"), std::string::npos) << status.message();
  }
}

// The owner's choice for the lists is kept in a model that is made from the model.
TEST_F(CatalogueTest, AllowSeen_IsKept) {
  const ModelFile base = *ModelFile::Open(path_, Verify::kFull);
  EXPECT_FALSE(base.lists().allow_seen);
  std::vector<float> room;
  ModelContents contents = GetContents(base, room);
  contents.allow_seen = true;
  const std::string cafe = folder_ / "cafe.wisp";
  ASSERT_TRUE(WriteModel(cafe, contents).ok());
  const ModelFile allows = *ModelFile::Open(cafe, Verify::kFull);
  EXPECT_TRUE(allows.lists().allow_seen);
  EXPECT_TRUE(GetContents(allows, room).allow_seen);
  EXPECT_TRUE(AddItems(allows, std::vector<NewItem>{{"x", "", ""}})->contents.allow_seen);
  EXPECT_TRUE(ChangeOffer(allows, std::vector<std::string>{"tea"}, Offer::kRetired, room)->allow_seen);
}

TEST_F(CatalogueTest, RetiresItemsAndOffersThemAgain) {
  const ModelFile base = *ModelFile::Open(path_, Verify::kFull);
  EXPECT_TRUE(base.retired().empty());
  std::vector<float> room;
  const std::string fewer = folder_ / "fewer.wisp", again = folder_ / "again.wisp";
  ASSERT_TRUE(
      WriteModel(fewer, *ChangeOffer(base, std::vector<std::string>{"soup", "tea"}, Offer::kRetired, room)).ok());
  const ModelFile retired = *ModelFile::Open(fewer, Verify::kFull);
  EXPECT_TRUE(std::ranges::equal(retired.retired(), std::vector<int32_t>{0, 2}));
  EXPECT_TRUE(std::ranges::equal(retired.flat_weights(), base.flat_weights())) << "rows stay";

  ASSERT_TRUE(WriteModel(again, *ChangeOffer(retired, std::vector<std::string>{"tea"}, Offer::kRestored, room)).ok());
  EXPECT_TRUE(std::ranges::equal(ModelFile::Open(again)->retired(), std::vector<int32_t>{2}));
  // A grown catalogue keeps retired items retired.
  const auto grown = AddItems(retired, std::vector<NewItem>{{"x", "", ""}});
  EXPECT_EQ(grown->contents.retired, (std::vector<int32_t>{0, 2}));

  EXPECT_NE(
      ChangeOffer(base, std::vector<std::string>{"radio"}, Offer::kRetired, room).status().message().find("radio"),
      std::string::npos);
  EXPECT_FALSE(
      ChangeOffer(base, std::vector<std::string>{"tea", "tea-mint", "soup", "cake"}, Offer::kRetired, room).ok());
}

TEST_F(CatalogueTest, InvalidRetiredItems_AreRefused) {
  const ModelFile base = *ModelFile::Open(path_, Verify::kFull);
  std::vector<float> room;
  for (const std::vector<int32_t>& items : std::vector<std::vector<int32_t>>{{4}, {-1}, {1, 1}, {2, 1}, {0, 1, 2, 3}}) {
    ModelContents contents = GetContents(base, room);
    contents.retired = items;
    const Status status = WriteModel(folder_ / "x.wisp", contents);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("retired"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace wisp::catalogue_test
