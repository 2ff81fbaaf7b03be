// Records smaller than a user: sessions and days. The tests check the contents of a record, and that removing a unit
// removes exactly one record.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "runtime/data/readers.h"
#include "runtime/train/run/records.h"

namespace wisp::units_test {
namespace {

using data::ReadOptions;
using data::ReadResult;
using data::RecordUnit;
using data::Units;

constexpr int64_t kMorning = 1700000000;  // 2023-11-14, 22:13:20 UTC
constexpr int64_t kGap = 1800;
constexpr Units kSessions = {.unit = RecordUnit::kSession, .session_gap = kGap}, kDays = {.unit = RecordUnit::kDay};

struct Event {
  std::string user, item;
  int64_t time;
};

Result<ReadResult> Build(const std::vector<Event>& events, const ReadOptions& options) {
  data::SequenceBuilder builder("log", "line", options.private_run);
  uint64_t line = 0;
  for (const Event& e : events) WISP_RETURN_IF_ERROR(builder.Add(++line, e.user, e.item, e.time));
  return builder.Finish(options);
}

// Returns "anna: a b; anna: c": every record with its user.
std::string Told(const std::vector<Event>& events, const ReadOptions& options) {
  const auto read = Build(events, options);
  if (!read.ok()) return "error: " + read.status().message();
  std::string told;
  const data::Sequences& s = read->sequences;
  for (size_t u = 0; u < s.num_users(); ++u) {
    told += (u == 0 ? "" : "; ") + s.user_keys[u] + ":";
    for (int32_t item : s.User(u)) told += " " + s.item_keys[static_cast<size_t>(item)];
  }
  return told;
}

TEST(Units, Session_EndsAfterAPauseLongerThanTheGap) {
  const std::vector<Event> events = {{"anna", "c", kMorning + 2 * kGap + 1},
                                     {"anna", "a", kMorning},
                                     {"ben", "x", kMorning + 10},
                                     {"anna", "b", kMorning + kGap},
                                     {"ben", "y", kMorning + 5}};
  EXPECT_EQ(Told(events, {.units = kSessions}), "anna: a b; anna: c; ben: y x");
  EXPECT_EQ(Told(events, {}), "anna: a b c; ben: y x");
}

// A unit's name beside its user is the time of the first event for a session, and the number of the day for a day.
TEST(Units, HaveNamesOfTheirOwn) {
  const std::vector<Event> events = {
      {"anna", "b", kMorning + 3 * kGap}, {"anna", "a", kMorning}, {"ben", "x", kMorning + 10}};
  const auto begins = [&](const Units& units) { return Build(events, {.units = units})->sequences.unit_begins; };
  EXPECT_EQ(begins(kSessions), (std::vector<int64_t>{kMorning, kMorning + 3 * kGap, kMorning + 10}));
  EXPECT_EQ(begins(kDays), (std::vector<int64_t>{19675, 19675}));
  EXPECT_TRUE(begins({}).empty());
}

TEST(Units, Day_IsOfUtc) {
  const int64_t midnight = 19676 * int64_t{86400};
  const std::vector<Event> events = {{"anna", "a", midnight - 1},
                                     {"anna", "b", midnight},
                                     {"anna", "c", midnight + 86399},
                                     {"anna", "d", midnight + 86400}};
  EXPECT_EQ(Told(events, {.units = kDays}), "anna: a; anna: b c; anna: d");
}

TEST(Units, Times_AreReadInTheirUnit) {
  std::vector<Event> events = {{"anna", "a", kMorning * 1000},
                               {"anna", "b", (kMorning + kGap) * 1000},
                               {"anna", "c", (kMorning + 2 * kGap) * 1000 + 1}};
  Units units = kSessions;
  units.times_per_second = 1000;
  EXPECT_EQ(Told(events, {.units = units}), "anna: a b; anna: c");
  EXPECT_EQ(Told(events, {.units = {.unit = RecordUnit::kDay, .times_per_second = 1000}}), "anna: a b c");
  // Milliseconds read as seconds would make a day of 86 seconds, which protects less than is stated.
  EXPECT_TRUE(Told(events, {.units = kDays})
                  .starts_with("error: log: the time of an event is 1700000000000, which is not between 1970 and 2223 "
                               "with 1 to the second"));
  events[0].time = -1;
  EXPECT_TRUE(Told(events, {.units = units}).starts_with("error: log: the time of an event is -1,"));
}

TEST(Units, Times_AreUntilTheLatestSecond) {
  const int64_t latest = data::kLatestSecond * 1000 + 999;
  const Units units = {.unit = RecordUnit::kDay, .times_per_second = 1000};
  EXPECT_EQ(Told({{"anna", "a", latest}}, {.units = units}), "anna: a");
  EXPECT_TRUE(Told({{"anna", "a", latest + 1}}, {.units = units})
                  .starts_with("error: log: the time of an event is 8000000001000, which is not between"));
}

// A session contains all that the user did, also items that the model does not know: otherwise an event that nobody
// trains on could split a record in two.
TEST(Units, UnknownItems_AreDroppedOnceSessionsAreMade) {
  const std::vector<std::string> keys = {"a", "b"};
  const auto known = *data::ItemIndex::Make("model", keys);
  const std::vector<Event> events = {{"anna", "a", kMorning},
                                     {"anna", "other", kMorning + kGap},
                                     {"anna", "b", kMorning + 2 * kGap},
                                     {"anna", "other", kMorning + 9 * kGap}};
  EXPECT_EQ(Told(events, {.known_items = &known, .units = kSessions}), "anna: a b");
}

TEST(Units, LogsWithoutTimes_AreRefused) {
  const auto text = data::ReadText("log", "anna a\nanna b\n", data::Format::kUserItem, {.units = kSessions});
  EXPECT_EQ(text.status().code(), StatusCode::kInvalidData);
  EXPECT_NE(text.status().message().find("log: its events have no times, so they cannot be split by session"),
            std::string::npos)
      << text.status().message();
  EXPECT_FALSE(data::ReadText("log", "user,item,time\nanna,a,1\n", data::Format::kCsv,
                              {.time = data::TimeSource::kFileOrder, .units = kDays})
                   .ok());
  EXPECT_TRUE(data::ReadText("log", "user,item,time\nanna,a,1\n", data::Format::kCsv, {.units = kDays}).ok());
}

TEST(Units, MinimumCounts_AreRefused) {
  const std::vector<Event> events = {{"anna", "a", kMorning}, {"anna", "b", kMorning + 1}};
  EXPECT_TRUE(Told(events, {.min_user_events = 2, .units = kSessions})
                  .starts_with("error: log: with the unit session the minimum counts"));
  EXPECT_TRUE(Told(events, {.min_item_events = 2, .units = kDays})
                  .starts_with("error: log: with the unit day the minimum counts"));
}

TEST(Units, OutOfRange_AreRefused) {
  for (const Units units : {Units{.unit = RecordUnit::kSession}, Units{.unit = RecordUnit::kSession, .session_gap = -1},
                            Units{.unit = RecordUnit::kSession, .session_gap = data::kMaxSessionGap + 1},
                            Units{.unit = RecordUnit::kDay, .session_gap = 1}, Units{.session_gap = 1},
                            Units{.times_per_second = 0}, Units{.times_per_second = 1000000001}}) {
    EXPECT_EQ(data::CheckUnits(units).code(), StatusCode::kInvalidArgument);
  }
  using privacy::PrivacyUnit;
  EXPECT_EQ(MakeUnits({.unit = PrivacyUnit::kInteraction}).status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(MakeUnits({.unit = PrivacyUnit::kSession}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeUnits({.unit = PrivacyUnit::kSession, .session_gap = 60})->unit, RecordUnit::kSession);
  EXPECT_EQ(MakeUnits({.unit = PrivacyUnit::kDay})->unit, RecordUnit::kDay);
  EXPECT_EQ(MakeUnits({.unit = PrivacyUnit::kUser})->unit, RecordUnit::kUser);
}

TEST(Units, EmptyLog_IsAnErrorUnlessItMayBe) {
  EXPECT_TRUE(Told({}, {}).starts_with("error: "));
  EXPECT_FALSE(Build({}, {.units = kSessions, .private_run = true}).ok()) << "there is no item either";
  const std::vector<std::string> keys = {"a"};
  const auto known = *data::ItemIndex::Make("model", keys);
  const auto read = Build({}, {.known_items = &known, .units = kSessions, .private_run = true});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->sequences.num_users(), 0u);
  const auto none = Build({{"anna", "other", kMorning}}, {.known_items = &known, .private_run = true});
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none->sequences.num_users(), 0u);
  EXPECT_EQ(none->report.unknown_events, 1u);
}

TEST(Units, PrivateRun_SkipsInvalidTimes) {
  const std::vector<Event> events = {
      {"anna", "a", kMorning}, {"anna", "b", -5}, {"anna", "c", kMorning * 1000000}, {"anna", "d", kMorning + 1}};
  EXPECT_TRUE(Told(events, {.units = kSessions}).starts_with("error: ")) << Told(events, {.units = kSessions});
  const auto read = Build(events, {.units = kSessions, .private_run = true});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->report.bad_rows, 2u);
  EXPECT_EQ(read->sequences.num_users(), 1u);
  EXPECT_EQ(read->report.num_events, 2u);
  EXPECT_NE(read->report.first_bad_row.find("the time of an event is -5"), std::string::npos)
      << read->report.first_bad_row;
}

// If a log in milliseconds is read as one in seconds, nothing is left of it: a run would spend budget and learn
// nothing.
TEST(Units, PrivateRun_ALogWithoutATimeThatIsOneIsRefused) {
  const std::vector<std::string> keys = {"a"};
  const data::ItemIndex known = *data::ItemIndex::Make("m", keys);
  const ReadOptions options{.known_items = &known, .units = kSessions, .private_run = true};
  std::vector<Event> events;
  for (int i = 0; i < 20; ++i) events.push_back({"u" + std::to_string(i), "a", kMorning * 1000 + i});
  const auto refused = Build(events, options);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidData);
  EXPECT_NE(refused.status().message().find("the time of an event is"), std::string::npos)
      << refused.status().message();
  events.pop_back();
  EXPECT_TRUE(Build(events, options).ok()) << "too few to say anything";
  events.push_back({"anna", "a", kMorning});
  EXPECT_TRUE(Build(events, options).ok()) << "a clock's error";
}

// A random log: users with bursts of events, some of them of items that the model does not know. Every event has an
// item of its own, so that records show which events are in them.
struct RandomLog {
  explicit RandomLog(uint32_t seed) : random(seed) {
    for (int user = 0; user < 6; ++user) {
      int64_t time = kMorning + static_cast<int64_t>(random() % 100000);
      for (size_t n = random() % 14; n > 0; --n) {
        time += static_cast<int64_t>(random() % 3 == 0 ? random() % (3 * kGap) + (random() % 4 == 0 ? 80000 : 0)
                                                       : random() % 900);
        const std::string item = std::to_string(events.size());
        events.push_back({"u" + std::to_string(user), random() % 5 == 0 ? "other" + item : item, time});
      }
    }
    for (size_t i = 0; i < events.size(); ++i) keys.push_back(std::to_string(i));
    std::shuffle(events.begin(), events.end(), random);
  }
  std::mt19937 random;
  std::vector<Event> events;
  std::vector<std::string> keys;
};

// Finds the unit of an event in another way: by the earliest event that is connected to it.
std::string FindEventUnit(const std::vector<Event>& events, const Event& of, RecordUnit unit) {
  if (unit == RecordUnit::kDay) return of.user + " " + std::to_string(of.time / 86400);
  int64_t first = of.time;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Event& e : events) {
      if (e.user != of.user || e.time >= first || first - e.time > kGap) continue;
      first = e.time;
      moved = true;
    }
  }
  return of.user + " " + std::to_string(first);
}

// Returns the training records with their targets and inputs, as text.
std::multiset<std::string> Records(const std::vector<Event>& events, const Units& units, const data::ItemIndex& known) {
  const auto read = Build(events, {.known_items = &known, .units = units, .private_run = true});
  EXPECT_TRUE(read.ok()) << read.status().message();
  const RecordSet set = MakeRecords(read->sequences, 8, HoldOut::kTest);
  std::multiset<std::string> records;
  const auto add = [&](std::span<const int32_t> items, const std::string& rest) {
    std::string text;
    for (int32_t item : items) text += std::to_string(item) + " ";
    records.insert(text + rest);
  };
  for (const Record& r : set.records) add(r.inputs, "-> " + std::to_string(r.targets.back()));
  for (const RankingCase& c : set.test) add(c.history, "? " + std::to_string(c.target));
  return records;
}

TEST(Units, TakingOneAway_TakesOneRecordAwayAndLeavesTheOthers) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomLog log(seed);
    if (log.keys.empty()) continue;
    const auto known = *data::ItemIndex::Make("model", log.keys);
    for (const Units& units : {kSessions, kDays}) {
      std::map<std::string, std::vector<Event>> by_unit;
      for (const Event& e : log.events) by_unit[FindEventUnit(log.events, e, units.unit)].push_back(e);
      const auto all = Records(log.events, units, known);
      for (const auto& [name, taken] : by_unit) {
        std::vector<Event> left;
        std::set<std::string> own;
        for (const Event& e : taken) own.insert(e.item);
        for (const Event& e : log.events) {
          if (!own.contains(e.item)) left.push_back(e);
        }
        const auto without = Records(left, units, known);
        std::vector<std::string> gone, come;
        std::set_difference(all.begin(), all.end(), without.begin(), without.end(), std::back_inserter(gone));
        std::set_difference(without.begin(), without.end(), all.begin(), all.end(), std::back_inserter(come));
        EXPECT_TRUE(come.empty()) << name;
        // One record, and its test.
        EXPECT_LE(gone.size(), 2u) << name;
        EXPECT_EQ(gone.empty(), std::count_if(taken.begin(), taken.end(),
                                              [](const Event& e) { return !e.item.starts_with("other"); }) < 2)
            << name;
      }
    }
  }
}

TEST(Units, NoRecord_HoldsEventsOfTwo) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const RandomLog log(seed);
    if (log.keys.empty()) continue;
    for (const Units& units : {kSessions, kDays}) {
      const auto read = Build(log.events, {.units = units});
      ASSERT_TRUE(read.ok());
      std::map<std::string, const Event*> of_item;
      for (const Event& e : log.events) of_item[e.item] = &e;
      std::set<std::string> seen;
      for (size_t u = 0; u < read->sequences.num_users(); ++u) {
        std::set<std::string> names;
        for (int32_t item : read->sequences.User(u)) {
          names.insert(
              FindEventUnit(log.events, *of_item[read->sequences.item_keys[static_cast<size_t>(item)]], units.unit));
        }
        ASSERT_EQ(names.size(), 1u) << "seed " << seed;
        EXPECT_TRUE(seen.insert(*names.begin()).second) << "seed " << seed << ": a unit in two records";
      }
    }
  }
}

}  // namespace
}  // namespace wisp::units_test
