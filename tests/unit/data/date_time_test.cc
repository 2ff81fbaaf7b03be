// Times of events as texts. The expected numbers are those of Python's datetime.fromisoformat(...).timestamp().
#include "runtime/data/date_time.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "runtime/data/event_log.h"
#include "tests/unit/data/readers_test_util.h"

namespace wisp::data::date_time_test {
namespace {

std::string Read(std::string_view text, uint32_t per_second = 1) {
  int64_t time = 0;
  return ParseTime(text, per_second, time) ? std::to_string(time) : "none";
}

std::string ReadAndTell(const std::string& text, Format format, const ReadOptions& options = {}) {
  const Result<ReadResult> read = ReadText("log", text, format, options);
  return read.ok() ? Told(read->sequences) : "error: " + read.status().message();
}

TEST(DateTime, DatesOfIso8601_AreSecondsSince1970) {
  for (const auto& [text, seconds] : {std::pair("1970-01-01", "0"),
                                      {"2026-11-27", "1795737600"},
                                      {"2026-11-27T09:30", "1795771800"},
                                      {"2026-11-27T09:30:15", "1795771815"},
                                      {"2026-11-27 09:30:15", "1795771815"},
                                      {"2026-11-27t09:30:15z", "1795771815"},
                                      {"2026-11-27T09:30:15.999Z", "1795771815"},
                                      {"2026-11-27T09:30:15,5+01:00", "1795768215"},
                                      {"2026-11-27T09:30:15-0330", "1795784415"},
                                      {"2026-11-27T09:30+14", "1795721400"},
                                      {"20261127T093015Z", "1795771815"},
                                      {"20261127T0930", "1795771800"},
                                      {"2024-02-29T23:59:60Z", "1709251200"},
                                      {"2024-02-29T24:00Z", "1709251200"},
                                      {"2000-02-29", "951782400"},
                                      {"1969-12-31T23:59:59Z", "-1"},
                                      {"0001-01-01", "-62135596800"},
                                      {"9999-12-31T23:59:59Z", "253402300799"}})
    EXPECT_EQ(Read(text), seconds) << text;
}

TEST(DateTime, Dates_CountInTheUnitOfTheLog) {
  EXPECT_EQ(Read("2026-11-27T09:30:15.123456789Z", 1000), "1795771815123");
  EXPECT_EQ(Read("2026-11-27T09:30:15.1234567891", 1'000'000'000), "1795771815123456789");
  EXPECT_EQ(Read("9999-12-31", 1'000'000'000), "none") << "beyond 64 bits";
  EXPECT_EQ(Read("1795771815", 1000), "1795771815") << "numbers are in that unit already";
}

TEST(DateTime, Numbers_AreTakenAsTheyAre) {
  for (const auto& [text, number] :
       {std::pair("20261127", "20261127"), {"2026", "2026"}, {"-0.5", "-1"}, {"8.8e8", "880000000"}})
    EXPECT_EQ(Read(text), number) << text;
}

TEST(DateTime, InvalidTimes_GiveNothing) {
  for (const char* text : {"",
                           "T",
                           "2026-11",
                           "2026-W48-5",
                           "2026-331",
                           "27.11.2026",
                           "11/27/2026",
                           "2026-13-01",
                           "2026-00-01",
                           "2026-11-31",
                           "2026-02-29",
                           "1900-02-29",
                           "0000-01-01",
                           "2026-11-27T",
                           "2026-11-27T9:30",
                           "2026-11-27T24:01",
                           "2026-11-27T25:00",
                           "2026-11-27T09:60",
                           "2026-11-27T09:30:61",
                           "2026-11-27T09:30:15.",
                           "2026-11-27T09:30:15.5Zx",
                           "2026-11-27T09:30+",
                           "2026-11-27T09:30+1",
                           "2026-11-27T09:30+24:00",
                           "2026-11-27T09:30+01:60",
                           "2026-11-27T09:30+01:",
                           "2026-11-27  09:30",
                           " 2026-11-27",
                           "2026-11-27 ",
                           "2026-11-27T09:30 Z",
                           "2026-1127",
                           "20261127T"})
    EXPECT_EQ(Read(text), "none") << text;
}

TEST(DateTime, EveryReader_ReadsDates) {
  const std::string later = "2026-11-27T09:30:00Z", earlier = "2026-11-27T09:30:00+01:00";
  EXPECT_EQ(ReadAndTell("user,item,time\nu,b," + later + "\nu,a," + earlier + "\n", Format::kCsv), "u: a b");
  EXPECT_EQ(ReadAndTell("user\titem\ttime\nu\tb\t" + later + "\nu\ta\t" + earlier + "\n", Format::kTsv), "u: a b");
  EXPECT_EQ(ReadAndTell("user_id:token\titem_id:token\ttime:token\nu\tb\t" + later + "\nu\ta\t" + earlier + "\n",
                        Format::kInter),
            "u: a b");
  EXPECT_EQ(ReadAndTell("u::b::5::" + later + "\nu::a::5::" + earlier + "\n", Format::kRatingsDat), "u: a b");
  const LogFolder folder;
  for (const char* type : {"TEXT", "INTEGER", ""}) {
    std::filesystem::remove(folder / "log.db");
    const std::string path = folder.MakeDatabase(
        "log.db", std::string("CREATE TABLE events(user TEXT, item TEXT, time ") + type +
                      "); INSERT INTO events VALUES('u','b','" + later + "'),('u','a','" + earlier + "')");
    EXPECT_EQ(ReadFileAndTell(path), "u: a b") << type;
  }
}

TEST(DateTime, DaysAndSessions_AreThoseOfTheDates) {
  const std::string text =
      "user,item,time\nu,a,2026-11-27T23:30:00Z\nu,b,2026-11-28T00:10:00Z\nu,c,2026-11-28T09:00:00Z\n";
  for (const uint32_t per_second : {1u, 1000u}) {
    const Units days{.unit = RecordUnit::kDay, .times_per_second = per_second};
    EXPECT_EQ(ReadAndTell(text, Format::kCsv, {.units = days}), "u: a; u: b c");
    const Units sessions{.unit = RecordUnit::kSession, .session_gap = 3600, .times_per_second = per_second};
    EXPECT_EQ(ReadAndTell(text, Format::kCsv, {.units = sessions}), "u: a b; u: c");
  }
}

// In a log that another program wrote with dates, counting, listing and pruning follow the dates.
TEST(DateTime, ALogOfDates_IsKept) {
  const LogFolder folder;
  const std::string path = folder.MakeDatabase(
      "log.db",
      "CREATE TABLE events(user TEXT, item TEXT, time TEXT); INSERT INTO events VALUES('u','c','2026-11-27T09:30:00Z'),"
      "('u','a','2025-01-01'),('u','b','2026-11-27T09:30:00+01:00'),('u','d','soon')");
  EventLog log = *EventLog::Open(path);
  EXPECT_EQ(*log.Count()->oldest, 1735689600);
  EXPECT_EQ(*log.Count()->newest, 1795771800);
  EXPECT_EQ(log.Users("", 9)->front().newest, 1795771800);
  EXPECT_EQ(*log.History("u", 3), (std::vector<std::string>{"a", "b", "c"}));
  const auto events = *log.Events("u");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events.front().time, 1735689600);
  EXPECT_EQ(events.back().time, 1795771800);
  EXPECT_EQ(log.Count()->dates, 3u);
  EXPECT_EQ(log.Count(1000)->newest, 1795771800000);
  EXPECT_EQ(log.Users("", 9, 1000)->front().newest, 1795771800000);
  EXPECT_EQ(log.Events("u", 1000)->back().time, 1795771800000);
  EXPECT_EQ(*log.Prune({.before = 1767225600000, .units = {.times_per_second = 1000}}), 1u);
  EXPECT_EQ(*log.History("u", 2), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(*log.Prune({.newest_per_user = 1}), 1u);
  EXPECT_EQ(*log.History("u", 1), (std::vector<std::string>{"c"}));
}

// Numbers are no dates, also as text and with a fraction.
TEST(DateTime, NumbersCountAsTheyAre) {
  const LogFolder folder;
  const EventLog log = *EventLog::Open(folder.MakeDatabase(
      "log.db",
      "CREATE TABLE events(user TEXT, item TEXT, time); INSERT INTO events VALUES('u','a',5),('u','b','6'),"
      "('u','c',7.5),('u','d','8e0'),('u','e','1970-01-01T00:00:09Z')"));
  EXPECT_EQ(log.Count()->dates, 1u);
  EXPECT_EQ(log.Count(1000)->newest, 9000);
  EXPECT_EQ(*log.History("u", 9), (std::vector<std::string>{"a", "b", "c", "d", "e"}));
}

// Ties in time come as training takes them.
TEST(DateTime, ALogWithoutRowids_IsKept) {
  const LogFolder folder;
  const std::string path = folder.MakeDatabase(
      "log.db",
      "CREATE TABLE events(user TEXT, item TEXT, time INTEGER, PRIMARY KEY(user, time, item)) WITHOUT ROWID; "
      "INSERT INTO events VALUES('u','c',5),('u','b',5),('u','a',7),('u','d',3),('v','x',1)");
  EventLog log = *EventLog::Open(path);
  ASSERT_TRUE(log.Events("u").ok()) << log.Events("u").status().message();
  EXPECT_EQ(*log.History("u", 9), (std::vector<std::string>{"d", "b", "c", "a"}));
  EXPECT_EQ(*log.History("u", 2), (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ(log.Events("u")->size(), 4u);
  EXPECT_EQ(ReadFileAndTell(path), "u: d b c a; v: x");
  ASSERT_TRUE(log.Append({"u", "e", 9}).ok());
  EXPECT_EQ(*log.Erase("v"), 1u);
  EXPECT_EQ(*log.Prune({.newest_per_user = 1}), 4u);
  EXPECT_EQ(*log.History("u", 9), (std::vector<std::string>{"e"}));
}

}  // namespace
}  // namespace wisp::data::date_time_test
