// Pruning and erasing a log: it removes whole units, each by its own events alone, and no byte of an erased user stays.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "runtime/data/event_log.h"
#include "runtime/data/readers.h"
#include "tests/unit/core/in_child.h"
#include "tests/unit/data/readers_test_util.h"

namespace wisp::data::event_log_keep_test {
namespace {

constexpr int64_t kDay = 86400, kGap = 1800;
constexpr Units kSessions = {.unit = RecordUnit::kSession, .session_gap = kGap}, kDays = {.unit = RecordUnit::kDay};

class EventLogKeep : public ::testing::Test {
 protected:
  EventLog Open(const char* name = "log.db") { return *EventLog::Open(folder_ / name); }
  static std::vector<Event> Random(uint64_t seed, int users, int events) {
    std::mt19937_64 random(seed);
    std::vector<Event> all;
    for (int i = 0; i < events; ++i) {
      all.push_back({.user = "u" + std::to_string(random() % static_cast<uint64_t>(users)),
                     .item = "i" + std::to_string(random() % 50),
                     .time = static_cast<int64_t>(20000 * kDay + random() % (4 * kDay))});
    }
    return all;
  }
  // Returns the records by user and name, as training reads them.
  static std::map<std::string, int> Records(const std::string& path, const Units& units) {
    std::map<std::string, int> records;
    const auto read = ReadSequences(path, Format::kAuto, {.units = units});
    if (!read.ok()) return records;
    const Sequences& s = read->sequences;
    for (size_t u = 0; u < s.num_users(); ++u) {
      const std::string begins = s.unit_begins.empty() ? "" : " " + std::to_string(s.unit_begins[u]);
      records[s.user_keys[u] + begins] = static_cast<int>(s.User(u).size());
    }
    return records;
  }

  static std::string GetBytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  int GetRows(const std::string& name, const std::string& table) {
    sqlite3* database = nullptr;
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_open((folder_ / name).c_str(), &database), SQLITE_OK);
    const std::string sql = "SELECT count(*) FROM " + table;
    EXPECT_EQ(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sql;
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const int rows = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return rows;
  }

  LogFolder folder_;
};

TEST_F(EventLogKeep, ManyEventsAreAppendedAtOnceOrNone) {
  EventLog log = Open();
  const std::vector<Event> events = Random(1, 5, 500);
  ASSERT_TRUE(log.AppendAll(events).ok());
  EXPECT_EQ(log.Count()->events, 500u);
  std::vector<Event> bad = events;
  bad.back().item = "";
  EXPECT_EQ(log.AppendAll(bad).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(log.Count()->events, 500u);
  EXPECT_TRUE(log.AppendAll({}).ok());
  // A table of an app that takes each event only once.
  EventLog strict = *EventLog::Open(folder_.MakeDatabase(
      "strict.db",
      "CREATE TABLE events(user TEXT, item TEXT, time INTEGER); CREATE UNIQUE INDEX one ON events(user, item)"));
  EXPECT_FALSE(strict.AppendAll(std::vector<Event>{{"a", "x", 1}, {"a", "y", 2}, {"a", "x", 3}}).ok());
  EXPECT_EQ(strict.Count()->events, 0u);
  EXPECT_TRUE(strict.AppendAll(std::vector<Event>{{"a", "x", 1}, {"a", "y", 2}}).ok());
}

// Counting and listing does not change a file that an app, or somebody else, has made.
TEST_F(EventLogKeep, CountingLeavesFilesAsTheyAre) {
  const std::string app = folder_.MakeDatabase("app.db",
                                               "CREATE TABLE events(user TEXT, item TEXT, time INTEGER, place TEXT); "
                                               "INSERT INTO events VALUES('a', 'x', 1, '')");
  const std::string other = folder_.MakeDatabase("other.db", "CREATE TABLE x(y)"), empty = folder_ / "empty.db";
  std::ofstream(empty).flush();
  const std::string app_before = GetBytes(app), other_before = GetBytes(other);
  const size_t num_files = folder_.NumFiles();
  {
    const EventLog log = *EventLog::OpenExisting(app);
    EXPECT_EQ(log.Count()->events, 1u);
    EXPECT_EQ(log.Users("", 10)->size(), 1u);
  }
  EXPECT_EQ(EventLog::OpenExisting(other).status().message(),
            "event log '" + other +
                "': there is no table 'events' in it. Events of another table can be imported into a log of its own");
  EXPECT_FALSE(EventLog::OpenExisting(empty).ok());
  EXPECT_FALSE(EventLog::OpenExisting(folder_ / "none.db").ok());
  EXPECT_EQ(GetBytes(app), app_before);
  EXPECT_EQ(GetBytes(other), other_before);
  EXPECT_EQ(GetBytes(empty), "");
  EXPECT_EQ(folder_.NumFiles(), num_files);
}

TEST_F(EventLogKeep, SaysWhatItHolds) {
  EventLog log = Open();
  EXPECT_EQ(log.Count()->events, 0u);
  EXPECT_FALSE(log.Count()->oldest.has_value());
  ASSERT_TRUE(log.AppendAll(std::vector<Event>{{"b", "x", 5}, {"a", "x", 3}, {"b", "y", 4}, {"c", "z", 9}}).ok());
  const LogCount count = *log.Count();
  EXPECT_EQ(count.users, 3u);
  EXPECT_EQ(count.items, 3u);
  EXPECT_EQ(*count.oldest, 3);
  EXPECT_EQ(*count.newest, 9);
  const auto users = *log.Users("", 2);
  ASSERT_EQ(users.size(), 2u);
  EXPECT_EQ(users[1].user, "b");
  EXPECT_EQ(users[1].events, 2u);
  EXPECT_EQ(users[1].newest, 5);
  EXPECT_EQ(log.Users("b", 9)->front().user, "c");
}

// Integers are users and items in the form of their decimal text, whatever the column's type says. Training reads them
// in the same way.
TEST_F(EventLogKeep, IntegersAreKeysInEveryCall) {
  for (const std::string type : {"INTEGER", "", "TEXT", "TEXT COLLATE NOCASE"}) {
    SCOPED_TRACE(type);
    const std::string name = "log" + type + ".db";
    EventLog log = *EventLog::Open(folder_.MakeDatabase(
        name, "CREATE TABLE events(user " + type + ", item " + type + ", time INTEGER); INSERT INTO events VALUES" +
                  "(17, 5, 3), (17, 4, 2), (9, 5, 1), ('anna', 'x', 1), ('Anna', 'x', 1), ('anna', 7, 0)"));
    EXPECT_EQ(log.Count()->users, 4u);
    EXPECT_EQ(log.Count()->items, 4u);
    EXPECT_EQ(log.Count()->unreadable, 0u);
    std::string users;
    for (std::string after;;) {  // one user on each page
      const auto page = *log.Users(after, 1);
      if (page.empty()) break;
      after = page.front().user;
      users += after + ":" + std::to_string(page.front().events) + " ";
    }
    EXPECT_EQ(users, "17:2 9:1 Anna:1 anna:2 ");
    EXPECT_EQ(ReadFileAndTell(folder_ / name, Format::kSqlite), "17: 4 5; 9: 5; anna: 7 x; Anna: x");
    EXPECT_EQ(*log.History("17", 9), (std::vector<std::string>{"4", "5"}));
    const auto events = *log.Events("17");
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].item, "4");
    EXPECT_EQ(events[0].time, 2);
    EXPECT_EQ(log.Events("anna")->size(), 2u);
    EXPECT_EQ(log.Events("017")->size(), 0u);
    EXPECT_EQ(*log.Erase("017"), 0u);
    EXPECT_EQ(*log.Prune({.newest_per_user = 1}), 2u);
    EXPECT_EQ(*log.Erase("17"), 1u);
    EXPECT_EQ(*log.Erase("anna"), 1u);
    EXPECT_EQ(log.Users("", 9)->size(), 2u);
    EXPECT_EQ(*log.Prune({.before = 2, .units = kSessions}), 0u);
    EXPECT_EQ(*log.Prune({.before = 5000, .units = kSessions}), 2u);
    EXPECT_EQ(log.Count()->events, 0u);
  }
}

// These events are neither listed nor learned from, but they are counted, and pruned by their time.
TEST_F(EventLogKeep, EventsThatTrainingCannotReadAreCounted) {
  EventLog log = *EventLog::Open(folder_.MakeDatabase(
      "log.db",
      "CREATE TABLE events(user, item, time); INSERT INTO events VALUES('a', 'x', 9000), (NULL, 'x', 1), "
      "(x'6162', 'x', 2), (1.5, 'x', 9000), ('', 'x', 1), ('a', NULL, 1), ('a', 'y', 'soon'), "
      "('a' || char(9), 'x', 1), ('b', 'z', NULL)"));
  const LogCount count = *log.Count();
  EXPECT_EQ(count.events, 9u);
  EXPECT_EQ(count.users, 2u);
  EXPECT_EQ(count.unreadable, 8u);
  const auto users = *log.Users("", 9);
  ASSERT_EQ(users.size(), 2u);
  EXPECT_EQ(users[0].user, "a");
  EXPECT_FALSE(users[1].newest.has_value());
  EXPECT_EQ(log.Events("a")->size(), 1u);
  EXPECT_EQ(*log.History("a", 9), (std::vector<std::string>{"x"}));
  EXPECT_EQ(*log.Erase("ab"), 1u);
  EXPECT_EQ(*log.Erase("a\t"), 1u);
  EXPECT_EQ(*log.Prune({.before = 8000, .units = kSessions}), 3u);
  EXPECT_EQ(log.Count()->unreadable, 3u);
  EXPECT_EQ(*log.Prune({.before = 10000}), 2u);
  EXPECT_EQ(log.Count()->events, 2u);
  EXPECT_FALSE(log.Count()->oldest.has_value());
}

TEST_F(EventLogKeep, WhoIsErasedLeavesNoByte) {
  {
    EventLog log = Open();
    std::vector<Event> events = Random(2, 20, 3000);
    for (int i = 0; i < 40; ++i) events.push_back({"somebody-in-particular", "secret-item-" + std::to_string(i), i});
    ASSERT_TRUE(log.AppendAll(events).ok());
    EXPECT_EQ(*log.Erase("somebody-in-particular"), 40u);
    EXPECT_EQ(*log.Erase("somebody-in-particular"), 0u);
    EXPECT_EQ(log.Count()->events, 3000u);
    for (const char* file : {"log.db", "log.db-wal"}) {
      const std::string bytes = GetBytes(folder_ / file);
      EXPECT_EQ(bytes.find("somebody-in"), std::string::npos) << file;
      EXPECT_EQ(bytes.find("secret-item"), std::string::npos) << file;
    }
  }
  EXPECT_EQ(Open().Count()->users, 20u);
}

// Another reader, in a transaction of its own.
class Reader {
 public:
  explicit Reader(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database_, "BEGIN; SELECT count(*) FROM events", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~Reader() { sqlite3_close(database_); }

 private:
  sqlite3* database_ = nullptr;
};

// The limit of work goes by the file's bytes, and such a row has ten of them.
TEST_F(EventLogKeep, RowsOfSmallNumbers_AreCounted) {
  const std::string path = folder_.MakeDatabase(
      "small.db",
      "CREATE TABLE events(user, item, time); WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
      "LIMIT 100000) INSERT INTO events SELECT i % 100, i % 2, i % 2 FROM n");
  const auto log = EventLog::OpenExisting(path);
  ASSERT_TRUE(log.ok()) << log.status().message();
  const auto count = log->Count();
  ASSERT_TRUE(count.ok()) << count.status().message();
  EXPECT_EQ(count->events, 100000u);
}

// An app's own file has a write-ahead log. There the old bytes stay for as long as another connection reads them.
TEST_F(EventLogKeep, WhatAReaderKeepsOnTheDisk_IsNotSaidToBeGone) {
  const std::string path = folder_.MakeDatabase(
      "app.db", "PRAGMA journal_mode = WAL; CREATE TABLE events(user TEXT, item TEXT, time INTEGER)");
  const auto is_on_disk = [&] {
    return (GetBytes(path) + GetBytes(path + "-wal")).find("secret-item") != std::string::npos;
  };
  EventLog log = *EventLog::Open(path);
  std::vector<Event> events = Random(2, 20, 300);
  for (int i = 0; i < 40; ++i) events.push_back({"somebody", "secret-item-" + std::to_string(i), i});
  ASSERT_TRUE(log.AppendAll(events).ok());
  {
    const Reader reader(path);
    const Status erased = log.Erase("somebody").status();
    EXPECT_EQ(erased.code(), StatusCode::kIo);
    EXPECT_NE(erased.message().find("their bytes are still on the disk"), std::string::npos) << erased.message();
    EXPECT_TRUE(is_on_disk());
    EXPECT_EQ(log.Count()->events, 300u);
    EXPECT_TRUE(EventLog::Open(path).ok());  // without a wait
    EXPECT_TRUE(is_on_disk());
  }
  // The file is opened again, while the first log is still open.
  EXPECT_TRUE(EventLog::Open(path).ok());
  EXPECT_FALSE(is_on_disk());
  EXPECT_EQ(*log.Erase("somebody"), 0u);
}

TEST_F(EventLogKeep, WhatAReaderKeepsFromBeingDone_IsNotDone) {
  EventLog log = Open();
  ASSERT_TRUE(log.AppendAll(Random(2, 20, 300)).ok());
  {
    const Reader reader(folder_ / "log.db");
    const Status erased = log.Erase("u1").status();
    EXPECT_EQ(erased.code(), StatusCode::kIo) << erased.message();
    EXPECT_EQ(log.Count()->users, 20u);
  }
  EXPECT_GT(*log.Erase("u1"), 0u);
}

TEST_F(EventLogKeep, EachAppendLeavesOneFileThatIsTheLog) {
  EventLog log = Open();
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(log.Append({"a", "x" + std::to_string(i), i}).ok());
    EXPECT_EQ(folder_.NumFiles(), 1u);
    const std::string copy = folder_ / "copy.db";
    std::filesystem::copy_file(folder_ / "log.db", copy);
    EXPECT_EQ(EventLog::OpenExisting(copy)->Count()->events, static_cast<uint64_t>(i));
    std::filesystem::remove(copy);
  }
}

TEST_F(EventLogKeep, ACopyHoldsWhatTheLogHeld) {
  const std::string app = folder_.MakeDatabase(
      "app.db", "PRAGMA journal_mode = WAL; CREATE TABLE events(user TEXT, item TEXT, time INTEGER)");
  for (const std::string& path : {folder_ / "log.db", app}) {
    const std::string copy = path + ".copy";
    EventLog log = *EventLog::Open(path);
    const std::vector<Event> events = Random(5, 20, 300);
    ASSERT_TRUE(log.AppendAll(events).ok());
    ASSERT_EQ(log.Backup(copy).message(), "");
    EXPECT_EQ(log.Backup(copy).code(), StatusCode::kInvalidArgument) << "a copy was replaced";
    EXPECT_EQ(log.Backup(path).code(), StatusCode::kInvalidArgument);
    std::ofstream(copy + ".wisp") << "a model";
    EXPECT_EQ(log.Backup(copy + ".wisp").code(), StatusCode::kInvalidArgument) << "a file that is no log was replaced";
    EXPECT_EQ(EventLog::OpenExisting(copy)->Count()->events, 300u);
    EXPECT_FALSE(std::filesystem::exists(copy + "-wal"));
    ASSERT_TRUE(log.Append({"later", "x", 1}).ok());
    ASSERT_GT(*log.Erase("u1"), 0u);
    ASSERT_EQ(EventLog::Restore(path, copy).message(), "");
    EXPECT_EQ(log.Count()->events, 300u);
    ASSERT_TRUE(log.Append({"later", "x", 1}).ok());
    // The copy is restored into a new log.
    const std::string lost = path + ".new";
    ASSERT_EQ(EventLog::Restore(lost, copy).message(), "");
    EXPECT_EQ(EventLog::OpenExisting(lost)->Count()->events, 300u);
    EXPECT_EQ(EventLog::Restore(lost, lost).code(), StatusCode::kInvalidArgument);
    // A file that is not a log, or is damaged, changes nothing.
    std::string bytes = GetBytes(copy);
    std::fill(bytes.begin() + 4096, bytes.begin() + 8192, 'x');
    std::ofstream(copy, std::ios::binary) << bytes;
    EXPECT_FALSE(EventLog::Restore(path, copy).ok());
    EXPECT_FALSE(EventLog::Restore(path, folder_ / "none.db").ok());
    EXPECT_EQ(log.Count()->events, 301u);
  }
}

// The notes of wisp about sessions may be lost. A table of somebody else may not, whatever its name.
TEST_F(EventLogKeep, ATableThatTheCopyLacks_IsNotLost) {
  const std::string path = folder_ / "log.db", copy = folder_ / "copy.db";
  ASSERT_TRUE(Open().AppendAll(Random(5, 20, 300)).ok());
  ASSERT_EQ(Open().Backup(copy).message(), "");
  ASSERT_TRUE(ReadSequences(path, Format::kSqlite, {.units = kSessions, .private_run = true}).ok());
  ASSERT_EQ(GetRows("log.db", "sqlite_master WHERE name = 'wisp_readings'"), 1);
  EXPECT_EQ(EventLog::Restore(path, copy).message(), "");
  EXPECT_EQ(GetRows("log.db", "sqlite_master WHERE name = 'wisp_readings'"), 0);
  for (const std::string table : {"contacts", "wisp_notes", "Wisp_notes", "wisp_readings"}) {
    const std::string name = table + ".db";
    const std::string log = folder_.MakeDatabase(name, "CREATE TABLE events(user, item, time); CREATE TABLE " + table +
                                                           "(name); INSERT INTO " + table + " VALUES('anna')");
    const Status refused = EventLog::Restore(log, copy);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << table;
    EXPECT_NE(refused.message().find("has a table '" + table + "' that the copy"), std::string::npos)
        << refused.message();
    EXPECT_EQ(GetRows(name, table), 1);
  }
}

// A program was killed while it appended, and left a journal. Then an old copy of the log was put back beside it.
TEST_F(EventLogKeep, AJournalOfAnotherState_IsNoticed) {
  const std::string path = folder_ / "log.db", copy = folder_ / "copy.db", journal = path + "-journal";
  { ASSERT_TRUE(Open().AppendAll(Random(1, 5, 2000)).ok()); }
  std::filesystem::copy_file(path, copy);
  { ASSERT_TRUE(Open().AppendAll(Random(2, 5, 2000)).ok()); }
  {
    // With such a small cache, SQLite writes its journal before the end.
    sqlite3* writer = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &writer), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(writer,
                           "PRAGMA cache_size = 2; BEGIN; PRAGMA user_version = 7; UPDATE events SET time = time + 1",
                           nullptr, nullptr, nullptr),
              SQLITE_OK);
    std::filesystem::copy_file(path, folder_ / "killed.db");
    std::filesystem::copy_file(journal, folder_ / "killed.db-journal");
    sqlite3_close(writer);
  }
  std::filesystem::rename(folder_ / "killed.db-journal", journal);
  std::filesystem::copy_file(copy, path, std::filesystem::copy_options::overwrite_existing);
  for (const Status& status : {EventLog::Open(path).status(), EventLog::OpenExisting(path).status(),
                               ReadSequences(path, Format::kSqlite, {}).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidData);
    EXPECT_NE(status.message().find("is of another state of the file"), std::string::npos) << status.message();
  }
  EXPECT_EQ(GetBytes(path), GetBytes(copy));
  // Beside its own file, the journal is played back.
  std::filesystem::rename(folder_ / "killed.db", path);
  EXPECT_EQ(EventLog::OpenExisting(path)->Count()->events, 4000u);
  EXPECT_FALSE(std::filesystem::exists(journal));
}

#if !defined(_WIN32)  // tests/windows/left_out.txt has the reason
// A child without write permission simulates a mount where nothing can be written.
TEST_F(EventLogKeep, AFolderThatCannotBeWrittenIn_IsRead) {
  const std::string app = folder_.MakeDatabase("app.db",
                                               "PRAGMA journal_mode = WAL; CREATE TABLE events(user TEXT, item TEXT, "
                                               "time INTEGER); INSERT INTO events VALUES('a', 'x', 1)");
  { ASSERT_TRUE(Open().Append({"a", "x", 1}).ok()); }
  for (const char* name : {"log.db", "app.db"})
    std::filesystem::permissions(folder_ / name, std::filesystem::perms(0444));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0555));
  const int status = test::RunChild([&] {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && setuid(kNobody) != 0) return 9;
    for (const char* name : {"log.db", "app.db"}) {
      const auto log = EventLog::OpenExisting(folder_ / name);
      if (!log.ok() || log->Count()->events != 1) return 1;
      if (ReadFileAndTell(folder_ / name, Format::kSqlite) != "a: x") return 2;
    }
    return 0;
  });
  EXPECT_EQ(WEXITSTATUS(status), 0);
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
}
#endif

TEST_F(EventLogKeep, UsersKeepTheirNewest) {
  EventLog log = Open();
  ASSERT_TRUE(log.AppendAll(std::vector<Event>{{"a", "1", 1}, {"a", "2", 2}, {"a", "3", 3}, {"b", "1", 1}}).ok());
  EXPECT_EQ(*log.Prune({.newest_per_user = 2}), 1u);
  EXPECT_EQ(*log.History("a", 9), (std::vector<std::string>{"2", "3"}));
  EXPECT_EQ(*log.History("b", 9), (std::vector<std::string>{"1"}));
  EXPECT_EQ(*log.Prune({.before = 3, .newest_per_user = 5}), 2u);
  EXPECT_EQ(log.Count()->events, 1u);
}

// A record is removed whole, or stays whole under its name: a half of it would be another record than
// the whole.
TEST_F(EventLogKeep, UnitsAreForgottenWhole) {
  const std::string path = folder_ / "log.db";
  for (const Units& units : {kSessions, kDays}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      EventLog log = Open();
      ASSERT_TRUE(log.AppendAll(Random(seed, 8, 400)).ok());
      const auto before = Records(path, units);
      const int64_t cut = 20001 * kDay + static_cast<int64_t>(seed) * 4000;
      const uint64_t pruned = *log.Prune({.before = cut, .units = units});
      EXPECT_GT(pruned, 0u);
      const auto after = Records(path, units);
      EXPECT_LT(after.size(), before.size());
      for (const auto& [name, events] : after) {
        const auto was = before.find(name);
        ASSERT_NE(was, before.end()) << name;
        EXPECT_EQ(was->second, events) << name;
      }
      EXPECT_GE(*log.Count()->oldest, cut - 8 * kDay);
      ASSERT_TRUE(log.Prune({.before = 30000 * kDay, .units = units}).ok());
      EXPECT_EQ(log.Count()->events, 0u);
    }
  }
}

// A session that may still continue is not cut off from its beginning.
TEST_F(EventLogKeep, ASessionThatALaterEventMayJoinStays) {
  EventLog log = Open();
  ASSERT_TRUE(log.AppendAll(std::vector<Event>{{"a", "1", 1000}, {"a", "2", 5000}, {"a", "3", 6000}}).ok());
  EXPECT_EQ(*log.Prune({.before = 7800, .units = kSessions}), 1u);
  EXPECT_EQ(*log.Prune({.before = 7801, .units = kSessions}), 2u);
  // No clock gives this time.
  ASSERT_TRUE(log.Append({"a", "4", INT64_MIN}).ok());
  EXPECT_EQ(*log.Prune({.before = 7801, .units = kSessions}), 1u);
}

// The part of a user that stays does not depend on other users.
TEST_F(EventLogKeep, NoRecordDecidesOverOthers) {
  for (const PruneOptions& options : {PruneOptions{.before = 20002 * kDay}, PruneOptions{.newest_per_user = 7},
                                      PruneOptions{.before = 20002 * kDay, .units = kSessions},
                                      PruneOptions{.before = 20002 * kDay, .units = kDays}}) {
    EventLog all = Open("all.db"), fewer = Open("fewer.db");
    std::vector<Event> events = Random(3, 6, 300);
    ASSERT_TRUE(all.AppendAll(events).ok());
    std::erase_if(events, [](const Event& e) { return e.user == "u0"; });
    ASSERT_TRUE(fewer.AppendAll(events).ok());
    ASSERT_TRUE(all.Prune(options).ok());
    ASSERT_TRUE(fewer.Prune(options).ok());
    for (int u = 1; u < 6; ++u) {
      const std::string user = "u" + std::to_string(u);
      EXPECT_EQ(*all.History(user, 999), *fewer.History(user, 999)) << user;
    }
    for (EventLog* log : {&all, &fewer}) ASSERT_TRUE(log->Prune({.before = 30000 * kDay}).ok());
  }
}

TEST_F(EventLogKeep, TheFileStaysBounded) {
  EventLog log = Open();
  uintmax_t largest = 0;
  for (int64_t planned_run = 0; planned_run < 60; ++planned_run) {
    std::vector<Event> events = Random(static_cast<uint64_t>(planned_run) + 1, 10, 300);
    for (Event& e : events) e.time += planned_run * kDay;
    ASSERT_TRUE(log.AppendAll(events).ok());
    ASSERT_TRUE(log.Prune({.before = (20000 + planned_run - 7) * kDay, .units = kDays}).ok());
    if (planned_run == 20) largest = std::filesystem::file_size(folder_ / "log.db");
  }
  EXPECT_LE(std::filesystem::file_size(folder_ / "log.db"), 1.3 * static_cast<double>(largest));
  ASSERT_EQ(log.Prune({.before = 30000 * kDay}).status().message(), "");
  EXPECT_LT(std::filesystem::file_size(folder_ / "log.db"), 30000u);
}

TEST_F(EventLogKeep, RefusesWhatWouldCoupleRecords) {
  EventLog log = Open();
  for (const PruneOptions& bad :
       {PruneOptions{}, PruneOptions{.newest_per_user = 5, .units = kSessions},
        PruneOptions{.before = 1, .newest_per_user = 5, .units = kDays}, PruneOptions{.before = -1, .units = kDays},
        PruneOptions{.before = 1, .units = {.unit = RecordUnit::kSession}}})
    EXPECT_EQ(log.Prune(bad).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wisp::data::event_log_keep_test
