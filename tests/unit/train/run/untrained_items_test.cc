// When an added item counts as trained.
#include "runtime/train/run/untrained_items.h"

#include <gtest/gtest.h>

#include "runtime/model/catalogue.h"
#include "runtime/train/run/fine_tune.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::untrained_items_test {
namespace {

class UntrainedItems : public ::testing::Test {
 protected:
  UntrainedItems() {
    const test::SmallModel model;
    EXPECT_TRUE(WriteModel(path_, model.contents()).ok());
    const ModelFile small = *ModelFile::Open(path_);
    const auto grown = AddItems(small, std::vector<NewItem>{{"new 0", "", ""}, {"new 1", "", "b"}});
    EXPECT_TRUE(grown.ok() && WriteModel(grown_path_, grown->contents).ok());
    result_.weights = grown->weights;
    result_.num_records = 100;
    result_.num_steps = 10;
    result_.options.expected_batch = 10;
  }
  // Returns a number of the item table.
  float& Row(size_t item) {
    const auto parameters = ListParameters(base().architecture());
    const ParameterSpec& table = parameters[RequireParameter(parameters, ParameterRole::kItemTable)];
    return result_.weights[table.offset + item * table.cols];
  }
  ModelFile base() const { return *ModelFile::Open(grown_path_); }
  std::vector<int32_t> Left() const { return StillUntrained(base(), base().architecture(), result_); }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "base.wisp", grown_path_ = folder_ / "grown.wisp";
  JobResult result_;
};

TEST_F(UntrainedItems, AddedOnes_AreUntrained) {
  const ModelFile grown = base();
  EXPECT_EQ(std::vector<int32_t>(grown.untrained().begin(), grown.untrained().end()), (std::vector<int32_t>{6, 7}));
  EXPECT_TRUE(ModelFile::Open(path_)->untrained().empty());
}

TEST_F(UntrainedItems, RowThatStayed_HasNotLearned) {
  EXPECT_EQ(Left(), (std::vector<int32_t>{6, 7}));
  Row(7) += 1;
  EXPECT_EQ(Left(), std::vector<int32_t>{6});
}

TEST_F(UntrainedItems, LessThanOnePass_TeachesNoItem) {
  Row(6) += 1;
  Row(7) += 1;
  EXPECT_TRUE(Left().empty());
  result_.num_steps = 9;
  EXPECT_EQ(Left(), (std::vector<int32_t>{6, 7}));
  // For a private run the number of records is the public one.
  result_.num_steps = 10;
  result_.options.method = Method::kPhantom;
  result_.options.num_records_public = 101;
  EXPECT_EQ(Left(), (std::vector<int32_t>{6, 7}));
}

TEST_F(UntrainedItems, Adapter_TeachesNoItem) {
  Row(6) += 1;
  Architecture adapted = base().architecture();
  adapted.adapter = AdapterSpec{.rank = 1, .alpha = 1, .matrices = AdapterSpec::kQkv};
  EXPECT_EQ(StillUntrained(base(), adapted, result_), (std::vector<int32_t>{6, 7}));
}

}  // namespace
}  // namespace wisp::untrained_items_test
