// Building sequences from events: numbering, order, minimum counts, known items, the report; and the split.
#include "runtime/data/sequences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "runtime/data/readers.h"
#include "runtime/data/split.h"

namespace wisp::data::sequences_test {
namespace {

using Keys = std::vector<std::string>;

struct Event {
  std::string user, item;
  int64_t time;
};

Result<ReadResult> Build(const std::vector<Event>& events, const ReadOptions& options = {}) {
  SequenceBuilder builder("log");
  uint64_t line = 0;
  for (const Event& e : events) WISP_RETURN_IF_ERROR(builder.Add(++line, e.user, e.item, e.time));
  return builder.Finish(options);
}

Keys GetKeys(const Sequences& s, size_t user) {
  Keys keys;
  for (int32_t item : s.User(user)) keys.push_back(s.item_keys[static_cast<size_t>(item)]);
  return keys;
}

std::map<std::string, Keys> ByUser(const Sequences& s) {
  std::map<std::string, Keys> by_user;
  for (size_t u = 0; u < s.num_users(); ++u) by_user[s.user_keys[u]] = GetKeys(s, u);
  return by_user;
}

TEST(Moment, DividesEachRecordByItsOwnTimesAlone) {
  const std::vector<Event> events = {{"a", "x", 5}, {"b", "y", 30}, {"a", "z", 10}, {"a", "w", 11}, {"c", "x", 40}};
  const auto read = Build(events, {.keep_times = true});
  ASSERT_TRUE(read.ok());
  const Sequences& s = read->sequences;
  ASSERT_EQ(s.times, (std::vector<int64_t>{5, 10, 11, 30, 40}));
  const Sequences until = EventsUntil(s, {.second = 10});
  EXPECT_EQ(until.num_users(), 3u) << "also those without an event";
  EXPECT_EQ(until.items.size(), 2u);
  EXPECT_EQ(ByUser(until).at("a"), (Keys{"x", "z"}));
  EXPECT_EQ(until.times, (std::vector<int64_t>{5, 10}));
  // One more record does not change the others.
  std::vector<Event> more = events;
  more.push_back({"d", "x", 1000});
  std::map<std::string, Keys> with = ByUser(EventsUntil(Build(more, {.keep_times = true})->sequences, {.second = 10}));
  with.erase("d");
  EXPECT_EQ(with, ByUser(until));
  // With parts of a second, all of that second is before the moment. A value that is not a time in these units comes
  // last.
  const Moment moment{.second = 1'700'000'000, .times_per_second = 1000};
  EXPECT_FALSE(moment.IsBefore(1'700'000'000'999));
  EXPECT_TRUE(moment.IsBefore(1'700'000'001'000));
  EXPECT_FALSE((Moment{.second = 1'700'000'000}.IsBefore(1'700'000'001'000))) << "milliseconds, taken for seconds";
  EXPECT_FALSE((Moment{.second = kLatestSecond, .times_per_second = 1'000'000'000}.IsBefore(INT64_MAX)));
  // Without times all events train, and no event is later.
  EXPECT_TRUE(Build(events)->sequences.times.empty());
  EXPECT_EQ(EventsUntil(Build(events)->sequences, {.second = 10}).items.size(), events.size());
  EXPECT_TRUE(Build(events, {.time = TimeSource::kFileOrder, .keep_times = true})->sequences.times.empty());
  EXPECT_EQ(Build(events, {.time = TimeSource::kFileOrder, .needs_times = true}).status().code(),
            StatusCode::kInvalidData);
}

TEST(Numbering, WholeNumbers_AscendAsNumbers) {
  const auto read = Build({{"u", "100", 1}, {"u", "9", 2}, {"u", "-3", 3}, {"u", "09", 4}, {"u", "10", 5}});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->sequences.item_keys, (Keys{"-3", "09", "9", "10", "100"}));
  EXPECT_EQ(read->sequences.items, (std::vector<int32_t>{4, 2, 0, 1, 3}));
}

TEST(Numbering, OneKeyThatIsNoNumberOrTooLarge_AscendAsBytes) {
  EXPECT_EQ(Build({{"u", "100", 1}, {"u", "9", 2}, {"u", "x", 3}})->sequences.item_keys, (Keys{"100", "9", "x"}));
  EXPECT_EQ(Build({{"u", "100", 1}, {"u", "9", 2}, {"u", "9223372036854775808", 3}})->sequences.item_keys,
            (Keys{"100", "9", "9223372036854775808"}));
}

TEST(Numbering, OrderOfTheFile_ChangesNothing) {
  std::vector<Event> events;
  for (int i = 0; i < 200; ++i) events.push_back({"u" + std::to_string(i % 7), "i" + std::to_string(i % 31), i});
  const auto first = Build(events);
  ASSERT_TRUE(first.ok());
  constexpr uint32_t kSeed = 99;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(events.begin(), events.end(), random);
    const auto again = Build(events);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->sequences.item_keys, first->sequences.item_keys);
    EXPECT_EQ(ByUser(again->sequences), ByUser(first->sequences));
  }
}

TEST(Order, UsersByFirstEvent_EventsByTime_TiesAsInTheFile) {
  const auto read = Build({{"b", "x", 5}, {"a", "p", 2}, {"b", "y", 5}, {"b", "z", 4}, {"a", "q", 1}, {"b", "w", 5}});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->sequences.user_keys, (Keys{"b", "a"}));
  EXPECT_EQ(GetKeys(read->sequences, 0), (Keys{"z", "x", "y", "w"}));
  EXPECT_EQ(GetKeys(read->sequences, 1), (Keys{"q", "p"}));
  EXPECT_EQ(read->report.ties, 2u);
}

TEST(Report, RepeatsAndTies_AreOfOneUser) {
  // An item that another user has too is not a repeat, and the time of another user is not a tie.
  const auto read = Build({{"a", "x", 1}, {"b", "x", 3}, {"a", "y", 2}, {"a", "x", 3}, {"a", "x", 3}});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->report.repeats, 2u);
  EXPECT_EQ(read->report.ties, 1u);
  EXPECT_EQ(read->report.num_read, 5u);
}

TEST(MinimumCounts, DropAgainAndAgain) {
  // z has one event, so it goes; then c has one and goes; then y has one and goes. Only a and b with x are left.
  const std::vector<Event> events = {{"a", "x", 1}, {"a", "w", 2}, {"b", "x", 3}, {"b", "w", 4},
                                     {"b", "y", 5}, {"c", "y", 6}, {"c", "z", 7}};
  const auto read = Build(events, {.min_user_events = 2, .min_item_events = 2});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->sequences.user_keys, (Keys{"a", "b"}));
  EXPECT_EQ(read->sequences.item_keys, (Keys{"w", "x"}));
  EXPECT_EQ(read->report.dropped_events, 3u);
  EXPECT_EQ(read->report.dropped_users, 1u);
  EXPECT_EQ(read->report.dropped_items, 2u);
  EXPECT_EQ(read->report.num_events, 4u);
}

TEST(MinimumCounts, NothingLeft_IsAnError) {
  const auto read = Build({{"a", "x", 1}, {"b", "x", 3}}, {.min_user_events = 2});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().message(),
            "log: of 2 events none is left: 0 of items that the model does not know, 2 below the minimum counts "
            "(2 per user, 1 per item)");
}

// Compares with the definition: drop and count again until nothing changes.
TEST(MinimumCounts, RandomGraphs_EqualTheDefinition) {
  constexpr uint32_t kSeed = 5;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    std::vector<Event> events;
    const uint32_t n = 1 + random() % 60;
    for (uint32_t i = 0; i < n; ++i) {
      events.push_back({"u" + std::to_string(random() % 12), "i" + std::to_string(random() % 15), i});
    }
    const ReadOptions options{.min_user_events = 1 + static_cast<uint32_t>(random() % 4),
                              .min_item_events = 1 + static_cast<uint32_t>(random() % 4)};
    std::vector<Event> left = events;
    for (size_t before = n + 1; before != left.size();) {
      before = left.size();
      std::map<std::string, uint32_t> count;
      for (const Event& e : left) ++count[e.user], ++count[e.item];
      std::erase_if(left, [&](const Event& e) {
        return count[e.user] < options.min_user_events || count[e.item] < options.min_item_events;
      });
    }
    const auto read = Build(events, options);
    ASSERT_EQ(read.ok(), !left.empty());
    if (left.empty()) continue;
    const auto want = Build(left);
    ASSERT_TRUE(want.ok());
    EXPECT_EQ(ByUser(read->sequences), ByUser(want->sequences));
    EXPECT_EQ(read->report.dropped_events, n - left.size());
  }
}

TEST(MinimumCounts, LongChain_IsLinear) {
  // u0-i0-u1-i1-...: each round of the definition removes one event from each end, 150000 rounds for 300000 events.
  std::vector<Event> events;
  for (int i = 0; i < 150000; ++i) {
    events.push_back({"u" + std::to_string(i), "i" + std::to_string(i), 1});
    events.push_back({"u" + std::to_string(i + 1), "i" + std::to_string(i), 2});
  }
  EXPECT_FALSE(Build(events, {.min_user_events = 2, .min_item_events = 2}).ok());
}

TEST(KnownItems, NumbersAreTheModels) {
  const auto index = ItemIndex::Make("m.wisp", Keys{"soup", "cake", "tea"});
  ASSERT_TRUE(index.ok());
  const auto read = Build({{"a", "tea", 1}, {"a", "rock", 2}, {"a", "soup", 3}, {"b", "rock", 4}, {"b", "stone", 5}},
                          {.known_items = &*index});
  ASSERT_TRUE(read.ok());
  // all items of the model, also those without an event
  EXPECT_EQ(read->sequences.item_keys, (Keys{"soup", "cake", "tea"}));
  EXPECT_EQ(read->sequences.items, (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(read->sequences.user_keys, (Keys{"a"}));
  EXPECT_EQ(read->report.num_items, 3u);
  EXPECT_EQ(read->report.unknown_events, 3u);
  EXPECT_EQ(read->report.unknown_items, 2u);
  EXPECT_EQ(read->report.first_unknown_item, "rock");
}

TEST(KnownItems, UnknownGoBeforeTheMinimumCounts) {
  const auto index = ItemIndex::Make("m.wisp", Keys{"tea", "cake"});
  const auto read = Build({{"a", "tea", 1}, {"a", "rock", 2}, {"b", "tea", 3}, {"b", "cake", 4}},
                          {.min_user_events = 2, .known_items = &*index});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->sequences.user_keys, (Keys{"b"}));
  EXPECT_EQ(read->report.dropped_events, 1u);
}

TEST(KnownItems, Refused_NamesTheFirst) {
  const auto index = ItemIndex::Make("m.wisp", Keys{"tea", "cake"});
  const ReadOptions options{.known_items = &*index, .unknown_items = UnknownItems::kRefuse};
  EXPECT_TRUE(Build({{"a", "cake", 1}}, options).ok());
  const auto read = Build({{"a", "tea", 1}, {"a", "rock", 2}}, options);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidData);
  EXPECT_EQ(read.status().message(), "log: the item 'rock' is not one of the 2 items of the model");
}

TEST(KnownItems, NoKnownItem_IsAnError) {
  const auto index = ItemIndex::Make("m.wisp", Keys{"tea"});
  EXPECT_EQ(Build({{"a", "rock", 1}}, {.known_items = &*index}).status().message(),
            "log: of 1 event none is left: 1 of items that the model does not know, 0 below the minimum counts "
            "(1 per user, 1 per item)");
}

TEST(ItemIndex, EmptyOrDoubleKeys_AreRefused) {
  EXPECT_EQ(ItemIndex::Make("m.wisp", {}).status().message(), "m.wisp: it has no item");
  EXPECT_EQ(ItemIndex::Make("m.wisp", Keys{"tea", "cake", "tea"}).status().message(),
            "m.wisp: items 0 and 2 have the same key 'tea'");
}

TEST(KeyTable, ManyKeys_AreFoundAndOnlyThose) {
  KeyTable table;
  EXPECT_EQ(table.Find("0"), KeyTable::kNone);
  for (uint32_t i = 0; i < 5000; ++i) {
    const KeyTable::Added added = table.Add(std::to_string(i));
    ASSERT_TRUE(added.added && added.id == i);
  }
  for (uint32_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(table.Find(std::to_string(i)), i);
    const KeyTable::Added added = table.Add(std::to_string(i));
    ASSERT_TRUE(!added.added && added.id == i);
  }
  for (uint32_t i = 5000; i < 10000; ++i) ASSERT_EQ(table.Find(std::to_string(i)), KeyTable::kNone);
}

TEST(Warnings, OneSentenceForEachThing) {
  EXPECT_TRUE(Warnings(Build({{"a", "x", 1}, {"a", "y", 2}})->report).empty());
  const ReadReport report{.dropped_events = 1,
                          .dropped_users = 2,
                          .dropped_items = 1,
                          .unknown_events = 3,
                          .unknown_items = 1,
                          .first_unknown_item = "rock\x1b",
                          .ties = 4,
                          .repeats = 5};
  EXPECT_EQ(Warnings(report),
            (Keys{"3 events of 1 item that the model does not know left out, the first is 'rock?'",
                  "1 event left out by the minimum counts, with them 2 users and 1 item",
                  "4 events at the same time as the event of the same user before: kept in the order of the file"}));
}

// Makes a user for each length from 1 to 5: the items of user n are n0, n1, ...
Sequences Lengths() {
  std::vector<Event> events;
  for (int n = 1; n <= 5; ++n) {
    for (int i = 0; i < n; ++i) events.push_back({std::to_string(n), std::to_string(n * 10 + i), i});
  }
  return Build(events)->sequences;
}

std::string Text(std::span<const int32_t> items) {
  std::string text;
  for (int32_t item : items) text += (text.empty() ? "" : " ") + std::to_string(item);
  return text;
}

TEST(Split, Nothing_TrainsOnEverything) {
  const Sequences s = Lengths();  // items 0 | 1 2 | 3 4 5 | 6 7 8 9 | 10 11 12 13 14
  const Split split = MakeSplit(s, HoldOut::kNothing);
  ASSERT_EQ(split.train.size(), 5u);
  for (size_t u = 0; u < 5; ++u) EXPECT_EQ(Text(split.train[u]), Text(s.User(u)));
  EXPECT_TRUE(split.test.empty() && split.validation.empty());
  EXPECT_EQ(split.not_held_out, 0u);
  EXPECT_EQ(split.untrainable, 1u);
}

TEST(Split, Test_GivesUpTheLast) {
  const Sequences s = Lengths();
  const Split split = MakeSplit(s, HoldOut::kTest);
  EXPECT_EQ(Text(split.train[0]), "0");
  EXPECT_EQ(Text(split.train[1]), "1 2");  // too short to give up an event
  EXPECT_EQ(Text(split.train[2]), "3 4");
  EXPECT_EQ(Text(split.train[4]), "10 11 12 13");
  ASSERT_EQ(split.test.size(), 3u);
  EXPECT_EQ(split.test[0].user, 2u);
  EXPECT_EQ(Text(split.test[0].history), "3 4");
  EXPECT_EQ(split.test[0].item, 5);
  EXPECT_TRUE(split.validation.empty());
  EXPECT_EQ(split.not_held_out, 2u);
  EXPECT_EQ(split.untrainable, 1u);
}

TEST(Split, ValidationAndTest_NothingLeaksIntoTraining) {
  const Sequences s = Lengths();
  const Split split = MakeSplit(s, HoldOut::kValidationAndTest);
  EXPECT_EQ(Text(split.train[2]), "3 4 5");
  EXPECT_EQ(Text(split.train[3]), "6 7");
  ASSERT_EQ(split.test.size(), 2u);
  ASSERT_EQ(split.validation.size(), 2u);
  EXPECT_EQ(split.validation[0].user, 3u);
  EXPECT_EQ(Text(split.validation[0].history), "6 7");
  EXPECT_EQ(split.validation[0].item, 8);
  EXPECT_EQ(Text(split.test[0].history), "6 7 8");
  EXPECT_EQ(split.test[0].item, 9);
  EXPECT_EQ(split.not_held_out, 3u);
}

}  // namespace
}  // namespace wisp::data::sequences_test
