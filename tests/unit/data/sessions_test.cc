// Sessions that a private run has read stay the same. Late events never join two sessions, and the absence of one
// session changes no other.
#include "runtime/data/sessions.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/data/event_log.h"
#include "runtime/data/readers.h"
#include "runtime/data/session_table.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::data::sessions_test {
namespace {

// While this object lives, no file can grow.
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

std::string GetBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

constexpr int64_t kGap = 10;
struct Arrived {
  int64_t time = 0;
  uint32_t reading = 0;  // the first reading that found the event
};
using Log = std::vector<Arrived>;  // in the order of arrival

// Returns the session of each event after all readings, in the order of arrival.
std::vector<int64_t> Cut(const Log& log) {
  std::map<int64_t, int64_t> session_of;  // by time, as a log remembers it
  uint32_t last = 0;
  for (const Arrived& e : log) last = std::max(last, e.reading);
  for (uint32_t reading = 0; reading <= last; ++reading) {
    std::vector<int64_t> times;
    for (const Arrived& e : log) {
      if (e.reading <= reading) times.push_back(e.time);
    }
    std::sort(times.begin(), times.end());
    SessionMemory memory;
    for (const auto& [time, session] : session_of) memory.Add("anna", {.time = time, .session = session});
    const std::vector<int64_t> cut = memory.Cut("anna", times, kGap);
    for (size_t i = 0; i < times.size(); ++i) session_of[times[i]] = cut[i];
  }
  std::vector<int64_t> names;
  for (const Arrived& e : log) names.push_back(session_of[e.time]);
  return names;
}

// Makes a log over several training sessions. Most events come in order; some are late, by up to the length of the
// whole log.
Log RandomLog(std::mt19937& random) {
  Log log;
  int64_t now = 0;
  uint32_t reading = 0;
  for (uint32_t i = 0, size = 1 + random() % 60; i < size; ++i) {
    now += static_cast<int64_t>(random() % (3 * kGap / 2));
    const int64_t late = random() % 3 == 0 ? static_cast<int64_t>(random() % static_cast<uint32_t>(now + 1)) : 0;
    log.push_back({.time = now - late, .reading = reading});
    if (random() % 8 == 0) ++reading;
  }
  return log;
}

// Events in one session at one reading are in the same session, alone or with more, at every later reading.
TEST(Sessions, LateEvents_joinNoTwoSessions) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  size_t static_cuts_differ = 0;
  for (int round = 0; round < 3000; ++round) {
    const Log log = RandomLog(random);
    const std::vector<int64_t> all = Cut(log);
    for (uint32_t reading = 0; reading < log.back().reading; ++reading) {
      Log until = log;
      std::erase_if(until, [&](const Arrived& e) { return e.reading > reading; });
      ASSERT_EQ(Cut(until), std::vector<int64_t>(all.begin(), all.begin() + static_cast<long>(until.size())));
    }
    Log unread = log;
    for (Arrived& e : unread) e.reading = 0;
    static_cuts_differ += Cut(unread) != all;
  }
  EXPECT_GT(static_cuts_differ, 300u);  // the logs do have events that would join sessions
}

// A log without one session has all other sessions unchanged. This is the neighbour that privacy is defined by.
TEST(Sessions, OneSessionTakenAway_changesNoOther) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    const Log log = RandomLog(random);
    const std::vector<int64_t> all = Cut(log);
    for (const int64_t away : std::set<int64_t>(all.begin(), all.end())) {
      Log others;
      std::vector<int64_t> expected;
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

// In a log that was never read before, every pause ends a session, and no session contains a pause.
TEST(Sessions, NeverReadBefore_areCutAtPauses) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<int64_t> times;
    for (const Arrived& e : RandomLog(random)) times.push_back(e.time);
    std::sort(times.begin(), times.end());
    const std::vector<int64_t> session_of = CutSessions(times, {}, kGap);
    EXPECT_EQ(session_of[0], times[0]);
    for (size_t i = 1; i < times.size(); ++i)
      ASSERT_EQ(session_of[i], times[i] - times[i - 1] <= kGap ? session_of[i - 1] : times[i]);
  }
}

class RememberedLog : public ::testing::Test {
 protected:
  std::string Path() const { return folder_ / "log.db"; }
  EventLog Opened() const { return *EventLog::Open(Path()); }

  static constexpr Units kUnits = {.unit = RecordUnit::kSession, .session_gap = kGap};
  Result<ReadResult> Read(ReadOptions options = {.units = kUnits}) const {
    options.known_items = &index_;
    options.private_run = true;
    return ReadSequences(Path(), Format::kSqlite, options);
  }

  // Returns the names of anna's sessions with their items, as a training session reads them.
  std::map<int64_t, std::string> PlannedRun(const ReadOptions& options = {.units = kUnits}) const {
    const auto read = Read(options);
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

  void Execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(Path().c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  // Returns how many times of users the log remembers; -1 if it has no table for them.
  int64_t NumRemembered() const {
    sqlite3* database = nullptr;
    sqlite3_stmt* statement = nullptr;
    int64_t times = -1;
    if (sqlite3_open(Path().c_str(), &database) == SQLITE_OK &&
        sqlite3_prepare_v2(database, "SELECT count(*) FROM wisp_sessions", -1, &statement, nullptr) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
      times = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return times;
  }

  const std::vector<std::string> kItems = {"a", "b", "c", "d", "e", "f", "g", "h"};
  const ItemIndex index_ = *ItemIndex::Make("m", kItems);
  test::TemporaryFolder folder_;
};

using Told = std::map<int64_t, std::string>;

TEST_F(RememberedLog, LateEvent_joinsOneSessionThatWasReadBefore) {
  EventLog log = Opened();
  ASSERT_TRUE(log.AppendAll({{{"anna", "a", 100}, {"anna", "b", 115}}}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "a"}, {115, "b"}}));
  ASSERT_TRUE(log.AppendAll({{{"anna", "c", 108}, {"anna", "d", 120}, {"anna", "e", 92}}}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "eac"}, {115, "bd"}}));
  EXPECT_EQ(PlannedRun(), (Told{{100, "eac"}, {115, "bd"}}));
  EXPECT_EQ(NumRemembered(), 5);
}

TEST_F(RememberedLog, EventsOfOnePlannedRun_areCutTogetherInWhateverOrderTheyCome) {
  EventLog log = Opened();
  ASSERT_TRUE(log.AppendAll({{{"anna", "a", 100}, {"anna", "b", 115}, {"anna", "c", 108}}}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "acb"}}));
}

// Only the remembered times tell what came when: not the row numbers, which may change, and not the order of the rows.
TEST_F(RememberedLog, RowsInAnotherOrder_areInTheSessionsTheyWereIn) {
  ASSERT_TRUE(Opened().AppendAll({{{"anna", "a", 100}, {"anna", "b", 115}}}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "a"}, {115, "b"}}));
  ASSERT_TRUE(Opened().Append({"anna", "c", 108}).ok());
  Execute(
      "CREATE TABLE other AS SELECT * FROM events ORDER BY item DESC; DELETE FROM events;"
      "INSERT INTO events SELECT * FROM other; DROP TABLE other; VACUUM");
  EXPECT_EQ(PlannedRun(), (Told{{100, "ac"}, {115, "b"}}));
  EXPECT_EQ(PlannedRun(), (Told{{100, "ac"}, {115, "b"}}));
}

TEST_F(RememberedLog, TablesOfApps_areRememberedWhateverTheirRowsAreNumbered) {
  for (const std::string columns : {"rowid TEXT, user TEXT, item TEXT, time INTEGER",
                                    "id INTEGER PRIMARY KEY, user TEXT, item TEXT, time INTEGER"}) {
    Execute("DROP TABLE IF EXISTS mine; CREATE TABLE mine(" + columns + ")");
    const ReadOptions options{.units = kUnits, .table = "mine"};
    Execute("INSERT INTO mine VALUES(900, 'anna', 'a', 100), (800, 'anna', 'b', 115)");
    EXPECT_EQ(PlannedRun(options), (Told{{100, "a"}, {115, "b"}}));
    Execute("INSERT INTO mine VALUES(1, 'anna', 'c', 108)");
    EXPECT_EQ(PlannedRun(options), (Told{{100, "ac"}, {115, "b"}}));
    Execute("DELETE FROM mine");
    EXPECT_EQ(PlannedRun(options), Told{});
  }
  Execute("CREATE TABLE keyed(user TEXT, item TEXT, time INTEGER, PRIMARY KEY(user, time, item)) WITHOUT ROWID");
  Execute("INSERT INTO keyed VALUES('anna', 'a', 100), ('anna', 'b', 115)");
  const ReadOptions options{.units = kUnits, .table = "keyed"};
  EXPECT_EQ(PlannedRun(options), (Told{{100, "a"}, {115, "b"}}));
  Execute("INSERT INTO keyed VALUES('anna', 'c', 108)");
  EXPECT_EQ(PlannedRun(options), (Told{{100, "ac"}, {115, "b"}}));
}

// Each way to cut has its own sessions.
TEST_F(RememberedLog, AnotherGap_cutsAnew) {
  const ReadOptions wide{.units = {.unit = RecordUnit::kSession, .session_gap = 2 * kGap}};
  ASSERT_TRUE(Opened().AppendAll({{{"anna", "a", 100}, {"anna", "b", 115}}}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "a"}, {115, "b"}}));
  EXPECT_EQ(PlannedRun(wide), (Told{{100, "ab"}}));
  EXPECT_EQ(PlannedRun(), (Told{{100, "a"}, {115, "b"}}));
}

TEST_F(RememberedLog, WhoIsErasedOrPruned_isForgottenHereToo) {
  EventLog log = Opened();
  ASSERT_TRUE(log.AppendAll({{{"anna", "a", 100}, {"anna", "b", 115}, {"bert", "a", 1}, {"bert", "b", 2}}}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "a"}, {115, "b"}, {1, "ab"}}));
  ASSERT_EQ(*log.Erase("bert"), 2u);
  EXPECT_EQ(NumRemembered(), 2);
  EXPECT_EQ(GetBytes(Path()).find("bert"), std::string::npos);
  ASSERT_TRUE(log.Append({"anna", "c", 108}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "ac"}, {115, "b"}}));
  ASSERT_TRUE(log.Prune({.before = 112}).ok());
  EXPECT_EQ(NumRemembered(), 1);
  ASSERT_TRUE(log.Prune({.before = 1000000}).ok());
  EXPECT_EQ(NumRemembered(), 0);
  ASSERT_TRUE(log.AppendAll({{{"anna", "d", 100}, {"anna", "e", 115}}}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "d"}, {115, "e"}}));
}

// A session that has lost its first event keeps its name, and an event at the time of that name belongs to it.
TEST_F(RememberedLog, WhatAnAppDeletes_isForgottenAtTheNextReading) {
  ASSERT_TRUE(Opened().AppendAll({{{"anna", "a", 100}, {"anna", "b", 109}, {"anna", "c", 118}}}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "abc"}}));
  Execute("DELETE FROM events WHERE item IN ('a', 'b')");
  EXPECT_EQ(PlannedRun(), (Told{{100, "c"}}));
  EXPECT_EQ(NumRemembered(), 1);
  ASSERT_TRUE(Opened().Append({"anna", "d", 100}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "dc"}}));
}

TEST_F(RememberedLog, ManyRuns_rememberNoMoreThanTheLogHolds) {
  EventLog log = Opened();
  for (int planned_run = 0; planned_run < 20; ++planned_run) {
    if (planned_run % 4 == 0) {
      ASSERT_TRUE(log.Append({"anna", "a", 1000 * planned_run}).ok());
    }
    PlannedRun();
  }
  EXPECT_EQ(NumRemembered(), 5);
  ASSERT_TRUE(log.Prune({.before = 15000}).ok());
  EXPECT_EQ(NumRemembered(), 1);
}

// The log remembers with its sessions which ledgers were charged for them. Sessions with another gap have none.
TEST_F(RememberedLog, LedgersAreRememberedWithTheSessions) {
  ASSERT_TRUE(Opened().Append({"anna", "a", 100}).ok());
  const auto sessions = Read()->sequences.sessions;
  EXPECT_TRUE(sessions->ledgers.empty());
  ASSERT_TRUE(AddLedger(*sessions, "l1").ok());
  ASSERT_TRUE(AddLedger(*sessions, "l1").ok());
  EXPECT_EQ(Read()->sequences.sessions->ledgers, (std::vector<std::string>{"l1"}));
  const ReadOptions wide{.units = {.unit = RecordUnit::kSession, .session_gap = 2 * kGap}};
  EXPECT_TRUE(Read(wide)->sequences.sessions->ledgers.empty()) << "other sessions";
  EXPECT_EQ(ReadSequences(Path(), Format::kSqlite, {})->sequences.sessions, nullptr);
}

// If a table is gone at one reading, the memory of it goes too.
TEST_F(RememberedLog, ATableUnderAnotherName_isAnotherLog) {
  Execute("CREATE TABLE mine(user, item, time); INSERT INTO mine VALUES('anna', 'a', 100)");
  const ReadOptions options{.units = kUnits, .table = "mine"};
  ASSERT_TRUE(AddLedger(*Read(options)->sequences.sessions, "l1").ok());
  Execute("ALTER TABLE mine RENAME TO other");
  ASSERT_TRUE(Opened().Erase("nobody").ok());
  Execute("ALTER TABLE other RENAME TO mine");
  EXPECT_TRUE(Read(options)->sequences.sessions->ledgers.empty());
}

// Removing events takes constant time for each, so that it is never refused as too much work.
TEST_F(RememberedLog, HalfOfALargeLog_isErased) {
  EventLog log = Opened();
  std::vector<Event> events;
  for (int64_t i = 0; i < 20000; ++i) events.push_back({i < 10000 ? "anna" : "bert", "a", 100 * i});
  ASSERT_TRUE(log.AppendAll(events).ok());
  for (int64_t gap = 1; gap <= 12; ++gap)
    ASSERT_TRUE(Read({.units = {.unit = RecordUnit::kSession, .session_gap = gap}}).ok());
  const auto erased = log.Erase("anna");
  ASSERT_TRUE(erased.ok()) << erased.status().message();
  EXPECT_EQ(*erased, 10000u);
  EXPECT_EQ(NumRemembered(), 120000);
  ASSERT_TRUE(log.Prune({.before = 1500000, .units = kUnits}).ok());
  EXPECT_EQ(log.Count()->events, 5000u);
}

// The refusal also comes without new events; otherwise it would reveal that there was one.
TEST_F(RememberedLog, ALogThatCannotBeWritten_isRefusedWithAndWithoutNews) {
  const auto read_without_writing = [&] {
    const NothingIsWritten nothing_is_written;
    return Read().status();
  };
  ASSERT_TRUE(Opened().Append({"anna", "a", 100}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "a"}}));
  const Status refused = read_without_writing();
  EXPECT_EQ(refused.code(), StatusCode::kIo);
  EXPECT_NE(refused.message().find("it cannot be noted in the log what was read"), std::string::npos);
  EXPECT_NE(refused.message().find("the disk refuses to write, as one that is full does"), std::string::npos)
      << refused.message();
  ASSERT_TRUE(Opened().Append({"anna", "b", 120}).ok());
  EXPECT_EQ(read_without_writing().message(), refused.message());
  EXPECT_EQ(NumRemembered(), 1);
}

// A dry run leaves no trace in the log.
TEST_F(RememberedLog, APlannedRunWithoutNews_leavesTheLogAsItWas) {
  EventLog log = Opened();
  PlannedRun();
  EXPECT_EQ(NumRemembered(), 0);
  ASSERT_TRUE(log.Append({"anna", "a", 100}).ok());
  PlannedRun();
  const std::string before = GetBytes(Path());
  PlannedRun();
  EXPECT_EQ(GetBytes(Path()), before);
}

// The late event between two sessions belongs to the first one, so the absence of the other takes nothing from it.
TEST_F(RememberedLog, PruningForgetsSessionsAsTheyWereRead) {
  for (const bool with_other : {true, false}) {
    EventLog log = Opened();
    ASSERT_TRUE(log.AppendAll({{{"anna", "a", 100}, {"anna", "b", 101}}}).ok());
    if (with_other) {
      ASSERT_TRUE(log.AppendAll({{{"anna", "c", 115}, {"anna", "d", 124}}}).ok());
    }
    PlannedRun();
    ASSERT_TRUE(log.Append({"anna", "e", 108}).ok());
    EXPECT_EQ(*log.Prune({.before = 130, .units = kUnits}), 3u);
    EXPECT_EQ(PlannedRun(), with_other ? (Told{{115, "cd"}}) : Told{});
    ASSERT_TRUE(log.Prune({.before = 1000}).ok());
  }
}

TEST_F(RememberedLog, PruningIsAReading) {
  EventLog log = Opened();
  ASSERT_TRUE(log.AppendAll({{{"anna", "a", 100}, {"anna", "b", 115}}}).ok());
  EXPECT_EQ(*log.Prune({.before = 50, .units = kUnits}), 0u);
  ASSERT_TRUE(log.Append({"anna", "c", 108}).ok());
  EXPECT_EQ(PlannedRun(), (Told{{100, "ac"}, {115, "b"}}));
}

// The part of a session that stays does not depend on another session, whatever came late.
TEST_F(RememberedLog, PruningWithoutOneSession_changesNoOther) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  size_t pruned = 0;
  for (int round = 0; round < 25; ++round) {
    const Log log = RandomLog(random);
    const std::vector<int64_t> session_of = Cut(log);
    const int64_t away = session_of[random() % session_of.size()];
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
        if (i + 1 < log.size()) PlannedRun();
      }
      pruned += *kept.Prune({.before = before, .units = kUnits});
      for (const Event& e : *kept.Events("anna")) {
        if (session_of[std::stoul(e.item)] != away) left[without].push_back(e.item);
      }
      ASSERT_TRUE(kept.Prune({.before = 1'000'000}).ok());
    }
    ASSERT_EQ(left[0], left[1]) << "round " << round << ", without " << away;
  }
  EXPECT_GT(pruned, 40u);
}

// Reading refuses foreign tables with these names, pruning leaves them alone, and nothing of them is run.
TEST_F(RememberedLog, TablesOfThoseNamesThatAreOthers_areLeftAlone) {
  const char* index_of_another_case =
      "CREATE INDEX planted ON wisp_sessions(abs(time)); PRAGMA writable_schema=ON;"
      "UPDATE sqlite_master SET tbl_name = 'WISP_SESSIONS' WHERE name = 'planted'";
  for (const std::string planted :
       {"DROP TABLE wisp_readings; CREATE TABLE wisp_readings(a, b)",
        "DROP TABLE wisp_sessions; CREATE TABLE wisp_sessions(reading, user, time, session, precious)",
        "DROP TABLE wisp_sessions; CREATE VIRTUAL TABLE wisp_sessions USING fts5(reading, user, time, session)",
        "CREATE INDEX planted ON wisp_sessions(abs(time))",
        "CREATE TRIGGER planted AFTER DELETE ON wisp_sessions BEGIN DELETE FROM events; END", index_of_another_case}) {
    std::filesystem::remove(Path());
    EventLog log = Opened();
    ASSERT_TRUE(log.AppendAll({{{"anna", "a", 1}, {"bert", "a", 500}}}).ok());
    PlannedRun();
    Execute(planted);
    const Status refused = Read().status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidData) << planted;
    EXPECT_NE(refused.message().find("'wisp_sessions'"), std::string::npos) << refused.message();
    const auto erased = Opened().Erase("anna");
    ASSERT_TRUE(erased.ok()) << planted << ": " << erased.status().message();
    EXPECT_EQ(*erased, 1u);
    EXPECT_EQ(Opened().Count()->events, 1u);
  }
}

// Names of other tables in a file are read as columns and nothing more: a view would run code.
TEST_F(RememberedLog, WhatIsRememberedOfAView_isForgotten) {
  ASSERT_TRUE(Opened().Append({"anna", "a", 1}).ok());
  PlannedRun();
  Execute(
      "CREATE VIEW seen AS SELECT user, time FROM events;"
      "INSERT INTO wisp_readings VALUES(7, 'seen', 'user', 'time', 10, 1, 1);"
      "INSERT INTO wisp_sessions VALUES(7, 'anna', 1, 1)");
  ASSERT_TRUE(Opened().Append({"anna", "b", 2}).ok());
  PlannedRun();
  EXPECT_EQ(NumRemembered(), 2);
}

}  // namespace
}  // namespace wisp::data::sessions_test
