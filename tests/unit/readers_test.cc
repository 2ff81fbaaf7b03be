// Every format of interactions: what is read, what is refused and in which words.
#include "runtime/data/readers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "runtime/data/event_log.h"

namespace wisp::data {
namespace {

using std::string_literals::operator""s;
using std::string_view_literals::operator""sv;

// "anna: tea coffee; ben: tea", what the sequences say in keys.
std::string Told(const Sequences& s) {
  std::string told;
  for (size_t u = 0; u < s.num_users(); ++u) {
    told += (u == 0 ? "" : "; ") + s.user_keys[u] + ":";
    for (int32_t item : s.User(u)) told += " " + s.item_keys[static_cast<size_t>(item)];
  }
  return told;
}

std::string ToldOf(std::string_view text, Format format, const ReadOptions& options = {}) {
  const Result<ReadResult> read = ReadText("log", text, format, options);
  return read.ok() ? Told(read->sequences) : "error: " + read.status().message();
}

// The whole sentence: a test of its parts would not see that it reads badly.
void ExpectRefused(std::string_view text, Format format, const std::string& sentence, const ReadOptions& options = {}) {
  const Result<ReadResult> read = ReadText("log", text, format, options);
  ASSERT_FALSE(read.ok()) << sentence;
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidData);
  EXPECT_EQ(read.status().message(), sentence);
}

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "wisp-readers-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }
  std::string MakeDatabase(const std::string& name, const std::string& sql) const {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open((*this / name).c_str(), &database), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(database);
    return *this / name;
  }

 private:
  std::string path_;
};

std::string ToldOfFile(const std::string& path, Format format = Format::kAuto, const ReadOptions& options = {}) {
  const Result<ReadResult> read = ReadSequences(path, format, options);
  return read.ok() ? Told(read->sequences) : "error: " + read.status().message();
}

TEST(UserItem, LinesInOrder_AreSequences) {
  EXPECT_EQ(ToldOf("1 10\n1 9\n2 10\n", Format::kUserItem), "1: 10 9; 2: 10");
  EXPECT_EQ(ToldOf("1 10\n2 10\n1 9\n", Format::kUserItem), "1: 10 9; 2: 10");
}

TEST(UserItem, AnyText_LineEndsBlanksAndMarks_AreTaken) {
  EXPECT_EQ(ToldOf("\xef\xbb\xbf"
                   "1 10\r\n\r\n  1\t \t9  \r\n\n2 10",
                   Format::kUserItem),
            "1: 10 9; 2: 10");
  EXPECT_EQ(ToldOf("j\xc3\xb6rg caf\xc3\xa9", Format::kUserItem), "j\xc3\xb6rg: caf\xc3\xa9");
}

TEST(UserItem, Report_CountsLines) {
  const Result<ReadResult> read = ReadText("log", "1 10\n\n1 10\n2 9", Format::kUserItem, {});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->report.num_lines, 4u);
  EXPECT_EQ(read->report.num_read, 3u);
  EXPECT_EQ(read->report.num_events, 3u);
  EXPECT_EQ(read->report.num_users, 2u);
  EXPECT_EQ(read->report.num_items, 2u);
  EXPECT_EQ(read->report.repeats, 1u);
  EXPECT_EQ(read->report.ties, 0u);
}

TEST(UserItem, BadLines_AreNamed) {
  ExpectRefused("1 10\n\n17\n", Format::kUserItem,
                "log, line 3: one field, '17'; allowed is a user and an item, separated by blanks");
  ExpectRefused("1 10 5\n", Format::kUserItem,
                "log, line 1: more than two fields, '1 10 5'; allowed is a user and an item, separated by blanks");
  ExpectRefused("1 1\0000\n"s, Format::kUserItem,
                "log, line 1: the item is '1?0' with byte 0 at 1; allowed is UTF-8 without control characters");
  ExpectRefused("1 a\n2 b\rc\n", Format::kUserItem,
                "log, line 2: the item is 'b?c' with byte 13 at 1; allowed is UTF-8 without control characters");
  ExpectRefused("\xc3\x28 1\n", Format::kUserItem,
                "log, line 1: the user is '?(' with byte 195 at 0; allowed is UTF-8 without control characters");
  ExpectRefused(
      "a " + std::string(257, 'k'), Format::kUserItem,
      "log, line 1: the item is 'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk...' of 257 bytes; allowed are 1 to 256");
  EXPECT_EQ(ToldOf("a " + std::string(256, 'k'), Format::kUserItem), "a: " + std::string(256, 'k'));
  ExpectRefused("1 2\n" + std::string((1 << 20) + 1, 'x'), Format::kUserItem,
                "log, line 2: 1048577 bytes without an end of the line; allowed are at most 1048576");
  ExpectRefused("", Format::kUserItem, "log: there is no event in it");
  ExpectRefused("\n \n\t\r\n", Format::kUserItem, "log: there is no event in it");
  ExpectRefused(
      "\xff\xfe"
      "1\0 \0002\0"s,
      Format::kUserItem, "log: it starts with the mark of UTF-16; allowed is UTF-8");
}

TEST(UserItem, NotUtf8_IsRefusedWhereverItIs) {
  // Overlong, surrogate, above U+10FFFF, cut, a continuation alone, delete.
  for (const char* key :
       {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x9f\x98", "\x80", "\x7f", "ab\xff"}) {
    EXPECT_FALSE(ReadText("log", "1 "s + key, Format::kUserItem, {}).ok()) << key;
    EXPECT_FALSE(ReadText("log", key + " 1"s, Format::kUserItem, {}).ok()) << key;
  }
  for (const char* key :
       {"\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(ReadText("log", "1 "s + key, Format::kUserItem, {}).ok()) << key;
  }
}

TEST(RatingsDat, Lines_AreSortedByTime) {
  EXPECT_EQ(ToldOf("1::10::5::30\n1::11::4.5::20\n2::10::1::-5\n2::12::1::-6\n", Format::kRatingsDat),
            "1: 11 10; 2: 12 10");
  EXPECT_EQ(ToldOf("1::10::5::30\n1::11::4::20\n", Format::kRatingsDat, {.time = TimeSource::kFileOrder}), "1: 10 11");
}

TEST(RatingsDat, BadLines_AreNamed) {
  ExpectRefused("1::2::3\n", Format::kRatingsDat,
                "log, line 1: 3 fields between '::', '1::2::3'; allowed is user::item::rating::timestamp");
  ExpectRefused("1::2::3::4::5\n", Format::kRatingsDat,
                "log, line 1: 5 fields between '::', '1::2::3::4::5'; allowed is user::item::rating::timestamp");
  ExpectRefused("1::2::3::4\n1::2::good::4\n", Format::kRatingsDat,
                "log, line 2: the rating is 'good'; allowed is a number");
  ExpectRefused("1::2::3::\n", Format::kRatingsDat,
                "log, line 1: the time is ''; allowed is a number between -9e18 and 9e18, such as 978300760");
  ExpectRefused(
      "1::2::3::99999999999999999999\n", Format::kRatingsDat,
      "log, line 1: the time is '99999999999999999999'; allowed is a number between -9e18 and 9e18, such as 978300760");
  ExpectRefused("::2::3::4\n", Format::kRatingsDat, "log, line 1: the user is empty; allowed are 1 to 256 bytes");
  ExpectRefused(std::string((1 << 20) + 1, ':'), Format::kRatingsDat,
                "log, line 1: 1048577 bytes without an end of the line; allowed are at most 1048576");
}

TEST(Csv, Columns_AreFoundByName) {
  EXPECT_EQ(ToldOf("time,price,item,user\n2,9,b,anna\n1,9,a,anna\n", Format::kCsv), "anna: a b");
  EXPECT_EQ(ToldOf("user_id,item_id,timestamp\nanna,a,1\n", Format::kCsv), "anna: a");
  EXPECT_EQ(ToldOf("who,what,when\nanna,b,2\nanna,a,1.5e0\n", Format::kCsv,
                   {.user_column = "who", .item_column = "what", .time_column = "when"}),
            "anna: a b");
  EXPECT_EQ(ToldOf("user,item\nanna,b\nanna,a\n", Format::kCsv, {.time = TimeSource::kFileOrder}), "anna: b a");
}

TEST(Csv, Quotes_FollowRfc4180) {
  EXPECT_EQ(ToldOf("user,item,time\r\n\"anna, b\",\"5\"\" disc\",1\r\n\"\"\"\",\"\"\"x\"\"\",\"2\"", Format::kCsv),
            "anna, b: 5\" disc; \": \"x\"");
  EXPECT_EQ(ToldOf("\xef\xbb\xbf\"user\",\"item\",\"time\"\nanna,a\"b,1\n\n", Format::kCsv), "anna: a\"b");
  // A quoted field over several lines, here one that is not used; the next record's line is still right.
  const std::string text = "user,item,time,note\na,b,1,\"one\ntwo\"\na,c,never,x\n";
  ExpectRefused(text, Format::kCsv,
                "log, line 4: the time is 'never'; allowed is a number between -9e18 and 9e18, such as 978300760");
}

TEST(Csv, BadTables_AreNamed) {
  ExpectRefused("", Format::kCsv, "log: it is empty; a header with the names of the columns is needed");
  ExpectRefused("\n\n", Format::kCsv, "log: it is empty; a header with the names of the columns is needed");
  ExpectRefused("user,item,time\n", Format::kCsv, "log: there is no event in it");
  ExpectRefused("user,thing,time\n", Format::kCsv,
                "log, line 1: there is no column 'item' or 'item_id'; the columns are 'user', 'thing', 'time'");
  ExpectRefused("user,item\na,b\n", Format::kCsv,
                "log, line 1: there is no column 'time' or 'timestamp'; the columns are 'user', 'item'");
  ExpectRefused("\nuser,item,time\n", Format::kCsv,
                "log, line 2: there is no column 'who'; the columns are 'user', 'item', 'time'",
                {.user_column = "who"});
  ExpectRefused("user,item,time,user\n", Format::kCsv,
                "log, line 1: the column 'user' is there twice; the columns are 'user', 'item', 'time', 'user'");
  ExpectRefused("user,item,time\na,b,1\na,b,1,2\n", Format::kCsv,
                "log, line 3: 4 fields, the first is 'a'; allowed are 3, as in the header");
  ExpectRefused("user,item,time\na,b\n", Format::kCsv,
                "log, line 2: 2 fields, the first is 'a'; allowed are 3, as in the header");
  ExpectRefused("user,item,time\n\"a,b,1\n", Format::kCsv,
                "log, line 2: a quoted field is not closed; a quote is needed after 'a,b,1?'");
  ExpectRefused("user,item,time\n\"a\"x,b,1\n", Format::kCsv,
                "log, line 2: 'x,b,1' follows a closing quote; allowed is a separator or the end of the line");
  ExpectRefused("user,item,time\na,\"b\nc\",1\n", Format::kCsv,
                "log, line 2: the item is 'b?c' with byte 10 at 1; allowed is UTF-8 without control characters");
  ExpectRefused("user,item,time\na,b,\"" + std::string(1 << 20, '\n') + "\"\n", Format::kCsv,
                "log, line 2: 1048582 bytes without an end of the line; allowed are at most 1048576");
}

TEST(Csv, Times_AreNumbers) {
  const std::string allowed = "; allowed is a number between -9e18 and 9e18, such as 978300760";
  for (const std::string bad :
       {"", " 1", "1 ", "+1", "0x10", "nan", "inf", "-inf", "9e18", "1e400", "2024-01-01", "1_0"}) {
    ExpectRefused("user,item,time\na,b," + bad + "\n", Format::kCsv,
                  "log, line 2: the time is '" + bad + "'" + allowed);
  }
  // The fraction is cut off towards the past, on both sides of zero: -0.5 comes before 0, 1.9 is 1.
  EXPECT_EQ(
      ToldOf("user,item,time\na,z,0\na,y,-0.5\na,x,1.9\na,w,1\na,v,9223372036854775807\na,u,-9223372036854775808\n",
             Format::kCsv),
      "a: u y z x w v");
}

TEST(Csv, Report_CountsHeaderAndLinesOfQuotedFields) {
  for (const char* end : {"", "\n"}) {
    const Result<ReadResult> read =
        ReadText("log", "user,item,time,n\na,b,1,\"x\ny\"\na,c,1,z"s + end, Format::kCsv, {});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->report.num_lines, 4u);
    EXPECT_EQ(read->report.num_read, 2u);
    EXPECT_EQ(read->report.ties, 1u);
  }
}

TEST(Tsv, CommasAndBlanks_AreContents) {
  EXPECT_EQ(ToldOf("user\titem\ttime\nanna b\tx, y\t1\n", Format::kTsv), "anna b: x, y");
  ExpectRefused("user,item,time\na,b,1\n", Format::kTsv,
                "log, line 1: there is no column 'user' or 'user_id'; the columns are 'user,item,time'");
}

TEST(Inter, TypedHeader_IsRead) {
  EXPECT_EQ(ToldOf("user_id:token\titem_id:token\trating:float\ttimestamp:float\n196\t242\t3\t881250950."
                   "0\n196\t51\t4\t881250949\n",
                   Format::kInter),
            "196: 51 242");
  EXPECT_EQ(
      ToldOf("session:token\titem_id:token\ttimestamp:float\n1\t2\t3\n", Format::kInter, {.user_column = "session"}),
      "1: 2");
}

TEST(Inter, BadHeaders_AreNamed) {
  ExpectRefused(
      "user_id\titem_id:token\n", Format::kInter,
      "log, line 1: the header has 'user_id'; allowed is name:type with type token, float, token_seq or float_seq");
  ExpectRefused("user_id:text\n", Format::kInter,
                "log, line 1: the header has 'user_id:text'; allowed is name:type with type token, float, token_seq or "
                "float_seq");
  ExpectRefused("user_id:token\titem_id:token\n", Format::kInter,
                "log, line 1: there is no column 'time' or 'timestamp'; the columns are 'user_id', 'item_id'");
  ExpectRefused("", Format::kInter, "log: it is empty; a header with the names of the columns is needed");
}

TEST(Sqlite, Rows_AreInTimeOrderThenRowid) {
  const Folder folder;
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
  const Folder folder;
  const std::string path = folder.MakeDatabase(
      "log.bin",  // found out by its first bytes
      "CREATE TABLE \"my \"\"log\"(\"who's\" INTEGER, what TEXT, at TEXT, PRIMARY KEY(at)) WITHOUT ROWID;"
      "INSERT INTO \"my \"\"log\" VALUES(7, 'b', '20'), (7, 'a', '3');"
      "CREATE VIEW seen AS SELECT \"who's\" AS user, what AS item, at AS time FROM \"my \"\"log\"");
  const ReadOptions options{.user_column = "who's", .item_column = "what", .time_column = "at", .table = "my \"log"};
  EXPECT_EQ(ToldOfFile(path, Format::kAuto, options), "7: a b");
  EXPECT_EQ(ToldOfFile(path, Format::kSqlite, {.table = "seen"}), "7: a b");
}

TEST(Sqlite, BadTables_AreNamed) {
  const Folder folder;
  const std::string path =
      folder.MakeDatabase("log.db",
                          "CREATE TABLE events(user, item, time); CREATE TABLE other(x, y);"
                          "CREATE TABLE nulls(user, item, time); INSERT INTO nulls VALUES('a','b',1),('a',NULL,1);"
                          "CREATE TABLE blobs(user, item, time); INSERT INTO blobs VALUES(x'00','b',1);"
                          "CREATE TABLE times(user, item, time); INSERT INTO times VALUES('a','b','soon');"
                          "CREATE TABLE gone(user, item, time); INSERT INTO gone VALUES('a','b',NULL);"
                          "CREATE TABLE huge(user, item, time); INSERT INTO huge VALUES('a',hex(zeroblob(700000)),1)");
  const auto told = [&](const std::string& table) { return ToldOfFile(path, Format::kSqlite, {.table = table}); };
  EXPECT_EQ(told("events"), "error: " + path + ": there is no event in it");
  EXPECT_EQ(
      told("event"),
      "error: " + path +
          ": there is no table 'event'; the tables are 'events', 'other', 'nulls', 'blobs', 'times', 'gone', 'huge'");
  EXPECT_EQ(told("other"),
            "error: " + path + ", table other: there is no column 'user' or 'user_id'; the columns are 'x', 'y'");
  EXPECT_EQ(told("nulls"),
            "error: " + path + ", table nulls, row 2: the item is NULL; allowed is a TEXT or an INTEGER");
  EXPECT_EQ(told("blobs"),
            "error: " + path + ", table blobs, row 1: the user is a BLOB; allowed is a TEXT or an INTEGER");
  EXPECT_EQ(
      told("times"),
      "error: " + path +
          ", table times, row 1: the time is 'soon'; allowed is a number between -9e18 and 9e18, such as 978300760");
  EXPECT_EQ(told("gone"), "error: " + path + ", table gone, row 1: the time is NULL; allowed is a number");
  EXPECT_EQ(told("huge"), "error: " + path + ": cannot be read as a SQLite database: string or blob too big");
  EXPECT_EQ(ToldOfFile(folder.MakeDatabase("empty.db", "CREATE TABLE t(x); DROP TABLE t"), Format::kSqlite),
            "error: " + (folder / "empty.db") + ": there is no table 'events'; there is none at all");
  EXPECT_EQ(
      ToldOfFile(folder.Write(
          "text.db",
          "no database, but longer than the header of one would have been........................................")),
      "error: " + (folder / "text.db") + ": cannot be read as a SQLite database: file is not a database");
}

TEST(Sqlite, Reading_LeavesNothingBehindAndCreatesNothing) {
  const Folder folder;
  const Result<ReadResult> read = ReadSequences(folder / "none.db", Format::kSqlite, {});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), StatusCode::kIo);
  EXPECT_NE(read.status().message().find("none.db"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "none.db"));
}

// SQLite's locks belong to the process: closing any other descriptor of the file drops them, and so would looking into
// the file with open and close. Another process must find the lock of a transaction after a read within it.
TEST(Sqlite, ReadingALogThatThisProcessHasOpen_KeepsItsLocks) {
  constexpr off_t kReservedByte = 0x40000001;  // of SQLite's file format
  const Folder folder;
  const std::string path =
      folder.MakeDatabase("log.db", "CREATE TABLE events(user, item, time); INSERT INTO events VALUES('a','b',1)");
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &writer), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(writer, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(ToldOfFile(path), "a: b");
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

TEST(Sqlite, EventLog_IsReadWhileItIsOpen) {
  const Folder folder;
  Result<EventLog> log = EventLog::Open(folder / "events.db");
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_TRUE(log->Append({.user = "anna", .item = "tea", .time = 2}).ok());
  ASSERT_TRUE(log->Append({.user = "anna", .item = "cake", .time = 1}).ok());
  EXPECT_EQ(ToldOfFile(folder / "events.db"), "anna: cake tea");
  ASSERT_TRUE(log->Append({.user = "anna", .item = "soup", .time = 3}).ok());
  EXPECT_EQ(ToldOfFile(folder / "events.db"), "anna: cake tea soup");
}

TEST(EventLog, WhatTheReaderWouldRefuse_DoesNotGetIn) {
  const Folder folder;
  Result<EventLog> log = EventLog::Open(folder / "events.db");
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE(log->Append({.user = "anna", .item = "tea", .time = 1}).ok());
  for (const std::string& bad : {""s, "a\nb"s, "\xff"s, std::string(257, 'k'), "a\0b"s}) {
    EXPECT_EQ(log->Append({.user = "anna", .item = bad, .time = 2}).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(log->Append({.user = bad, .item = "tea", .time = 2}).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(log->Append({.user = "anna", .item = "a\tb", .time = 2}).message(),
            "event log '" + (folder / "events.db") +
                "': the item is 'a?b' with byte 9 at 1; allowed is UTF-8 without control characters");
  EXPECT_EQ(ToldOfFile(folder / "events.db"), "anna: tea");
}

TEST(ReadSequences, Auto_GoesByNameThenByFirstBytes) {
  const Folder folder;
  EXPECT_EQ(ToldOfFile(folder.Write("a.csv", "user,item,time\nu,i,1\n")), "u: i");
  EXPECT_EQ(ToldOfFile(folder.Write("a.tsv", "user\titem\ttime\nu\ti\t1\n")), "u: i");
  EXPECT_EQ(ToldOfFile(folder.Write("a.inter", "user_id:token\titem_id:token\ttimestamp:float\nu\ti\t1\n")), "u: i");
  EXPECT_EQ(ToldOfFile(folder.Write("b.txt", "user_id:token\titem_id:token\ttimestamp:float\nu\ti\t1\n")), "u: i");
  EXPECT_EQ(ToldOfFile(folder.Write("ratings.dat", "u::i::3::1\n")), "u: i");
  EXPECT_EQ(ToldOfFile(folder.Write("b.dat", "u i\n")), "u: i");
  EXPECT_EQ(ToldOfFile(folder.Write("c.txt", "u::i\n")),
            "error: " + (folder / "c.txt") +
                ", line 1: one field, 'u::i'; allowed is a user and an item, separated by blanks");
  EXPECT_EQ(ToldOfFile(folder.Write("a.txt", "u a::b::c::d\n")), "u: a::b::c::d");
}

TEST(ReadSequences, FilesThatAreNone_AreNamed) {
  const Folder folder;
  const Result<ReadResult> missing = ReadSequences(folder / "none.txt", Format::kAuto, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), StatusCode::kIo);
  EXPECT_EQ(missing.status().message(), (folder / "none.txt") + ": cannot be opened: No such file or directory");
  EXPECT_EQ(ReadSequences(folder / ".", Format::kAuto, {}).status().code(), StatusCode::kIo);
  EXPECT_EQ(ReadSequences("", Format::kSqlite, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ToldOfFile(folder.Write("empty.txt", "")),
            "error: " + (folder / "empty.txt") + ": there is no event in it");
}

TEST(Format, Names_GoBothWays) {
  for (const char* name : {"auto", "user-item", "ratings-dat", "csv", "tsv", "inter", "sqlite"}) {
    const Result<Format> format = ParseFormat(name);
    ASSERT_TRUE(format.ok());
    EXPECT_STREQ(FormatName(*format), name);
  }
  EXPECT_EQ(ParseFormat("xls").status().message(),
            "the format is 'xls'; allowed are auto, user-item, ratings-dat, csv, tsv, inter, sqlite");
  EXPECT_EQ(ReadText("log", "1 2", Format::kSqlite, {}).status().code(), StatusCode::kInvalidArgument);
}

// Bytes that a format cares about, at random; and valid files with random damage.
class Noise {
 public:
  explicit Noise(uint32_t seed) : random_(seed) {}
  std::string Bytes(size_t most) {
    static constexpr std::string_view kLikely = "\"\"\n\n\r\t\t,,:::: 0123456789-+.e\0ab\xc3\xa9\xff"sv;
    std::string bytes(random_() % (most + 1), ' ');
    for (char& c : bytes) c = random_() % 8 == 0 ? static_cast<char>(random_()) : kLikely[random_() % kLikely.size()];
    return bytes;
  }
  std::string Damage(std::string text) {
    for (uint32_t n = 1 + random_() % 4; n > 0 && !text.empty(); --n) {
      const size_t at = random_() % text.size();
      switch (random_() % 3) {
        case 0: text[at] = Bytes(1).append("\"")[0]; break;
        case 1: text.erase(at, random_() % 5); break;
        default: text.insert(at, Bytes(3)); break;
      }
    }
    return text;
  }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

 private:
  std::mt19937 random_;
};

// Either an error with a sentence, or sequences that are what they must be.
void ExpectSound(const Result<ReadResult>& read) {
  if (!read.ok()) {
    EXPECT_FALSE(read.status().message().empty());
    return;
  }
  const Sequences& s = read->sequences;
  ASSERT_EQ(s.offsets.front(), 0u);
  ASSERT_EQ(s.offsets.back(), s.items.size());
  ASSERT_EQ(s.user_keys.size(), s.num_users());
  ASSERT_EQ(read->report.num_events, s.items.size());
  for (size_t u = 0; u < s.num_users(); ++u) ASSERT_LT(s.offsets[u], s.offsets[u + 1]);
  for (int32_t item : s.items) ASSERT_TRUE(item >= 0 && static_cast<size_t>(item) < s.num_items());
}

TEST(AllTextReaders, RandomBytesAndDamage_AreRefusedOrSound) {
  const std::string valid[] = {"1 10\n1 9\n2 10\n", "1::10::5::30\n1::11::4::20\n",
                               "user,item,time\n\"a\"\"b\",b,1\na,\"c\nd\",2\n", "user\titem\ttime\na\tb\t1\na\tc\t2\n",
                               "user_id:token\titem_id:token\ttimestamp:float\n1\t2\t3\n1\t3\t4.5\n"};
  const Format formats[] = {Format::kUserItem, Format::kRatingsDat, Format::kCsv, Format::kTsv, Format::kInter};
  constexpr uint32_t kSeed = 20240607;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Noise noise(kSeed);
  int sound = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const size_t f = noise.Below(5);
    const std::string text = round % 4 == 0 ? noise.Bytes(200) : noise.Damage(valid[f]);
    // An exact copy on the heap, so that a sanitizer sees a read past the end.
    const std::vector<char> exact(text.begin(), text.end());
    const ReadOptions options{.min_user_events = 1 + noise.Below(2),
                              .time = noise.Below(2) == 0 ? TimeSource::kColumn : TimeSource::kFileOrder};
    const Result<ReadResult> read = ReadText("noise", {exact.data(), exact.size()}, formats[f], options);
    ExpectSound(read);
    ++(read.ok() ? sound : refused);
  }
  EXPECT_GT(sound, 1000);  // else the damage hides everything behind the first line
  EXPECT_GT(refused, 1000);
}

TEST(Sqlite, RandomDamage_IsRefusedOrSound) {
  const Folder folder;
  std::string sql =
      "PRAGMA page_size=512; CREATE TABLE events(user, item, time); CREATE INDEX i ON events(user, time);";
  for (int i = 0; i < 60; ++i)
    sql += "INSERT INTO events VALUES('u" + std::to_string(i % 7) + "', 'item" + std::to_string(i) + "', " +
           std::to_string(i) + ");";
  std::ifstream in(folder.MakeDatabase("good.db", sql), std::ios::binary);
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
}  // namespace wisp::data
