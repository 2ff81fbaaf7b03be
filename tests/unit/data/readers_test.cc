// Every format of text: what is read, what is refused and with which message. sqlite_reader_test.cc tests SQLite.
#include "runtime/data/readers.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/data/readers_test_util.h"

namespace wisp::data::readers_test {
namespace {

using std::string_literals::operator""s;

std::string Told(std::string_view text, Format format, const ReadOptions& options = {}) {
  const Result<ReadResult> read = ReadText("log", text, format, options);
  return read.ok() ? Told(read->sequences) : "error: " + read.status().message();
}

// Compares the whole sentence: a test of its parts would miss a sentence that reads badly.
void ExpectRefused(std::string_view text, Format format, const std::string& sentence, const ReadOptions& options = {}) {
  const Result<ReadResult> read = ReadText("log", text, format, options);
  ASSERT_FALSE(read.ok()) << sentence;
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidData);
  EXPECT_EQ(read.status().message(), sentence);
}

TEST(UserItem, LinesInOrder_AreSequences) {
  EXPECT_EQ(Told("1 10\n1 9\n2 10\n", Format::kUserItem), "1: 10 9; 2: 10");
  EXPECT_EQ(Told("1 10\n2 10\n1 9\n", Format::kUserItem), "1: 10 9; 2: 10");
}

TEST(UserItem, AnyText_LineEndsBlanksAndMarks_AreTaken) {
  EXPECT_EQ(Told("\xef\xbb\xbf"
                 "1 10\r\n\r\n  1\t \t9  \r\n\n2 10",
                 Format::kUserItem),
            "1: 10 9; 2: 10");
  EXPECT_EQ(Told("j\xc3\xb6rg caf\xc3\xa9", Format::kUserItem), "j\xc3\xb6rg: caf\xc3\xa9");
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
  EXPECT_EQ(Told("a " + std::string(256, 'k'), Format::kUserItem), "a: " + std::string(256, 'k'));
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
  // Overlong, surrogate, above U+10FFFF, cut off, a single continuation byte, delete.
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
  EXPECT_EQ(Told("1::10::5::30\n1::11::4.5::20\n2::10::1::-5\n2::12::1::-6\n", Format::kRatingsDat),
            "1: 11 10; 2: 12 10");
  EXPECT_EQ(Told("1::10::5::30\n1::11::4::20\n", Format::kRatingsDat, {.time = TimeSource::kFileOrder}), "1: 10 11");
}

TEST(RatingsDat, BadLines_AreNamed) {
  ExpectRefused("1::2::3\n", Format::kRatingsDat,
                "log, line 1: 3 fields between '::', '1::2::3'; allowed is user::item::rating::timestamp");
  ExpectRefused("1::2::3::4::5\n", Format::kRatingsDat,
                "log, line 1: 5 fields between '::', '1::2::3::4::5'; allowed is user::item::rating::timestamp");
  ExpectRefused("1::2::3::4\n1::2::good::4\n", Format::kRatingsDat,
                "log, line 2: the rating is 'good'; allowed is a number");
  ExpectRefused("1::2::3::\n", Format::kRatingsDat, "log, line 1: the time is ''" + kAllowedTimes);
  ExpectRefused("1::2::3::99999999999999999999\n", Format::kRatingsDat,
                "log, line 1: the time is '99999999999999999999'" + kAllowedTimes);
  ExpectRefused("::2::3::4\n", Format::kRatingsDat, "log, line 1: the user is empty; allowed are 1 to 256 bytes");
  ExpectRefused(std::string((1 << 20) + 1, ':'), Format::kRatingsDat,
                "log, line 1: 1048577 bytes without an end of the line; allowed are at most 1048576");
}

TEST(Csv, Columns_AreFoundByName) {
  EXPECT_EQ(Told("time,price,item,user\n2,9,b,anna\n1,9,a,anna\n", Format::kCsv), "anna: a b");
  EXPECT_EQ(Told("user_id,item_id,timestamp\nanna,a,1\n", Format::kCsv), "anna: a");
  EXPECT_EQ(Told("who,what,when\nanna,b,2\nanna,a,1.5e0\n", Format::kCsv,
                 {.user_column = "who", .item_column = "what", .time_column = "when"}),
            "anna: a b");
  EXPECT_EQ(Told("user,item\nanna,b\nanna,a\n", Format::kCsv, {.time = TimeSource::kFileOrder}), "anna: b a");
}

TEST(Csv, Quotes_FollowRfc4180) {
  EXPECT_EQ(Told("user,item,time\r\n\"anna, b\",\"5\"\" disc\",1\r\n\"\"\"\",\"\"\"x\"\"\",\"2\"", Format::kCsv),
            "anna, b: 5\" disc; \": \"x\"");
  EXPECT_EQ(Told("\xef\xbb\xbf\"user\",\"item\",\"time\"\nanna,a\"b,1\n\n", Format::kCsv), "anna: a\"b");
  // A quoted field over several lines, here in an unused column; the line number of the next record is still right.
  const std::string text = "user,item,time,note\na,b,1,\"one\ntwo\"\na,c,never,x\n";
  ExpectRefused(text, Format::kCsv, "log, line 4: the time is 'never'" + kAllowedTimes);
}

TEST(Csv, BadTables_AreNamed) {
  ExpectRefused("", Format::kCsv, "log: it is empty; a header with the names of the columns is needed");
  ExpectRefused("\n\n", Format::kCsv, "log: it is empty; a header with the names of the columns is needed");
  ExpectRefused("user,item,time\n", Format::kCsv, "log: there is no event in it");
  ExpectRefused("user,thing,time\n", Format::kCsv,
                "log, line 1: there is no column 'item' or 'item_id'; the columns are 'user', 'thing', 'time'; "
                "`item_column` says which it is");
  ExpectRefused("user,item\na,b\n", Format::kCsv,
                "log, line 1: there is no column 'time' or 'timestamp'; the columns are 'user', 'item'; `time_column` "
                "says which it is" +
                    kTimesNeeded);
  ExpectRefused(
      "\nuser,item,time\n", Format::kCsv,
      "log, line 2: there is no column 'who'; the columns are 'user', 'item', 'time'; `user_column` says which it is",
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

TEST(Csv, OtherSeparators_AreNamed) {
  const std::string header = "log, line 1: the header is one column, ";
  ExpectRefused("user;item;time\na;b;1\n", Format::kCsv,
                header +
                    "'user;item;time'; the separator seems to be ';'; allowed are ',' (the format csv) and a tab (the "
                    "format tsv)");
  ExpectRefused("user|item|time\na|b|1\n", Format::kTsv,
                header +
                    "'user|item|time'; the separator seems to be '|'; allowed are ',' (the format csv) and a tab (the "
                    "format tsv)");
  ExpectRefused("user\titem\ttime\n", Format::kCsv,
                header +
                    "'user?item?time'; the separator seems to be a tab; allowed is ',' here, tabs are the format tsv");
  ExpectRefused(
      "user\n", Format::kCsv,
      "log, line 1: there is no column 'item' or 'item_id'; the columns are 'user'; `item_column` says which it is");
  EXPECT_EQ(Told("user,item,time,a;b\nanna,x;y,1,\n", Format::kCsv), "anna: x;y");
}

TEST(Csv, Times_AreNumbers) {
  for (const std::string bad :
       {"", " 1", "1 ", "+1", "0x10", "nan", "inf", "-inf", "9e18", "1e400", "1_0", "27.11.2026", "2026-02-29"}) {
    ExpectRefused("user,item,time\na,b," + bad + "\n", Format::kCsv,
                  "log, line 2: the time is '" + bad + "'" + kAllowedTimes);
  }
  // The fraction is cut off towards the past, on both sides of zero: -0.5 comes before 0, 1.9 is 1.
  EXPECT_EQ(Told("user,item,time\na,z,0\na,y,-0.5\na,x,1.9\na,w,1\na,v,9223372036854775807\na,u,-9223372036854775808\n",
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

// A blank in an object or a list would split it into two fields.
TEST(UserItem, Json_IsRefused) {
  for (const std::string line : {R"({"user": "a"})", R"({"user":"a", "item":"b"})", "[1, 2]", R"( {"user": 1}, )"}) {
    ExpectRefused(line + "\n", Format::kUserItem,
                  "log, line 1: '" + line + "' is JSON; allowed is a user and an item, separated by blanks");
  }
  EXPECT_EQ(Told("{a b\n[1] {x}y\n", Format::kUserItem), "{a: b; [1]: {x}y") << "keys may begin so";
}

TEST(Tsv, AQuoteThatEndsNoField_StandsForItself) {
  const std::string header = "user\titem\ttime\n";
  for (const Format format : {Format::kTsv, Format::kInter}) {
    const std::string head = format == Format::kTsv ? header : "user:token\titem:token\ttime:float\n";
    EXPECT_EQ(Told(head + "a\t\"Best\" tea\t1\na\t\"open\t2\nb\t\"\t3\n", format), "a: \"Best\" tea \"open; b: \"");
    EXPECT_EQ(Told(head + "a\t\"one\"\t1\na\t\"t\"\"wo\"\t2\r\n", format), "a: one t\"wo");
  }
  ReadOptions by_order{.time = TimeSource::kFileOrder};
  EXPECT_EQ(Told("user\titem\na\t\"last\"", Format::kTsv, by_order), "a: last");
}

// One letter written as one character and as two gives two keys.
TEST(AllTextReaders, AccentsAsCharactersOfTheirOwn_AreReported) {
  const auto read = ReadText("log", "a caf\xc3\xa9\nb cafe\xcc\x81\nb cafe\xcc\x81\n", Format::kUserItem, {});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->report.num_items, 2u);
  const std::vector<std::string> warnings = Warnings(read->report);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0],
            "1 key with accents as characters of their own, the first 'cafe\xcc\x81': the same letters "
            "written as one character are another key; write all in one form of Unicode (NFC)");
}

// Each event has its time, in the order of the file.
TEST(ReadEvents, GivesWhatTheFileHas) {
  const LogFolder folder;
  const auto told = [](const Result<std::vector<Event>>& events) {
    if (!events.ok()) return "error: " + events.status().message();
    std::string text;
    for (const Event& e : *events) text += e.user + " " + e.item + " " + std::to_string(e.time) + "; ";
    return text;
  };
  EXPECT_EQ(told(ReadEvents(folder.Write("a.csv", "user,item,time\nb,x,5\na,y,3\nb,x,5\n"), Format::kAuto, {})),
            "b x 5; a y 3; b x 5; ");
  EXPECT_EQ(told(ReadEvents(folder.Write("a.txt", "b x\na y\n"), Format::kAuto, {})), "b x 1; a y 2; ");
  const std::string bad = folder.Write("bad.csv", "user,item,time\nb,x,5\na,,3\n");
  EXPECT_EQ(told(ReadEvents(bad, Format::kAuto, {})),
            "error: " + bad + ", line 3: the item is empty; allowed are 1 to 256 bytes");
  EXPECT_EQ(told(ReadEvents(folder.MakeDatabase("a.db",
                                                "CREATE TABLE events(user, item, time); "
                                                "INSERT INTO events VALUES('b', 'x', 7)"),
                            Format::kAuto, {})),
            "b x 7; ");
}

TEST(Tsv, CommasAndBlanks_AreContents) {
  EXPECT_EQ(Told("user\titem\ttime\nanna b\tx, y\t1\n", Format::kTsv), "anna b: x, y");
  ExpectRefused("user,item,time\na,b,1\n", Format::kTsv,
                "log, line 1: the header is one column, 'user,item,time'; the separator seems to be ','; allowed is a "
                "tab here, commas are the format csv");
}

TEST(Inter, TypedHeader_IsRead) {
  EXPECT_EQ(Told("user_id:token\titem_id:token\trating:float\ttimestamp:float\n196\t242\t3\t881250950."
                 "0\n196\t51\t4\t881250949\n",
                 Format::kInter),
            "196: 51 242");
  EXPECT_EQ(
      Told("session:token\titem_id:token\ttimestamp:float\n1\t2\t3\n", Format::kInter, {.user_column = "session"}),
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
                "log, line 1: there is no column 'time' or 'timestamp'; the columns are 'user_id', 'item_id'; "
                "`time_column` says which it is" +
                    kTimesNeeded);
  ExpectRefused("", Format::kInter, "log: it is empty; a header with the names of the columns is needed");
}

// A refusal would reveal the one record with such a row.
TEST(AllTextReaders, PrivateRun_LeavesOutBadRowsEachForItself) {
  struct Case {
    Format format;
    std::string_view text;
    std::string_view first;
    uint64_t bad;
  };
  const Case cases[] = {
      {Format::kUserItem, "1 10\n17\n1 10 5\n2 \xff\n2 \xff\n1 9\n",
       "log, line 2: one field, '17'; allowed is a user and an item, separated by blanks", 4},
      {Format::kRatingsDat, "1::10::5::100\n1::7::good::101\n1::7::5::soon\n1::7::5\n1::9::5::102\n",
       "log, line 2: the rating is 'good'; allowed is a number", 3},
      {Format::kCsv, "user,item,time\n1,10,1\n1,7,soon\n1,7\n,7,2\n1,9,3\n",
       "log, line 3: the time is 'soon'; allowed is a number between -9e18 and 9e18, such as 978300760 (seconds), or a "
       "date of ISO 8601, such as 2026-11-27T09:30:00Z",
       3},
      {Format::kInter, "user_id:token\titem_id:token\ttimestamp:float\n1\t10\t1\n1\t\t2\n1\t9\t3\n",
       "log, line 3: the item is empty; allowed are 1 to 256 bytes", 1},
  };
  for (const Case& c : cases) {
    EXPECT_FALSE(ReadText("log", c.text, c.format, {}).ok()) << FormatName(c.format);
    const Result<ReadResult> read = ReadText("log", c.text, c.format, {.private_run = true});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(Told(read->sequences), "1: 10 9") << FormatName(c.format);
    EXPECT_EQ(read->report.bad_rows, c.bad) << FormatName(c.format);
    EXPECT_EQ(read->report.first_bad_row, c.first);
    EXPECT_EQ(read->report.num_read, 2u);
    ASSERT_EQ(Warnings(read->report).size(), 1u);
  }
  EXPECT_FALSE(ReadText("log", "17\n", Format::kUserItem, {.private_run = true}).ok())
      << "no item, and no catalogue given";
}

// A log with many rows, none of them readable, is an error before anything is charged. A few unreadable rows are not:
// they count like an empty log.
TEST(ReadText, PrivateRun_ALogInAnotherFormatIsAnError) {
  const std::vector<std::string> keys = {"10"};
  const ItemIndex known = *ItemIndex::Make("model", keys);
  const ReadOptions options{.known_items = &known, .private_run = true};
  const std::string header = "user,item,time\n";
  std::string few, bad;
  for (int i = 0; i < 20; ++i) few = bad, bad += "1,10,27.11.2026\n";
  const Result<ReadResult> read = ReadText("log", header + bad, Format::kCsv, options);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidData);
  EXPECT_EQ(read.status().message(),
            "log: 20 of its 20 rows cannot be read, so nothing can be learned from it (local only). The first: log, "
            "line 2: the time is '27.11.2026'" +
                kAllowedTimes);
  for (const std::string& text : {header, header + "1,10,27.11.2026\n", header + few, header + bad + "3,10,5\n",
                                  header + bad + "3,11,5\n", header + bad + "1,,5\n", header + bad + ",10,5\n"})
    EXPECT_TRUE(ReadText("log", text, Format::kCsv, options).ok()) << text;
  ReadOptions days = options;
  days.units.unit = RecordUnit::kDay;  // milliseconds that are read as seconds
  std::string milliseconds;
  for (int i = 0; i < 200; ++i) milliseconds += "u" + std::to_string(i) + ",10,1795768200000\n";
  const Status refused = ReadText("log", header + milliseconds, Format::kCsv, days).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidData);
  EXPECT_EQ(refused.message(),
            "log: 200 of its 200 rows cannot be read, so nothing can be learned from it (local only). The first: log: "
            "the time of an event is 1795768200000, which is not between 1970 and 2223 with 1 to the second; units "
            "smaller than a user need to know how many times make a second");
  // If some times are in range, the others are errors of a clock.
  const Result<ReadResult> late = ReadText("log", header + milliseconds + "u1,10,5\nu200,10,6\n", Format::kCsv, days);
  ASSERT_TRUE(late.ok()) << late.status().message();
  EXPECT_EQ(late->report.bad_rows, 200u);
  EXPECT_EQ(late->report.num_events, 2u);
}

// It is also an error if most users have another form, as after an app's update: a training session would learn from
// old data alone. One user with many such rows is not an error, nor are rows without a user, as for guests who are not
// signed in.
TEST(ReadText, PrivateRun_ALogWithMostUsersInAnotherFormIsAnError) {
  const std::vector<std::string> keys = {"10"};
  const ItemIndex known = *ItemIndex::Make("model", keys);
  const auto log = [](uint64_t good, uint64_t bad, const std::string& row, const char* user = "") {
    std::string text = "user,item,time\n";
    for (uint64_t i = 0; i < good; ++i) text += "u" + std::to_string(i) + ",10,5\n";
    for (uint64_t i = 0; i < bad; ++i) text += (*user == '\0' ? "" : user + std::to_string(i)) + row;
    return text;
  };
  const auto read = [&](const std::string& text, RecordUnit unit) {
    return ReadText("log", text, Format::kCsv, {.known_items = &known, .units = {.unit = unit}, .private_run = true});
  };
  constexpr auto kUser = RecordUnit::kUser;
  const std::string dotted = ",10,27.11.2026\n";
  EXPECT_EQ(read(log(14, 15, dotted, "a"), kUser).status().message(),
            "log: 15 of its 29 users cannot be read, so nothing can be learned from it (local only). The first: log, "
            "line 16: the time is '27.11.2026'" +
                kAllowedTimes);
  EXPECT_TRUE(read(log(15, 15, dotted, "a"), kUser).ok());
  EXPECT_TRUE(read(log(15, 20, dotted, "u"), kUser).ok()) << "users of whom another row can be read";
  EXPECT_FALSE(read(log(9, 11, dotted, "a"), kUser).ok());
  EXPECT_TRUE(read(log(8, 11, dotted, "a"), kUser).ok()) << "too few users to say anything";
  // The number of rows of one user does not matter. If a row lacks a column, its user is unknown.
  for (const std::string& row : {"a" + dotted, std::string("a,10\n"), std::string(",10,5\n"), std::string("a,,5\n"),
                                 "a" + std::string(300, 'b') + ",10,5\n"})
    EXPECT_TRUE(read(log(1, 1000, row), kUser).ok()) << row;
  for (const char* row : {",,5\n", ",10,1795768200000\n", ",10,-5\n"})
    EXPECT_TRUE(read(log(1, 1000, row, "a"), RecordUnit::kDay).ok()) << row;
}

TEST(ReadText, PrivateRun_SessionsOfATextAreRefused) {
  const ReadOptions options{.units = {.unit = RecordUnit::kSession, .session_gap = 10}, .private_run = true};
  const Status refused = ReadText("log", "user,item,time\nu,a,1\n", Format::kCsv, options).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("allowed is an SQLite log"), std::string::npos) << refused.message();
}

// All other users are read without u1, so they must be read with u1 too.
TEST(Csv, PrivateRun_AQuoteTakesInNobodyElse) {
  const std::string others = "u2,b,2\nu3,c,3\nu4,d\",4\n", header = "user,item,time\n";
  const ReadOptions options{.private_run = true};
  const std::string alone = Told(header + others, Format::kCsv, options);
  EXPECT_EQ(alone, "u2: b; u3: c; u4: d\"");
  for (const char* line : {"u1,\"a,1\n", "u1,\"a\" b,1\n", "\"u1,a,1\n", "u1,a,\"1\n"}) {
    for (const std::string& text : {header + line + others, header + others + line})
      EXPECT_EQ(Told(text, Format::kCsv, options), alone) << text;
  }
  const Result<ReadResult> read = ReadText("log", header + "u1,\"a,1\n\n" + others, Format::kCsv, options);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->report.bad_rows, 1u);
  EXPECT_EQ(read->report.num_lines, 6u);
  EXPECT_EQ(read->report.first_bad_row, "log, line 2: a quoted field is not closed; a quote is needed after 'a,1?'");
  EXPECT_EQ(Told(header + "u1,\"a,b\",1\n", Format::kCsv, options), "u1: a,b");
}

TEST(ReadSequences, Auto_GoesByNameThenByFirstBytes) {
  const LogFolder folder;
  EXPECT_EQ(ReadFileAndTell(folder.Write("a.csv", "user,item,time\nu,i,1\n")), "u: i");
  EXPECT_EQ(ReadFileAndTell(folder.Write("a.tsv", "user\titem\ttime\nu\ti\t1\n")), "u: i");
  EXPECT_EQ(ReadFileAndTell(folder.Write("a.inter", "user_id:token\titem_id:token\ttimestamp:float\nu\ti\t1\n")),
            "u: i");
  EXPECT_EQ(ReadFileAndTell(folder.Write("b.txt", "user_id:token\titem_id:token\ttimestamp:float\nu\ti\t1\n")), "u: i");
  EXPECT_EQ(ReadFileAndTell(folder.Write("EVENTS.CSV", "user,item,time\nu,i,1\n")), "u: i");
  EXPECT_EQ(ReadFileAndTell(folder.MakeDatabase("LOG.DB",
                                                "CREATE TABLE events(user, item, time); "
                                                "INSERT INTO events VALUES('u', 'i', 7)")),
            "u: i");
  EXPECT_EQ(ReadFileAndTell(folder.Write("ratings.dat", "u::i::3::1\n")), "u: i");
  EXPECT_EQ(ReadFileAndTell(folder.Write("b.dat", "u i\n")), "u: i");
  EXPECT_EQ(ReadFileAndTell(folder.Write("c.txt", "u::i\n")),
            "error: " + (folder / "c.txt") +
                ", line 1: one field, 'u::i'; allowed is a user and an item, separated by blanks");
  EXPECT_EQ(ReadFileAndTell(folder.Write("a.txt", "u a::b::c::d\n")), "u: a::b::c::d");
}

// The first row belongs to one record.
TEST(ReadSequences, PrivateRun_GoesByTheNameAlone) {
  const LogFolder folder;
  const auto told = [&](const std::string& name, const std::string& text) {
    const Result<ReadResult> read = ReadSequences(folder.Write(name, text), Format::kAuto, {.private_run = true});
    return read.ok() ? Told(read->sequences) : "error: " + read.status().message();
  };
  EXPECT_EQ(told("ratings.dat", "1::2::5\nu::i::3::1\n"), "u: i");
  EXPECT_EQ(told("log.txt", "u::i::3::1\nv j\n"), "v: j");
  EXPECT_TRUE(told("log", "u i\n").find("its name does not say which format it has") != std::string::npos)
      << told("log", "u i\n");
}

TEST(ReadSequences, MissingFiles_AreNamed) {
  const LogFolder folder;
  const Result<ReadResult> missing = ReadSequences(folder / "none.txt", Format::kAuto, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), StatusCode::kIo);
  EXPECT_EQ(missing.status().message(), (folder / "none.txt") + ": cannot be opened: No such file or directory");
  EXPECT_EQ(ReadSequences(folder / ".", Format::kAuto, {}).status().code(), StatusCode::kIo);
  EXPECT_EQ(ReadSequences("", Format::kSqlite, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadFileAndTell(folder.Write("empty.txt", "")),
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
    // An exact copy on the heap lets a sanitizer see a read past the end.
    const std::vector<char> exact(text.begin(), text.end());
    const ReadOptions options{.min_user_events = 1 + noise.Below(2),
                              .time = noise.Below(2) == 0 ? TimeSource::kColumn : TimeSource::kFileOrder};
    const Result<ReadResult> read = ReadText("noise", {exact.data(), exact.size()}, formats[f], options);
    ExpectSound(read);
    ++(read.ok() ? sound : refused);
  }
  EXPECT_GT(sound, 1000);  // otherwise the damage would hide everything after the first line
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace wisp::data::readers_test
