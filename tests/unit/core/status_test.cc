#include "runtime/core/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace wisp::status_test {
namespace {

static_assert(sizeof(Status) == sizeof(void*), "libraries for phones are a fiftieth larger with a string in each");

Status Refused() { return InvalidArgument("m.wisp: has ", 3, " rows, allowed are ", 0.5, " and above"); }

TEST(Status, IsOkOrACodeWithASentence) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().code(), StatusCode::kOk);
  EXPECT_EQ(Status().message(), "");
  EXPECT_TRUE(Status(StatusCode::kOk, "no reason").ok());
  EXPECT_EQ(Refused().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused().message(), "m.wisp: has 3 rows, allowed are 0.5 and above");
}

TEST(Status, CopiesStandByThemselves) {
  Status one = Refused();
  Status other = one;
  one = Status();
  EXPECT_TRUE(one.ok());
  EXPECT_EQ(other.message(), Refused().message());
  Status& same = other;
  other = same;
  EXPECT_EQ(other.message(), Refused().message());
  one = other;
  other = Status();
  EXPECT_EQ(one.code(), StatusCode::kInvalidArgument);
}

TEST(Status, MovesLeaveOkBehind) {
  Status one = Refused();
  Status other = std::move(one);
  EXPECT_TRUE(one.ok());  // NOLINT: the test reads a moved-from status on purpose
  one = std::move(other);
  EXPECT_EQ(one.message(), Refused().message());
  EXPECT_TRUE(other.ok());  // NOLINT: the test reads a moved-from status on purpose
}

Result<std::unique_ptr<int>> Three(bool there_is_one) {
  if (!there_is_one) return Refused();
  return std::make_unique<int>(3);
}

Status TakeThree(bool there_is_one, int* taken) {
  WISP_ASSIGN_OR_RETURN(const std::unique_ptr<int> three, Three(there_is_one));
  *taken = *three;
  WISP_RETURN_IF_ERROR(Three(true).status());
  return Three(false).status();
}

TEST(Result, HasAValueOrTheReason) {
  int taken = 0;
  EXPECT_EQ(TakeThree(false, &taken).message(), Refused().message());
  EXPECT_EQ(taken, 0);
  EXPECT_EQ(TakeThree(true, &taken).code(), StatusCode::kInvalidArgument) << "of the last line";
  EXPECT_EQ(taken, 3);
  const auto none = Three(false);
  EXPECT_FALSE(none.ok());
  EXPECT_EQ(none.status().message(), Refused().message());
  EXPECT_TRUE(Three(true).status().ok());
}

}  // namespace
}  // namespace wisp::status_test
