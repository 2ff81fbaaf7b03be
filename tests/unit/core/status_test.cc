#include "runtime/core/status.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
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

TEST(Status, JoinsPiecesOfEveryKind) {
  const std::string file = "m.wisp";
  const std::string_view part = std::string_view("rows of items").substr(0, 4);  // no zero behind it
  char name[8] = "item 9";
  EXPECT_EQ(InvalidData(file, ": ", part, " ", name, std::string(" of ") + file).message(),
            "m.wisp: rows item 9 of m.wisp");
  EXPECT_EQ(InvalidData(std::numeric_limits<int64_t>::min(), " ", std::numeric_limits<uint64_t>::max()).message(),
            "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(IoError(int8_t{-3}, " ", uint8_t{200}, " ", uint16_t{65535}, " ", -1, " ", 7u).message(),
            "-3 200 65535 -1 7");
  EXPECT_EQ(Unsupported(0.1f, " ", 0.1, " ", 1e300, " ", -2.5f).message(), "0.1 0.1 1e+300 -2.5");
  // More of each than a processor has registers, and as many pieces as there may be.
  const std::string_view v = "v";
  const Status many = Cancelled(v, 1, 0.5, v, 2, 1.5, v, 3, 2.5, v, 4, 3.5, v, 5, 4.5, v, 6, 5.5, v, "end");
  EXPECT_EQ(many.message(), "v10.5v21.5v32.5v43.5v54.5v65.5vend");
  EXPECT_EQ(many.code(), StatusCode::kCancelled);
  EXPECT_EQ(JoinText(file, " has ", 3, " ", part), "m.wisp has 3 rows");
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
