// Sessions that a private run has read stay what they are: whatever comes late, no two become one, and none of them
// changes by another's absence.
#include "runtime/data/sessions.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/data/event_log.h"
#include "runtime/data/readers.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::data {
namespace {

// No file grows while this is there, whoever writes.
class NothingIsWritten {
 public:
  NothingIsWritten() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {.rlim_cur = 0, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  NothingIsWritten(const NothingIsWritten&) = delete;
  NothingIsWritten& operator=(const NothingIsWritten&) = delete;
  ~NothingIsWritten() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  void (*handler_)(int);
};

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

constexpr int64_t kGap = 10;
using Log = std::vector<ArrivedEvent>;  // as the events arrived

// The session of each event, in the order in which they arrived, named by the arrival of its first event.
std::vector<uint32_t> Cut(const Log& log) {
  Log by_time = log;
  std::stable_sort(by_time.begin(), by_time.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  const std::vector<uint32_t> session_of = CutSessions(by_time, kGap);
  std::map<uint32_t, uint32_t> first;  // of each session
  for (size_t i = 0; i < by_time.size(); ++i) {
    const auto [found, added] = first.emplace(session_of[i], by_time[i].arrival);
    found->second = std::min(found->second, by_time[i].arrival);
  }
  std::map<uint32_t, uint32_t> name_of;  // by arrival
  for (size_t i = 0; i < by_time.size(); ++i) name_of[by_time[i].arrival] = first[session_of[i]];
  std::vector<uint32_t> names;
  for (const ArrivedEvent& e : log) names.push_back(name_of[e.arrival]);
  return names;
}

// Of several nights. Most events come in order; some are late, by up to the whole log.
Log RandomLog(std::mt19937& random) {
  Log log;
  int64_t now = 0;
  uint32_t reading = 0;
  for (uint32_t i = 0, size = 1 + random() % 60; i < size; ++i) {
    now += static_cast<int64_t>(random() % (3 * kGap / 2));
    const int64_t late = random() % 3 == 0 ? static_cast<int64_t>(random() % static_cast<uint32_t>(now + 1)) : 0;
    log.push_back({.time = now - late, .arrival = i, .reading = reading});
    if (random() % 8 == 0) ++reading;
  }
  return log;
}

// What was in a session at one reading is in the same one, alone or with more, at every later reading.
TEST(Sessions, LateEvents_joinNoTwoSessions) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  size_t static_cuts_differ = 0;
  for (int round = 0; round < 3000; ++round) {
    const Log log = RandomLog(random);
    const std::vector<uint32_t> all = Cut(log);
    for (uint32_t reading = 0; reading < log.back().reading; ++reading) {
      Log until = log;
      std::erase_if(until, [&](const ArrivedEvent& e) { return e.reading > reading; });
      ASSERT_EQ(Cut(until), std::vector<uint32_t>(all.begin(), all.begin() + static_cast<long>(until.size())));
    }
    Log unread = log;
    for (ArrivedEvent& e : unread) e.reading = 0;
    static_cuts_differ += Cut(unread) != all;
  }
  EXPECT_GT(static_cuts_differ, 300u);  // the logs do have events that would join sessions
}

// The log without one session has all others as they were: that is the neighbour that privacy is about.
TEST(Sessions, OneSessionTakenAway_changesNoOther) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    const Log log = RandomLog(random);
    const std::vector<uint32_t> all = Cut(log);
    for (const uint32_t away : std::set<uint32_t>(all.begin(), all.end())) {
      Log others;
      std::vector<uint32_t> expected;
      for (size_t i = 0; i < log.size(); ++i) {
        if (all[i] == away) continue;
        others.push_back(log[i]);
        expected.push_back(all[i]);
      }
      if (others.empty()) continue;
      ASSERT_EQ(Cut(others), expected) << "round " << round << ", without " << away;
    }
  }
}

// In a log that was never read before a session has no pause, and each pause ends one.
TEST(Sessions, NeverReadBefore_areCutAtPauses) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    Log log = RandomLog(random);
    for (ArrivedEvent& e : log) e.reading = 0;
    std::stable_sort(log.begin(), log.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
    const std::vector<uint32_t> session_of = CutSessions(log, kGap);
    for (size_t i = 1; i < log.size(); ++i)
      ASSERT_EQ(session_of[i] == session_of[i - 1], log[i].time - log[i - 1].time <= kGap);
  }
}

class MarkedLog : public ::testing::Test {
 protected:
  std::string Path() const { return folder_ / "log.db"; }
  EventLog Opened() const { return *EventLog::Open(Path()); }

  // The beginnings of anna's sessions, with their items, as a night reads them.
  std::map<int64_t, std::string> Night() const {
    const ItemIndex index = *ItemIndex::Make("m", kItems);
    const auto read = ReadSequences(
        Path(), Format::kSqlite,
        {.known_items = &index, .units = {.unit = RecordUnit::kSession, .session_gap = kGap}, .private_run = true});
    EXPECT_TRUE(read.ok()) << read.status().message();
    std::map<int64_t, std::string> sessions;
    if (!read.ok()) return sessions;
    for (size_t u = 0; u < read->sequences.num_users(); ++u) {
      std::string& items = sessions[read->sequences.unit_begins[u]];
      EXPECT_TRUE(items.empty()) << "two sessions have one name";
      for (const int32_t item : read->sequences.User(u)) items += kItems[static_cast<size_t>(item)];
    }
    return sessions;
  }

  int64_t NumMarks() const {
    sqlite3* database = nullptr;
    sqlite3_stmt* statement = nullptr;
    int64_t marks = -1;
    if (sqlite3_open(Path().c_str(), &database) == SQLITE_OK &&
        sqlite3_prepare_v2(database, "SELECT count(*) FROM wisp_reads", -1, &statement, nullptr) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
      marks = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return marks;
  }

  const std::vector<std::string> kItems = {"a", "b", "c", "d", "e", "f", "g", "h"};
  test::TemporaryFolder folder_;
};

using Told = std::map<int64_t, std::string>;

TEST_F(MarkedLog, LateEvent_joinsOneSessionThatWasReadBefore) {
  EventLog log = Opened();
  ASSERT_TRUE(log.AppendAll({{{"anna", "a", 100}, {"anna", "b", 115}}}).ok());
  EXPECT_EQ(Night(), (Told{{100, "a"}, {115, "b"}}));
  ASSERT_TRUE(log.AppendAll({{{"anna", "c", 108}, {"anna", "d", 120}, {"anna", "e", 92}}}).ok());
  EXPECT_EQ(Night(), (Told{{100, "eac"}, {115, "bd"}}));
  EXPECT_EQ(Night(), (Told{{100, "eac"}, {115, "bd"}}));
  EXPECT_EQ(NumMarks(), 2);
}

TEST_F(MarkedLog, EventsOfOneNight_areCutTogetherInWhateverOrderTheyCome) {
  EventLog log = Opened();
  ASSERT_TRUE(log.AppendAll({{{"anna", "a", 100}, {"anna", "b", 115}, {"anna", "c", 108}}}).ok());
  EXPECT_EQ(Night(), (Told{{100, "acb"}}));
}

// The numbers of rows that are gone are given anew; what has them came late all the same.
TEST_F(MarkedLog, ErasedRows_leaveNoMarkThatCoversLaterOnes) {
  EventLog log = Opened();
  ASSERT_TRUE(log.AppendAll({{{"anna", "a", 100}, {"anna", "b", 115}, {"bert", "a", 1}, {"bert", "b", 2}}}).ok());
  EXPECT_EQ(Night(), (Told{{100, "a"}, {115, "b"}, {1, "ab"}}));
  ASSERT_EQ(*log.Erase("bert"), 2u);
  ASSERT_TRUE(log.Append({"anna", "c", 108}).ok());
  EXPECT_EQ(Night(), (Told{{100, "ac"}, {115, "b"}}));
  // Nor do marks outlive what they mark.
  ASSERT_TRUE(log.Prune({.before = 1000000}).ok());
  EXPECT_EQ(NumMarks(), 0);
  ASSERT_TRUE(log.AppendAll({{{"anna", "d", 100}, {"anna", "e", 115}}}).ok());
  EXPECT_EQ(Night(), (Told{{100, "d"}, {115, "e"}}));
  EXPECT_EQ(NumMarks(), 1);
}

TEST_F(MarkedLog, ManyNights_leaveNoMoreMarksThanNews) {
  EventLog log = Opened();
  for (int night = 0; night < 20; ++night) {
    if (night % 4 == 0) {
      ASSERT_TRUE(log.Append({"anna", "a", 1000 * night}).ok());
    }
    Night();
  }
  EXPECT_EQ(NumMarks(), 5);
  ASSERT_TRUE(log.Prune({.before = 15000}).ok());
  EXPECT_EQ(NumMarks(), 1);
}

// Where nothing came too: else a refusal would tell that an event did.
TEST_F(MarkedLog, ALogThatCannotBeWritten_isRefusedWithAndWithoutNews) {
  const ItemIndex index = *ItemIndex::Make("m", kItems);
  const auto read_without_writing = [&] {
    const NothingIsWritten nothing_is_written;
    return ReadSequences(Path(), Format::kSqlite,
                         {.known_items = &index,
                          .units = {.unit = RecordUnit::kSession, .session_gap = kGap},
                          .private_run = true})
        .status();
  };
  ASSERT_TRUE(Opened().Append({"anna", "a", 100}).ok());
  EXPECT_EQ(Night(), (Told{{100, "a"}}));
  const Status refused = read_without_writing();
  EXPECT_EQ(refused.code(), StatusCode::kIo);
  EXPECT_NE(refused.message().find("it cannot be noted in the log what was read"), std::string::npos);
  EXPECT_EQ(refused.message().find("not an error"), std::string::npos) << refused.message();
  ASSERT_TRUE(Opened().Append({"anna", "b", 120}).ok());
  EXPECT_EQ(read_without_writing().message(), refused.message());
  EXPECT_EQ(NumMarks(), 1);
}

// What is tried is taken back.
TEST_F(MarkedLog, ANightWithoutNews_leavesTheLogAsItWas) {
  EventLog log = Opened();
  Night();
  EXPECT_EQ(NumMarks(), 0);
  ASSERT_TRUE(log.Append({"anna", "a", 100}).ok());
  Night();
  const std::string before = BytesOf(Path());
  Night();
  EXPECT_EQ(BytesOf(Path()), before);
}

// The late event between two sessions is the first one's, so the other's absence takes nothing of that one away.
TEST_F(MarkedLog, PruningForgetsSessionsAsTheyWereRead) {
  for (const bool with_other : {true, false}) {
    EventLog log = Opened();
    ASSERT_TRUE(log.AppendAll({{{"anna", "a", 100}, {"anna", "b", 101}}}).ok());
    if (with_other) {
      ASSERT_TRUE(log.AppendAll({{{"anna", "c", 115}, {"anna", "d", 124}}}).ok());
    }
    Night();
    ASSERT_TRUE(log.Append({"anna", "e", 108}).ok());
    EXPECT_EQ(*log.Prune({.before = 130, .units = {.unit = RecordUnit::kSession, .session_gap = kGap}}), 3u);
    EXPECT_EQ(Night(), with_other ? (Told{{115, "cd"}}) : Told{});
    ASSERT_TRUE(log.Prune({.before = 1000}).ok());
  }
}

TEST_F(MarkedLog, PruningIsAReading) {
  EventLog log = Opened();
  ASSERT_TRUE(log.AppendAll({{{"anna", "a", 100}, {"anna", "b", 115}}}).ok());
  EXPECT_EQ(*log.Prune({.before = 50, .units = {.unit = RecordUnit::kSession, .session_gap = kGap}}), 0u);
  ASSERT_TRUE(log.Append({"anna", "c", 108}).ok());
  EXPECT_EQ(Night(), (Told{{100, "ac"}, {115, "b"}}));
}

// What stays of a session does not depend on whether another one was there, whatever came late.
TEST_F(MarkedLog, PruningWithoutOneSession_changesNoOther) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  size_t pruned = 0;
  for (int round = 0; round < 25; ++round) {
    const Log log = RandomLog(random);
    const std::vector<uint32_t> session_of = Cut(log);
    const uint32_t away = session_of[random() % session_of.size()];
    const int64_t before = log[random() % log.size()].time;
    std::vector<std::string> left[2];
    for (const bool without : {false, true}) {
      EventLog kept = Opened();
      std::vector<Event> news;
      for (size_t i = 0; i < log.size(); ++i) {
        if (!without || session_of[i] != away) news.push_back({"anna", std::to_string(i), log[i].time});
        if (i + 1 < log.size() && log[i + 1].reading == log[i].reading) continue;
        ASSERT_TRUE(kept.AppendAll(news).ok());
        news.clear();
        if (i + 1 < log.size()) Night();
      }
      pruned += *kept.Prune({.before = before, .units = {.unit = RecordUnit::kSession, .session_gap = kGap}});
      for (const Event& e : *kept.Events("anna")) {
        if (session_of[std::stoul(e.item)] != away) left[without].push_back(e.item);
      }
      ASSERT_TRUE(kept.Prune({.before = 1'000'000}).ok());
    }
    ASSERT_EQ(left[0], left[1]) << "round " << round << ", without " << away;
  }
  EXPECT_GT(pruned, 40u);
}

TEST_F(MarkedLog, ATableOfThatNameThatIsAnother_isRefused) {
  ASSERT_TRUE(Opened().Append({"anna", "a", 1}).ok());
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(Path().c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "CREATE TABLE wisp_reads(log, last)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const ItemIndex index = *ItemIndex::Make("m", kItems);
  const auto read = ReadSequences(
      Path(), Format::kSqlite,
      {.known_items = &index, .units = {.unit = RecordUnit::kSession, .session_gap = kGap}, .private_run = true});
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidData);
  EXPECT_NE(read.status().message().find("'wisp_reads'"), std::string::npos) << read.status().message();
}

}  // namespace
}  // namespace wisp::data
