// The refusal of a checkpoint that belongs to a run with other options.
#include "runtime/train/checkpoint_parts.h"

#include <gtest/gtest.h>

namespace wisp::checkpoint_parts::checkpoint_parts_test {
namespace {

const std::string kThen =
    "method 1 sampling 0 loss 0 steps 8 batch 32 of 60 threads 2 optimizer 0 0.003 0.9 noise 1.25";

std::string Changed(std::string_view from, std::string_view to) {
  std::string now = kThen;
  const size_t at = now.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  now.replace(at, from.size(), to);
  return ListDifferences(kThen, now);
}

TEST(ListDifferences, NamesOptionsAsUsersKnowThem) {
  EXPECT_EQ(Changed("threads 2", "threads 1"), "threads (2, here 1)");
  EXPECT_EQ(Changed("steps 8 batch 32 of 60", "steps 9 batch 32 of 61"),
            "steps (8, here 9), number of records (60, here 61)");
  EXPECT_EQ(Changed("0.003 0.9", "0.01 0.8"), "optimizer or learning rate");
  EXPECT_EQ(Changed("noise 1.25", "noise 1.2345678901"),
            "noise multiplier, which follows from epsilon, delta and steps (1.25, here 1.23457)");
}

TEST(ListDifferences, AnotherMethodIsAllThatIsSaid) {
  EXPECT_EQ(Changed("method 1", "method 2"), "another method");
  EXPECT_EQ(Changed("loss 0", "of 3"), "another method");
  EXPECT_EQ(ListDifferences(kThen, "dp-fp mode 1"), "another method");
  EXPECT_EQ(ListDifferences(kThen, ""), "another method");
  EXPECT_EQ(ListDifferences("\xff\xfe 1", "\xff\xfd 2"), "another method");
}

}  // namespace
}  // namespace wisp::checkpoint_parts::checkpoint_parts_test
