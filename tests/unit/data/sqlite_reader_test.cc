// Interactions in SQLite files: what is read, what is refused and with which message, and how an open event log sees
// them.
#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "runtime/data/event_log.h"
#include "runtime/data/readers.h"
#include "tests/unit/core/file_size_limit.h"
#include "tests/unit/data/readers_test_util.h"

namespace wisp::data::sqlite_reader_test {
namespace {

using std::string_literals::operator""s;

// Writes the SQL of a table of events with these rows.
std::string BuildTable(const std::string& name, const std::string& rows) {
  return "CREATE TABLE " + name + "(user, item, time);" +
         (rows.empty() ? "" : "INSERT INTO " + name + " VALUES" + rows + ";");
}

TEST(Sqlite, Rows_AreInTimeOrderThenRowid) {
  const LogFolder folder;
  const std::string path =
      folder.MakeDatabase("log.db",
                          "CREATE TABLE events(user TEXT, item TEXT, time INTEGER);"
                          "INSERT INTO events(rowid, user, item, time) VALUES"
                          "(9, 'anna', 'tied-second', 5), (2, 'anna', 'tied-first', 5), (3, 'ben', 'x', 1),"
                          "(4, 'anna', 'early', -7), (5, 'anna', 'real', 4.5)");
  const Result<ReadResult> read = ReadSequences(path, Format::kAuto, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(Told(read->sequences), "anna: early real tied-first tied-second; ben: x");
  EXPECT_EQ(read->report.ties, 1u);
  EXPECT_EQ(read->report.num_lines, 5u);
}

TEST(Sqlite, OtherTablesAndColumns_AreChosenByName) {
  const LogFolder folder;
  const std::string path = folder.MakeDatabase(
      "log.bin",  // recognised by its first bytes
      "CREATE TABLE \"my \"\"log\"(\"who's\" INTEGER, what TEXT, at TEXT, PRIMARY KEY(at)) WITHOUT ROWID;"
      "INSERT INTO \"my \"\"log\" VALUES(7, 'b', '20'), (7, 'a', '3')");
  const ReadOptions options{.user_column = "who's", .item_column = "what", .time_column = "at", .table = "my \"log"};
  EXPECT_EQ(ReadFileAndTell(path, Format::kAuto, options), "7: a b");
}

TEST(Sqlite, ReadLog_ReadsDatabasesOfAnyNameAndNoText) {
  const LogFolder folder;
  const Result<ReadResult> read =
      ReadLog(folder.MakeDatabase("log.csv", BuildTable("events", "('a','b',1),('a','c',2)")), {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(Told(read->sequences), "a: b c");
  const Result<ReadResult> text = ReadLog(folder.Write("log.txt", "user,item,time\na,b,1\n"), {});
  EXPECT_EQ(text.status().code(), StatusCode::kInvalidData);
  EXPECT_NE(text.status().message().find("cannot be read as a SQLite database"), std::string::npos);
}

TEST(Sqlite, BadTables_AreNamed) {
  const LogFolder folder;
  const std::string path = folder.MakeDatabase(
      "log.db", BuildTable("events", "") + "CREATE TABLE other(x, y);" +
                    BuildTable("nulls", "('a','b',1),('a',NULL,1)") + BuildTable("blobs", "(x'00','b',1)") +
                    BuildTable("times", "('a','b','soon')") + BuildTable("gone", "('a','b',NULL)") +
                    BuildTable("huge", "('a',hex(zeroblob(700000)),1)"));
  const std::pair<const char*, std::string> refused[] = {
      {"events", ": there is no event in it"},
      {"event",
       ": there is no table 'event'; the tables are 'events', 'other', 'nulls', 'blobs', 'times', 'gone', 'huge'; "
       "`table` says which it is"},
      {"other",
       ", table other: there is no column 'user' or 'user_id'; the columns are 'x', 'y'; `user_column` says which it "
       "is"},
      {"nulls", ", table nulls, row 2: the item is NULL; allowed is a TEXT or an INTEGER"},
      {"blobs", ", table blobs, row 1: the user is a BLOB; allowed is a TEXT or an INTEGER"},
      {"times", ", table times, row 1: the time is 'soon'" + kAllowedTimes},
      {"gone", ", table gone, row 1: the time is NULL; allowed is a number, or a date"},
      {"huge", ": cannot be read as a SQLite database: string or blob too big"}};
  for (const auto& [table, sentence] : refused)
    EXPECT_EQ(ReadFileAndTell(path, Format::kSqlite, {.table = table}), "error: " + path + sentence);
}

// A foreign file must run nothing: a view is a program, and so is a virtual table.
TEST(Sqlite, PrivateRun_LeavesOutBadRowsEachForItself) {
  const LogFolder folder;
  const std::string path = folder.MakeDatabase(
      "log.db",
      BuildTable("events",
                 "('a','b',1),('a',NULL,1),(x'00','b',1),('a','b','soon'),('a','b',NULL),('a','',2),('a','c',3)"));
  EXPECT_FALSE(ReadSequences(path, Format::kAuto, {}).ok());
  const Result<ReadResult> read = ReadSequences(path, Format::kAuto, {.private_run = true});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(Told(read->sequences), "a: b c");
  EXPECT_EQ(read->report.bad_rows, 5u);
  EXPECT_EQ(read->report.first_bad_row,
            path + ", table events, row 2: the item is NULL; allowed is a TEXT or an INTEGER");
}

// The item column does not affect sessions: a row without an item is still part of its session.
TEST(Sqlite, PrivateRun_RowsWithoutAnItem_TakePartWhereSessionsAreCut) {
  const LogFolder folder;
  const std::string path = folder.MakeDatabase(
      "log.db", BuildTable("events",
                           "('a','b',100),('a',NULL,108),('a',x'00',116),('a','',124),('a','c',132),"
                           "('z',NULL,100)"));
  const Result<ReadResult> read = ReadSequences(
      path, Format::kAuto, {.units = {.unit = RecordUnit::kSession, .session_gap = 10}, .private_run = true});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(Told(read->sequences), "a: b c");
  EXPECT_EQ(read->report.num_read, 2u);
  EXPECT_EQ(read->report.bad_rows, 4u);
}

TEST(Sqlite, ViewsAndVirtualTables_AreRefused) {
  const LogFolder folder;
  const std::string path =
      folder.MakeDatabase("log.db", BuildTable("events", "('a','b',1)") +
                                        "CREATE VIEW seen AS SELECT * FROM events;"
                                        "CREATE VIEW forever(user, item, time) AS WITH RECURSIVE n(i) AS (SELECT 1 "
                                        "UNION ALL SELECT i + 1 FROM n) SELECT 'a', 'b', i FROM n;"
                                        "CREATE VIRTUAL TABLE found USING fts5(user, item, time)");
  const std::string because = ", which runs what the file says; allowed are tables, whose columns can be named";
  for (const auto& [table, kind] :
       {std::pair("seen", "view"), std::pair("forever", "view"), std::pair("found", "virtual")}) {
    EXPECT_EQ(ReadFileAndTell(path, Format::kSqlite, {.table = table}),
              "error: " + path + ": '" + table + "' is no table but a " + kind + because);
  }
  EXPECT_EQ(ReadFileAndTell(path), "a: b");
}

TEST(Sqlite, ViewThatTheSchemaCallsATable_IsRefused) {
  const LogFolder folder;
  const std::string path = folder.MakeDatabase("log.db", BuildTable("events", "('a','b',1)") +
                                                             "PRAGMA writable_schema = 1;"
                                                             "UPDATE sqlite_schema SET sql = 'CREATE VIEW events(user, "
                                                             "item, time) AS SELECT 1, 2, 3' WHERE name = 'events'");
  EXPECT_TRUE(ReadFileAndTell(path).starts_with("error: ")) << ReadFileAndTell(path);
}

// Generated columns would be computed on reading.
TEST(Sqlite, GeneratedColumns_AreIgnored) {
  const LogFolder folder;
  const std::string path = folder.MakeDatabase(
      "log.db",
      "CREATE TABLE events(user, item, time AS (length(hex(zeroblob(400000)))));INSERT INTO events VALUES('a','b')");
  EXPECT_TRUE(
      ReadFileAndTell(path).starts_with("error: " + path + ", table events: there is no column 'time' or 'timestamp'"))
      << ReadFileAndTell(path);
}

// Makes inner pages that all lead to the next one, 80 times each: a file of 400 KB with 10^16 rows. `first` is SQL that
// runs before the rows are written.
std::string MakeEndless(const LogFolder& folder, const std::string& first) {
  constexpr size_t kPage = 512;
  std::string rows;
  for (int i = 0; i < 20000; ++i)
    rows += (i == 0 ? "('u" : ",('u") + std::to_string(i % 7) + "','item','" + std::to_string(i) + "')";
  std::ifstream in(folder.MakeDatabase("good.db", "PRAGMA page_size=512;" + first + BuildTable("events", rows)),
                   std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<size_t> inner;
  size_t leaf = 0;
  for (size_t page = 1; page < bytes.size() / kPage; ++page) {  // page 0 is the schema's
    if (bytes[page * kPage] == 0x05) inner.push_back(page);
    if (bytes[page * kPage] == 0x0d) leaf = page;
  }
  EXPECT_GE(inner.size(), 9u);
  const auto put = [&](size_t at, size_t page) {
    // Pages are numbered from 1.
    for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>((page + 1) >> (24 - 8 * i));
  };
  for (size_t i = 0; i < 9; ++i) {
    const size_t at = inner[i] * kPage, next = i + 1 < 9 ? inner[i + 1] : leaf;
    const auto byte = [&](size_t k) { return static_cast<uint8_t>(bytes[k]); };
    const size_t cells = size_t{byte(at + 3)} << 8 | byte(at + 4);
    EXPECT_GT(cells, 1u);
    for (size_t c = 0; c < cells; ++c) put(at + (size_t{byte(at + 12 + 2 * c)} << 8 | byte(at + 13 + 2 * c)), next);
    put(at + 8, next);
  }
  return folder.Write("round.db", bytes);
}

const std::string kTooMuchWork =
    "takes more work to read than a file of its size can need: it is damaged, or made to keep a reader busy";

TEST(Sqlite, PagesThatAreNamedAgainAndAgain_EndTheReading) {
  const LogFolder folder;
  const std::string path = MakeEndless(folder, "");
  EXPECT_EQ(ReadFileAndTell(path), "error: " + path + ": " + kTooMuchWork);
  // Opening it as a log would make its index.
  EXPECT_EQ(EventLog::Open(path).status().message(), "event log '" + path + "': " + kTooMuchWork);
}

TEST(EventLog, PagesThatAreNamedAgainAndAgain_EndAHistory) {
  const LogFolder folder;
  const std::string path = MakeEndless(folder, "CREATE TABLE other(x); CREATE INDEX events_by_user ON other(x);");
  const Result<EventLog> log = EventLog::Open(path);
  ASSERT_TRUE(log.ok()) << log.status().message();
  const Status status = log->History("anna", 10).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidData);
  EXPECT_EQ(status.message(), "event log '" + path + "': " + kTooMuchWork);
}

// Many of the smallest rows stay far below the bound on work.
TEST(Sqlite, ManySmallRows_AreRead) {
  const LogFolder folder;
  const std::string path = folder.MakeDatabase("log.db",
                                               "CREATE TABLE events(user, item, time);"
                                               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i "
                                               "< 1000000) INSERT INTO events SELECT 1, 1, 1 FROM n");
  const Result<ReadResult> read = ReadSequences(path, Format::kSqlite, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->report.num_events, 1000000u);
  const Result<EventLog> log = EventLog::Open(path);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_TRUE(log->History("1", 2000000).ok());
}

TEST(Sqlite, NamesThatATerminalActsOn_AreShownWithoutThat) {
  const LogFolder folder;
  const std::string escape = "\x1b]0;owned\x07\x1b[2J\n",
                    c1 = "\xc2\x9b"
                         "2J",
                    turned =
                        "\xe2\x80\xae"
                        "bd";
  const std::string name = "x" + escape + c1 + turned;
  const std::string path = folder.MakeDatabase(
      "log" + escape + ".db",
      "CREATE TABLE \"" + name + "\"(\"" + name + "\", item, time);" + BuildTable("events", "('" + name + "','b',1)") +
          BuildTable("items", "('a','" + name + "',1)") + BuildTable("times", "('a','b','" + name + "')"));
  for (const std::string& table : {"none" + escape, name, "events"s, "items"s, "times"s}) {
    const std::string told = ReadFileAndTell(path, Format::kSqlite, {.table = table});
    EXPECT_TRUE(told.starts_with("error: ")) << told;
    for (const char* acted_on : {"\x1b", "\x07", "\n", "\xc2\x9b", "\xe2\x80\xae"})
      EXPECT_EQ(told.find(acted_on), std::string::npos) << told;
  }
  // SQLite itself quotes this schema in its error.
  const std::string broken =
      folder.MakeDatabase("broken.db", BuildTable("events", "('a','b',1)") +
                                           "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET name = '" + escape +
                                           "', sql = 'CREATE TABLE \"" + escape + "\" oops'");
  const std::string told = ReadFileAndTell(broken);
  EXPECT_NE(told.find("malformed database schema"), std::string::npos) << told;
  EXPECT_EQ(told.find('\x1b'), std::string::npos) << told;
}

TEST(Sqlite, NamesOtherThanAFiles_AreRefused) {
  const LogFolder folder;
  for (const std::string& path : {""s, ":memory:"s, "file:" + (folder / "log.db"), "file::memory:?cache=shared"s}) {
    EXPECT_EQ(ReadSequences(path, Format::kSqlite, {}).status().code(), StatusCode::kInvalidArgument) << path;
    const Result<EventLog> log = EventLog::Open(path);
    EXPECT_EQ(log.status().code(), StatusCode::kInvalidArgument) << path;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "log.db"));
}

TEST(Sqlite, FilesWithoutTables_AreNamed) {
  const LogFolder folder;
  const std::pair<std::string, std::string> refused[] = {
      {folder.MakeDatabase("empty.db", "CREATE TABLE t(x); DROP TABLE t"),
       ": there is no table 'events'; there are no tables"},
      {folder.Write(
           "text.db",
           "no database, but longer than the header of one would have been........................................"),
       ": cannot be read as a SQLite database: file is not a database"}};
  for (const auto& [path, sentence] : refused)
    EXPECT_EQ(ReadFileAndTell(path, Format::kSqlite), "error: " + path + sentence);
}

TEST(Sqlite, Reading_LeavesNothingBehindAndCreatesNothing) {
  const LogFolder folder;
  const Result<ReadResult> read = ReadSequences(folder / "none.db", Format::kSqlite, {});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), StatusCode::kIo);
  EXPECT_EQ(read.status().message(), (folder / "none.db") + ": the log cannot be opened: No such file or directory");
  EXPECT_FALSE(std::filesystem::exists(folder / "none.db"));
}

#if !defined(_WIN32)  // tests/windows/left_out.txt has the reason
// Opening a pipe without a writer would block.
TEST(Sqlite, OtherThanRegularFiles_AreRefusedAtOnce) {
  const LogFolder folder;
  const std::string pipe = folder / "pipe.db";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int held = open(pipe.c_str(), O_RDWR);  // so that this test would fail instead of waiting
  ASSERT_GE(held, 0);
  EXPECT_EQ(ReadFileAndTell(pipe, Format::kSqlite),
            "error: " + pipe + ": is not a regular file, and a database is one");
  EXPECT_EQ(ReadFileAndTell(folder / ".", Format::kSqlite),
            "error: " + (folder / ".") + ": is not a regular file, and a database is one");
  close(held);
}

// SQLite's locks belong to the process: closing any other descriptor of the file drops them, and so would reading the
// file with open and close. Another process must still find the lock of a transaction after a read within it.
TEST(Sqlite, ReadingALogThatThisProcessHasOpen_KeepsItsLocks) {
  constexpr off_t kReservedByte = 0x40000001;  // in SQLite's file format
  const LogFolder folder;
  const std::string path = folder.MakeDatabase("log.db", BuildTable("events", "('a','b',1)"));
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &writer), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(writer, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(ReadFileAndTell(path), "a: b");
  const pid_t child = fork();
  if (child == 0) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = kReservedByte;
    lock.l_len = 1;
    _exit(fcntl(open(path.c_str(), O_RDWR), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the lock of this process is gone";
  sqlite3_close(writer);
}
#endif

EventLog OpenFolderLog(const LogFolder& folder) {
  Result<EventLog> log = EventLog::Open(folder / "events.db");
  EXPECT_TRUE(log.ok()) << log.status().message();
  return *std::move(log);
}

TEST(Sqlite, EventLog_IsReadWhileItIsOpen) {
  const LogFolder folder;
  EventLog log = OpenFolderLog(folder);
  ASSERT_TRUE(log.Append({.user = "anna", .item = "tea", .time = 2}).ok());
  ASSERT_TRUE(log.Append({.user = "anna", .item = "cake", .time = 1}).ok());
  EXPECT_EQ(ReadFileAndTell(folder / "events.db"), "anna: cake tea");
  ASSERT_TRUE(log.Append({.user = "anna", .item = "soup", .time = 3}).ok());
  EXPECT_EQ(ReadFileAndTell(folder / "events.db"), "anna: cake tea soup");
}

constexpr char kForever[] = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
// Searching four million digits for two million takes some minutes in one operation of SQLite.
constexpr char kLong[] = "(instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1') = 0)";

TEST(EventLog, ProgramsInTheFile_DoNotRunOnAppending) {
  const LogFolder folder;
  const std::pair<const char*, std::string> files[] = {
      {"trigger.db", BuildTable("events", "('anna','tea',1)") + "CREATE TRIGGER t AFTER INSERT ON events BEGIN " +
                         kForever + "; END"},
      {"before.db",
       BuildTable("events", "('anna','tea',1)") +
           "CREATE TRIGGER t BEFORE INSERT ON events BEGIN INSERT INTO events VALUES ('anna', 'more', 7); END"},
      {"check.db", "CREATE TABLE events(user, item, time, CHECK (time = 1 OR " + std::string(kLong) +
                       "));INSERT INTO events VALUES('anna','tea',1)"}};
  for (const auto& [name, sql] : files) {
    const std::string path = folder.MakeDatabase(name, sql);
    Result<EventLog> log = EventLog::Open(path);
    ASSERT_TRUE(log.ok()) << log.status().message();
    const Status appended = log->Append({.user = "anna", .item = "cake", .time = 2});
    EXPECT_TRUE(appended.ok()) << appended.message();
    EXPECT_EQ(*log->History("anna", 10), (std::vector<std::string>{"tea", "cake"})) << name;
  }
}

TEST(EventLog, OtherThanPlainTables_AreRefused) {
  const LogFolder folder;
  const std::string end = ", which runs what the file says; allowed is a table with the columns user, item and time";
  const std::string computed = "; allowed are constants, and indexes of columns";
  const std::string other = ". Events of a table with other names can be imported into a log of its own";
  const std::pair<std::string, std::string> files[] = {
      {"CREATE VIEW events(user, item, time) AS SELECT 1, 2, 3; CREATE TRIGGER t INSTEAD OF INSERT ON events BEGIN "
       "SELECT 1; END",
       "'events' is no table but a view" + end},
      {"CREATE VIRTUAL TABLE events USING fts5(user, item, time)", "'events' is no table but a virtual" + end},
      {"CREATE TABLE events(user, item)",
       "the table events has no column 'time'; the columns are 'user', 'item'" + other},
      {"CREATE TABLE events(a, \"b\n\", c, item, time)",
       "the table events has no column 'user'; the columns are 'a', 'b?', 'c', 'item', 'time'" + other},
      {"CREATE TABLE events(user, item, time AS (1))", "the table events computes its column 'time'" + computed},
      {"CREATE TABLE events(user, item, time, more AS " + std::string(kLong) + " STORED)",
       "the table events computes its column 'more'" + computed},
      {"CREATE TABLE events(user, item, time, more DEFAULT " + std::string(kLong) + ")",
       "the table events computes its column 'more'" + computed},
      {"CREATE TABLE events(user, item, time); CREATE INDEX slow ON events(" + std::string(kLong) + ")",
       "the table events computes its index 'slow'" + computed},
      {"CREATE TABLE events(user, item, time); CREATE INDEX some ON events(user) WHERE " + std::string(kLong),
       "the table events computes its index 'some'" + computed}};
  for (const auto& [sql, sentence] : files) {
    std::filesystem::remove(folder / "log.db");
    const std::string path = folder.MakeDatabase("log.db", sql);
    const Status status = EventLog::Open(path).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidData);
    EXPECT_EQ(status.message(), "event log '" + path + "': " + sentence);
    EXPECT_FALSE(std::filesystem::exists(path + "-wal"));  // the write-ahead log is gone, as before
  }
}

// Errors about what can be written are our sentences, not SQLite's.
TEST(EventLog, ADiskThatIsFull_IsCalledFull) {
  const LogFolder folder;
  const std::string path = folder / "log.db";
  {
    const test::FileSizeLimit full(0);
    const Status opened = EventLog::Open(path).status();
    EXPECT_EQ(opened.code(), StatusCode::kIo);
    EXPECT_TRUE(opened.message().starts_with("event log '" + path + "': cannot be opened to write: the disk "))
        << opened.message();
    EXPECT_NE(opened.message().find("free space and try again"), std::string::npos) << opened.message();
  }
  Result<EventLog> log = EventLog::Open(path);
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_TRUE(log->Append({"anna", "tea", 1}).ok());
  {
    const test::FileSizeLimit full(0);
    const Status appended = log->Append({"anna", "cake", 2});
    EXPECT_EQ(appended.code(), StatusCode::kIo);
    EXPECT_NE(appended.message().find(": the disk "), std::string::npos) << appended.message();
  }
  EXPECT_EQ(*log->History("anna", 10), (std::vector<std::string>{"tea"}));
  ASSERT_TRUE(log->Append({"anna", "cake", 2}).ok());
}

TEST(EventLog, ALedger_IsNoLog) {
  const LogFolder folder;
  const std::string path = folder.MakeDatabase("a.ledger", "CREATE TABLE entries(x); PRAGMA application_id = 7");
  EXPECT_EQ(EventLog::Open(path).status().message(),
            "event log '" + path + "': is a database of another kind (application id 7), such as a ledger");
}

// A table that an app has made may have more columns.
TEST(EventLog, MoreColumnsThanItsOwn_AreLeftToTheirDefaults) {
  const LogFolder folder;
  const std::string path =
      folder.MakeDatabase("log.db",
                          "CREATE TABLE Events(id INTEGER PRIMARY KEY AUTOINCREMENT, user VARCHAR(64) NOT NULL, item "
                          "TEXT NOT NULL CHECK (length(item) > 0), time INTEGER,"
                          "note TEXT DEFAULT 'none', made TEXT DEFAULT CURRENT_TIMESTAMP, number NOT NULL DEFAULT -1, "
                          "UNIQUE(user, item, time));"
                          "CREATE INDEX by_item ON events(item, time); CREATE TABLE other(x); INSERT INTO events(user, "
                          "item, time) VALUES('anna', 'tea', 1)");
  Result<EventLog> log = EventLog::Open(path);
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_TRUE(log->Append({.user = "anna", .item = "cake", .time = 2}).ok());
  EXPECT_FALSE(log->Append({.user = "anna", .item = "cake", .time = 2}).ok());  // the table is unique
  EXPECT_EQ(*log->History("anna", 10), (std::vector<std::string>{"tea", "cake"}));
  EXPECT_EQ(ReadFileAndTell(path), "anna: tea cake");
}

TEST(EventLog, UnreadableEvents_AreNotAppended) {
  const LogFolder folder;
  EventLog log = OpenFolderLog(folder);
  ASSERT_TRUE(log.Append({.user = "anna", .item = "tea", .time = 1}).ok());
  for (const std::string& bad : {""s, "a\nb"s, "\xff"s, std::string(257, 'k'), "a\0b"s}) {
    EXPECT_EQ(log.Append({.user = "anna", .item = bad, .time = 2}).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(log.Append({.user = bad, .item = "tea", .time = 2}).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(log.Append({.user = "anna", .item = "a\tb", .time = 2}).message(),
            "event log '" + (folder / "events.db") +
                "': the item is 'a?b' with byte 9 at 1; allowed is UTF-8 without control characters");
  EXPECT_EQ(ReadFileAndTell(folder / "events.db"), "anna: tea");
}

TEST(Sqlite, RandomDamage_IsRefusedOrSound) {
  const LogFolder folder;
  std::string rows;
  for (int i = 0; i < 60; ++i) {
    const std::string n = std::to_string(i);
    rows += (i == 0 ? "('u" : ",('u") + std::to_string(i % 7) + "','item" + n + "'," + n + ")";
  }
  std::ifstream in(folder.MakeDatabase("good.db", "PRAGMA page_size=512;" + BuildTable("events", rows) +
                                                      "CREATE INDEX i ON events(user, time)"),
                   std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  constexpr uint32_t kSeed = 4711;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Noise noise(kSeed);
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    for (uint32_t n = 1 + noise.Below(6); n > 0; --n)
      bad[noise.Below(static_cast<uint32_t>(bad.size()))] = static_cast<char>(noise.Below(256));
    if (round % 5 == 0) bad.resize(noise.Below(static_cast<uint32_t>(bad.size())));
    ExpectSound(ReadSequences(folder.Write("bad.db", bad), Format::kSqlite, {}));
  }
}

}  // namespace
}  // namespace wisp::data::sqlite_reader_test
