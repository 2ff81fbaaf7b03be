// A model file holds successions: they are read back, checked, and kept when the catalogue changes.
#include "runtime/model/catalogue.h"
#include "tests/unit/model/lies.h"

namespace wisp::successions_file_test {
namespace {

using schema::ModelT;
using test::ExpectAllRefused;
using test::SmallModel;

const std::vector<Succession> kSome = {{0, 3, 0.5f}, {2, 1, 1.25f}, {2, 5, -1.0f}, {5, 5, 2.0f}};

std::vector<Succession> Get(const ModelFile& model) {
  const auto successions = model.lists().successions;
  return {successions.begin(), successions.end()};
}

class SuccessionsFile : public ::testing::Test {
 protected:
  SuccessionsFile() {
    ModelContents contents = model_.contents();
    contents.successions = kSome;
    EXPECT_TRUE(WriteModel(path_, contents).ok());
  }
  SmallModel model_;
  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "m.wisp", other_ = folder_ / "other.wisp";
};

TEST_F(SuccessionsFile, IsReadBack) {
  const ModelFile read = *ModelFile::Open(path_, Verify::kFull);
  EXPECT_EQ(Get(read), kSome);
  std::vector<float> room;
  const ModelContents again = GetContents(read, room);
  EXPECT_EQ(again.successions, kSome);
}

TEST_F(SuccessionsFile, ChangedCatalogue_KeepsThem) {
  const ModelFile read = *ModelFile::Open(path_, Verify::kFull);
  const auto grown = AddItems(read, std::vector<NewItem>{{"x", "", ""}, {"y", "", "b"}});
  ASSERT_TRUE(grown.ok()) << grown.status().message();
  ASSERT_TRUE(WriteModel(other_, grown->contents).ok());
  EXPECT_EQ(Get(*ModelFile::Open(other_, Verify::kFull)), kSome);
  std::vector<float> room;
  ASSERT_TRUE(WriteModel(other_, *ChangeOffer(read, std::vector<std::string>{"b"}, Offer::kRetired, room)).ok());
  EXPECT_EQ(Get(*ModelFile::Open(other_, Verify::kFull)), kSome);
}

TEST_F(SuccessionsFile, InvalidOnes_AreRefused) {
  const auto with = [](std::vector<Succession> successions) {
    return [=](ModelT& m) {
      for (const Succession& s : successions)
        m.successions.emplace_back(static_cast<uint32_t>(s.from), static_cast<uint32_t>(s.to), s.score);
    };
  };
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  ExpectAllRefused({
      {"succession 1 is from item 1 to item 2 with score 1; allowed are items 0 to 5, each pair once, ascending",
       with({{2, 1, 1}, {1, 2, 1}})},
      {"succession 1 is from item 2 to item 0", with({{2, 1, 1}, {2, 0, 1}})},
      {"succession 2 is from item 2 to item 1", with({{0, 1, 1}, {2, 1, 1}, {2, 1, 3}})},
      {"succession 0 is from item 6 to item 0", with({{6, 0, 1}})},
      {"succession 1 is from item 0 to item 6", with({{0, 1, 1}, {0, 6, 1}})},
      {"succession 0 is from item 4294967295", with({{-1, 0, 1}})},
      {"and finite scores", with({{0, 1, nan}})},
      {"and finite scores", with({{0, 1, infinity}})},
  });
}

TEST_F(SuccessionsFile, AWriterWritesNoInvalidOnes) {
  ModelContents contents = model_.contents();
  for (const std::vector<Succession>& invalid :
       std::vector<std::vector<Succession>>{{{2, 1, 1}, {1, 2, 1}}, {{6, 0, 1}}, {{0, 1, std::nanf("")}}}) {
    contents.successions = invalid;
    EXPECT_FALSE(WriteModel(other_, contents).ok() && ModelFile::Open(other_).ok());
  }
}

}  // namespace
}  // namespace wisp::successions_file_test
