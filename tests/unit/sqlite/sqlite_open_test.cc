// Files beside a database may be planted: opening a log or a ledger never deletes, writes or waits for other files.
#include "runtime/sqlite/open.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/data/event_log.h"
#include "runtime/data/readers.h"
#include "runtime/privacy/ledger/ledger.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"
#include "tests/unit/sqlite/no_locks_vfs.h"

namespace wisp::sqlite_open_test {
namespace {

namespace fs = std::filesystem;
constexpr int kTestSeconds = 20;

std::string GetBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string BigEndian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

const std::string kMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";

// Returns a journal that SQLite plays back: it restores no page, and names `super`, unless that is empty.
std::string Journal(const std::string& super) {
  std::string journal = kMagic + BigEndian(0) + BigEndian(7) + BigEndian(1) + BigEndian(512) + BigEndian(4096);
  journal.resize(512);
  if (super.empty()) return journal;
  uint32_t sum = 0;
  for (const char c : super) sum += static_cast<uint32_t>(static_cast<int>(c));
  return journal + BigEndian(0x40000000 / 4096 + 1) + super + BigEndian(static_cast<uint32_t>(super.size())) +
         BigEndian(sum) + kMagic;
}

class SqliteOpen : public ::testing::Test {
 protected:
  SqliteOpen() {
    EXPECT_TRUE(data::EventLog::Open(log_)->Append({.user = "anna", .item = "espresso", .time = 1}).ok());
    EXPECT_TRUE(privacy::MustOpen(ledger_).Charge({.mechanism = privacy::Steps(1), .run = "a"}).ok());
    EXPECT_TRUE(privacy::MustOpen(victim_).Charge({.mechanism = privacy::Steps(1), .run = "a"}).ok());
    alarm(kTestSeconds);  // ends a test that waits for a pipe
  }
  ~SqliteOpen() override { alarm(0); }

  // Returns every way to open a file: the path that was opened, and the result.
  std::vector<std::pair<std::string, std::function<Status()>>> Openers() const {
    return {{log_, [this] { return data::EventLog::Open(log_).status(); }},
            {log_, [this] { return data::EventLog::OpenExisting(log_).status(); }},
            {log_, [this] { return data::ReadSequences(log_, data::Format::kSqlite, {}).status(); }},
            {ledger_, [this] { return privacy::Ledger::Open(ledger_, privacy::kOptions).status(); }},
            {ledger_, [this] { return privacy::Ledger::OpenExisting(ledger_).status(); }},
            {log_, [this] { return privacy::Ledger::OpenExisting(log_).status(); }}};
  }

  test::TemporaryFolder folder_;
  const std::string log_ = folder_ / "events.db", ledger_ = folder_ / "a.ledger",
                    victim_ = folder_ / "elsewhere.ledger";
};

TEST_F(SqliteOpen, AJournalThatNamesASuperJournal_IsRefusedAndDeletesNothing) {
  const std::string text = folder_ / "letter.txt";
  std::ofstream(text) << "dear reader";
  for (const std::string& victim : {text, victim_}) {
    const std::string before = GetBytes(victim);
    for (const auto& [path, opened] : Openers()) {
      std::ofstream(path + "-journal", std::ios::binary) << Journal(victim);
      const Status status = opened();
      EXPECT_EQ(status.code(), StatusCode::kInvalidData) << status.message();
      EXPECT_NE(status.message().find("-journal' beside it names another journal"), std::string::npos)
          << status.message();
      EXPECT_EQ(GetBytes(victim), before);
      fs::remove(path + "-journal");
      EXPECT_TRUE(opened().ok() || path == log_) << opened().message();
    }
  }
}

// The journal comes while the file is open.
TEST_F(SqliteOpen, ASuperJournalPlantedLater_IsRefusedToo) {
  const std::string before = GetBytes(victim_);
  privacy::Ledger ledger = privacy::MustOpen(ledger_);
  std::ofstream(ledger_ + "-journal", std::ios::binary) << Journal(victim_);
  const Status charged = ledger.Charge({.mechanism = privacy::Steps(1), .run = "a"}).status();
  EXPECT_NE(charged.message().find("names another journal"), std::string::npos) << charged.message();
  EXPECT_EQ(GetBytes(victim_), before);
  fs::remove(ledger_ + "-journal");
  EXPECT_TRUE(ledger.Charge({.mechanism = privacy::Steps(1), .run = "a"}).ok());
}

TEST_F(SqliteOpen, AJournalOfOurs_IsPlayedBack) {
  for (const auto& [path, opened] : Openers()) {
    std::ofstream(path + "-journal", std::ios::binary) << Journal("");
    const Status status = opened();
    EXPECT_EQ(status.message().find("-journal"), std::string::npos) << status.message();
    fs::remove(path + "-journal");
  }
}

TEST_F(SqliteOpen, PipesAndLinksBesideAFile_AreRefusedAtOnce) {
  const std::string text = folder_ / "letter.txt";
  for (const char* end : {"-journal", "-wal", "-shm"}) {
    const auto make = {
        std::function<void(const std::string&)>(
            [](const std::string& beside) { EXPECT_EQ(mkfifo(beside.c_str(), 0600), 0); }),
        std::function<void(const std::string&)>([&](const std::string& beside) { fs::create_symlink(text, beside); }),
        std::function<void(const std::string&)>(
            [&](const std::string& beside) { fs::create_hard_link(text, beside); })};
    for (const auto& plant : make) {
      for (const auto& [path, opened] : Openers()) {
        std::ofstream(text) << "dear reader";
        fs::remove(path + end);
        plant(path + end);
        const Status status = opened();
        EXPECT_EQ(status.code(), StatusCode::kInvalidData) << end << ": " << status.message();
        EXPECT_NE(status.message().find(end), std::string::npos) << status.message();
        EXPECT_EQ(GetBytes(text), "dear reader");
        fs::remove(path + end);
      }
    }
  }
}

// SQLite empties the index of a write-ahead log before it reads it.
TEST_F(SqliteOpen, AnIndexThatIsAnotherFile_IsNotWritten) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite::Open(log_, SQLITE_OPEN_READWRITE, &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const std::string text = folder_ / "letter.txt";
  std::ofstream(text) << "dear reader";
  fs::create_hard_link(text, log_ + "-shm");
  EXPECT_EQ(data::EventLog::OpenExisting(log_).status().code(), StatusCode::kInvalidData);
  EXPECT_EQ(data::ReadSequences(log_, data::Format::kSqlite, {}).status().code(), StatusCode::kInvalidData);
  EXPECT_EQ(GetBytes(text), "dear reader");
  fs::remove(log_ + "-shm");
  EXPECT_TRUE(data::EventLog::OpenExisting(log_).ok());
}

// In a folder for everybody, such as /tmp, the pages in somebody else's journal would replace the database's.
TEST_F(SqliteOpen, FilesOfAnotherUser_AreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes files of others";
  for (const char* end : {"-journal", "-wal", "-shm"}) {
    for (const auto& [path, opened] : Openers()) {
      std::ofstream(path + end, std::ios::binary) << Journal("");
      ASSERT_EQ(chown((path + end).c_str(), 65534, 65534), 0);
      const Status status = opened();
      EXPECT_EQ(status.code(), StatusCode::kInvalidData) << end << ": " << status.message();
      EXPECT_NE(status.message().find("belongs to another user"), std::string::npos) << status.message();
      fs::remove(path + end);
    }
  }
  // Whoever may write the file may also leave files beside it.
  ASSERT_EQ(chmod(log_.c_str(), 0666), 0);
  std::ofstream(log_ + "-journal");
  ASSERT_EQ(chown((log_ + "-journal").c_str(), 65534, 65534), 0);
  EXPECT_TRUE(data::EventLog::OpenExisting(log_).ok());
}

TEST_F(SqliteOpen, OtherThanAFile_IsRefusedAtOnce) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const Status& status :
       {data::EventLog::Open(pipe).status(), data::EventLog::OpenExisting(pipe).status(),
        privacy::Ledger::Open(pipe, privacy::kOptions).status(), privacy::Ledger::OpenExisting(pipe).status()})
    EXPECT_NE(status.message().find("is not a regular file, and a database is one"), std::string::npos)
        << status.message();
}

// A ledger that is mostly a hole, beside a journal of one byte, or a whole one.
TEST_F(SqliteOpen, AHugeLedgerBesideAJournal_IsNotRead) {
  for (const std::string& journal : {std::string("x"), Journal("")}) {
    fs::resize_file(ledger_, uintmax_t{3} << 29);
    std::ofstream(ledger_ + "-journal", std::ios::binary) << journal;
    const auto since = std::chrono::steady_clock::now();
    const Status status = privacy::Ledger::OpenExisting(ledger_).status();
    EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(5)) << status.message();
  }
}

TEST_F(SqliteOpen, NothingGoesToATemporaryFolder) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite::Open(log_, SQLITE_OPEN_READWRITE, &database), SQLITE_OK);
  // Sorted, and larger than any cache.
  EXPECT_EQ(sqlite3_exec(database,
                         "PRAGMA cache_size = 10; CREATE TEMP TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                         "SELECT i + 1 FROM n WHERE i < 50000) SELECT i, hex(randomblob(40)) AS x FROM n; SELECT "
                         "count(*) FROM (SELECT DISTINCT x FROM t ORDER BY x)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  // Without the setting, SQLite asks for a file and gets none.
  EXPECT_NE(sqlite3_exec(database,
                         "DROP TABLE t; PRAGMA temp_store = FILE; PRAGMA cache_size = 10; CREATE TEMP TABLE t AS WITH "
                         "RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) SELECT i, "
                         "hex(randomblob(40)) AS x FROM n",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
}

// Asked like SQLite does, which makes and deletes super-journals in one way only.
TEST_F(SqliteOpen, ASuperJournal_IsNeitherOpenedNorMade) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite::Open(log_, SQLITE_OPEN_READWRITE, &database), SQLITE_OK);
  sqlite3_vfs* door = nullptr;
  ASSERT_EQ(sqlite3_file_control(database, "main", SQLITE_FCNTL_VFS_POINTER, &door), SQLITE_OK);
  std::vector<std::max_align_t> file(static_cast<size_t>(door->szOsFile) / sizeof(std::max_align_t) + 1);
  for (const std::string& path : {folder_ / "none", victim_}) {
    const bool was_there = fs::exists(path);
    EXPECT_EQ(door->xOpen(door, path.c_str(), reinterpret_cast<sqlite3_file*>(file.data()),
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MASTER_JOURNAL, nullptr),
              SQLITE_CANTOPEN);
    EXPECT_EQ(fs::exists(path), was_there);
  }
  sqlite3_close(database);
}

// SQLite does this on Linux, if a file system answers fcntl with "no locks available" (ENOLCK).
TEST_F(SqliteOpen, AFileSystemWithoutLocks_IsNamedAtOnce) {
  const test::NoLocksVfs no_locks;
  for (const auto& [path, opened] : Openers()) {
    const auto since = std::chrono::steady_clock::now();
    const Status status = opened();
    EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(2)) << path;
    EXPECT_EQ(status.code(), StatusCode::kIo);
    EXPECT_NE(status.message().find("its file system cannot lock files"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace wisp::sqlite_open_test
