// Warnings about a log that was read, and the form of its keys in messages.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/data/readers.h"
#include "tests/unit/data/readers_test_util.h"

namespace wisp::data::warnings_test {
namespace {

// Here times count, and not only their order.
TEST(WarningsOfALog, TimesOfAnotherUnit_AreReported) {
  const auto warnings = [](const std::string& times, uint32_t per_second, const ReadOptions& asked) {
    ReadOptions options = asked;
    options.units.times_per_second = per_second;
    const auto read = ReadText("log", "user,item,time\n" + times, Format::kCsv, options);
    return read.ok() ? Warnings(read->report) : std::vector<std::string>{read.status().message()};
  };
  const std::string milliseconds = "a,b,1700000000000\na,c,1800000000000\n", seconds = "a,b,1700000000\n";
  const std::string end =
      " to the second: sessions, days and what is late come out wrong. Seconds have 1 to the second, milliseconds 1000 "
      "(`times_per_second`)";
  const ReadOptions planned_run{.keep_times = true};
  EXPECT_EQ(warnings(milliseconds, 1, planned_run),
            std::vector<std::string>{"times of 2 events look like milliseconds, and are read with 1" + end});
  EXPECT_EQ(warnings(seconds, 1000, planned_run),
            std::vector<std::string>{"times of 1 event look like seconds, and are read with 1000" + end});
  EXPECT_TRUE(warnings(milliseconds, 1000, planned_run).empty());
  EXPECT_TRUE(warnings(seconds, 1, planned_run).empty());
  EXPECT_TRUE(warnings(milliseconds, 1, {}).empty());
  EXPECT_TRUE(warnings(milliseconds, 1, {.time = TimeSource::kFileOrder, .keep_times = true}).empty());
  // Such a log has no valid day: its rows are left out, and the warning says that too.
  const std::vector<std::string> known = {"b"};
  const Result<ItemIndex> index = ItemIndex::Make("the model", known);
  const ReadOptions days{.known_items = &*index, .units = {.unit = RecordUnit::kDay}, .private_run = true};
  const std::vector<std::string> of_days = warnings(milliseconds, 1, days);
  ASSERT_EQ(of_days.size(), 2u);
  EXPECT_TRUE(of_days.back().ends_with(end));
}

// A letter of any script is shown unchanged, and a message is cut between two letters.
TEST(WarningsOfALog, KeysOfEveryScript_AreShownAsTheyAre) {
  std::string key;
  for (int i = 0; i < 50; ++i) key += "\xc5\xbb";
  const std::vector<std::string> known = {"b"};
  const Result<ItemIndex> index = ItemIndex::Make("the model", known);
  const auto read = ReadText("log", "user,item,time\na,b,1\na," + key + ",2\n", Format::kCsv, {.known_items = &*index});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(Warnings(read->report),
            std::vector<std::string>{"1 event of 1 item that the model does not know left out, the first is '" +
                                     key.substr(0, 80) + "...'"});
  const auto refused = ReadText("log", "user,item,time\na,b,\xc5\xbburek\x1b\n", Format::kCsv, {});
  EXPECT_EQ(refused.status().message(), "log, line 2: the time is '\xc5\xbburek?'" + kAllowedTimes);
}

TEST(WarningsOfALog, TwoUnitsOfTime_AreReported) {
  const auto warnings = [](const std::string& times) {
    const auto read = ReadText("log", "user,item,time\n" + times, Format::kCsv, {});
    return read.ok() ? Warnings(read->report) : std::vector<std::string>{read.status().message()};
  };
  EXPECT_EQ(warnings("a,b,1700000000\na,c,1700000001000\na,d,1700000002\n"),
            std::vector<std::string>{"times of 2 events look like seconds, of 1 event like milliseconds: a log has one "
                                     "unit, or the order of its events is wrong"});
  EXPECT_TRUE(warnings("a,b,1700000000\na,c,1800000000\n").empty());
  EXPECT_TRUE(warnings("a,b,1700000000000\na,c,1800000000000\n").empty());
  EXPECT_TRUE(warnings("a,b,1\na,c,1700000000\n").empty());
}

}  // namespace
}  // namespace wisp::data::warnings_test
