// The ledger as a file: copied after a kill, under several names, with a journal left behind, with a write-ahead log.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/ledger/ledger_file.h"
#include "tests/unit/privacy/ledger/crash_vfs.h"
#include "tests/unit/privacy/ledger/ledger_test_util.h"

namespace wisp::privacy::ledger_file_test {
namespace {

namespace fs = std::filesystem;

void Charge(const std::string& path, int times) {
  Ledger ledger = MustOpen(path);
  for (int i = 0; i < times; ++i) ASSERT_TRUE(ledger.Charge({.mechanism = Steps(1), .run = "a"}).ok());
}

size_t NumEntries(const std::string& path) {
  const auto ledger = Ledger::OpenExisting(path);
  EXPECT_TRUE(ledger.ok()) << ledger.status().message();
  return ledger.ok() ? ledger->Entries()->size() : 0;
}

// Runs in a child, which ends without closing anything.
template <typename Function>
int InChild(const Function& function) {
  const pid_t child = fork();
  if (child == 0) {
    function();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(LedgerTest, AfterAKillTheFileAloneHoldsEveryCharge) {
  ASSERT_EQ(InChild([&] {
              auto ledger = Ledger::Open(Path(), kOptions);
              for (int i = 0; i < 3; ++i) {
                if (!ledger->Charge({.mechanism = Steps(1), .run = "a"}).ok()) _exit(1);
              }
              _exit(7);
            }),
            7);
  EXPECT_FALSE(fs::exists(Path() + "-wal"));
  fs::copy_file(Path(), Path("copy"));
  fs::rename(Path(), Path("renamed"));
  EXPECT_EQ(NumEntries(Path("copy")), 3u);
  EXPECT_EQ(NumEntries(Path("renamed")), 3u);
}

// Returns true if another process sees a lock on the byte by which SQLite marks a writer.
bool IsWriterVisible(const std::string& path) {
  constexpr off_t kReservedByte = 0x40000001;
  return InChild([&] {
           const int file = open(path.c_str(), O_RDWR);
           struct flock lock {
             .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = kReservedByte, .l_len = 1, .l_pid = 0
           };
           _exit(file >= 0 && fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 7 : 0);
         }) == 7;
}

// POSIX drops all locks of a process on a file as soon as the process closes that file anywhere.
TEST_F(LedgerTest, OpeningALedgerKeepsTheLocksOfAWriterInTheSameProcess) {
  Charge(Path(), 1);
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(Path().c_str(), &writer), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(writer, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  ASSERT_TRUE(IsWriterVisible(Path()));
  sqlite3* handle = nullptr;
  EXPECT_EQ(OpenFile(Path(), /*make=*/true, SQLITE_OPEN_READWRITE, &handle), SQLITE_OK);
  sqlite3_close(handle);
  EXPECT_TRUE(IsWriterVisible(Path()));
  sqlite3_close(writer);
  EXPECT_FALSE(IsWriterVisible(Path()));
}

// Anybody could take a lock on the folder, or on a file that others may open.
TEST_F(LedgerTest, WhoCanOnlyReadTheFolderHoldsNoChargeUp) {
  Ledger ledger = MustOpen(Path());
  const int folder = open(folder_.path().c_str(), O_RDONLY),
            turn = open(Path("test.ledger-turn").c_str(), O_CREAT | O_RDONLY, 0644);
  ASSERT_EQ(fchmod(turn, 0644), 0);
  ASSERT_EQ(flock(folder, LOCK_EX), 0);
  ASSERT_EQ(flock(turn, LOCK_EX), 0);
  const auto since = std::chrono::steady_clock::now();
  EXPECT_TRUE(ledger.Charge({.mechanism = Steps(1), .run = "a"}).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(2));
  close(turn);
  close(folder);
}

// Waiting for a turn uses a file that is gone once the charge is written.
TEST_F(LedgerTest, ChargingLeavesOneFile) {
  Charge(Path(), 2);
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

// A statement charges nothing, so its refusal does not speak of charging.
TEST_F(LedgerTest, AJournalWhereNothingCanBeWritten_IsNamed) {
  Charge(Path(), 1);
  std::ofstream(Path() + "-journal") << "left by a program that was killed";
  fs::permissions(Path(), fs::perms(0444));
  fs::permissions(Path() + "-journal", fs::perms(0444));
  fs::permissions(folder_.path(), fs::perms(0555));
  EXPECT_EQ(InChild([&] {
              if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
              const std::string said = Ledger::OpenExisting(Path()).status().message();
              if (said.find("in the journal beside it, which can be read only where the folder") == std::string::npos)
                _exit(2);
            }),
            0);
  fs::permissions(folder_.path(), fs::perms(0755));
}

TEST_F(LedgerTest, AFileThatCannotBeOpened_IsRefusedWithTheReason) {
  Charge(Path(), 1);
  fs::permissions(Path(), fs::perms(0));
  fs::permissions(folder_.path(), fs::perms(0555));
  EXPECT_EQ(InChild([&] {
              if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
              if (Ledger::OpenExisting(Path()).status().message() !=
                  "ledger '" + Path() + "' cannot be opened: Permission denied")
                _exit(2);
            }),
            0);
  fs::permissions(folder_.path(), fs::perms(0755));
}

TEST_F(LedgerTest, SeveralNamesAreRefused) {
  Charge(Path(), 1);
  Ledger before = MustOpen(Path());
  fs::create_hard_link(Path(), Path("other"));
  for (const auto& opened : {Ledger::Open(Path("other"), kOptions).status(), Ledger::OpenExisting(Path()).status(),
                             before.Charge({.mechanism = Steps(1), .run = "a"}).status()}) {
    EXPECT_NE(opened.message().find("2 names"), std::string::npos) << opened.message();
  }
  fs::remove(Path("other"));
  EXPECT_TRUE(before.Charge({.mechanism = Steps(1), .run = "a"}).ok());
}

TEST_F(LedgerTest, NewFilesAreTheirOwnersAlone) {
  for (const mode_t mask : {mode_t{0}, mode_t{0277}}) {
    const mode_t before = umask(mask);
    const std::string path = Path(mask == 0 ? "open" : "closed");
    Charge(path, 1);
    umask(before);
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
}

// A killed charge left a journal beside a file that was used elsewhere since and came back under the same name.
TEST_F(LedgerTest, AJournalThatWasLeftTakesNoChargeBack) {
  const std::string journal = Path() + "-journal";
  Charge(Path(), 1);
  fs::copy_file(Path(), Path("one"));
  fs::copy_file(Path(), Path("went on"));
  Charge(Path("went on"), 1);
  int journals = 0;
  for (int64_t k = 1; k < 40; ++k) {
    fs::copy_file(Path("one"), Path(), fs::copy_options::overwrite_existing);
    const int code = InChild([&] {
      if (!InstallCrashVfs({.at_operation = k})) _exit(3);
      auto ledger = Ledger::Open(Path(), kOptions);
      if (!ledger.ok() || !ledger->Charge({.mechanism = Steps(1), .run = "killed"}).ok()) _exit(4);
    });
    if (code == 0) break;
    ASSERT_EQ(code, kCrashExitCode) << k;
    std::FILE* left = std::fopen(journal.c_str(), "rb");
    // The byte is 0 before the journal is synced: then SQLite does not play it back.
    const int first = left != nullptr ? std::fgetc(left) : EOF;
    if (left != nullptr) std::fclose(left);
    fs::copy_file(Path("went on"), Path(), fs::copy_options::overwrite_existing);
    EXPECT_EQ(MustOpen(Path()).Entries()->size(), 2u) << "killed at operation " << k;
    if (first <= 0) continue;
    ++journals;
    EXPECT_FALSE(fs::exists(journal)) << k;
  }
  EXPECT_GE(journals, 3);
}

// Another program may have given it a write-ahead log. The latest charges would be in a second file, which a copy
// omits.
TEST_F(LedgerTest, AWriteAheadLogIsRefusedAndLeftAlone) {
  Charge(Path(), 1);
  const auto set_mode = [&](const char* sql) {
    sqlite3* handle = nullptr;
    sqlite3_open(Path().c_str(), &handle);
    EXPECT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(handle);
  };
  set_mode("PRAGMA journal_mode = WAL");
  const std::string before = ReadFile(Path());
  for (const Status& status : {Ledger::Open(Path(), kOptions).status(), Ledger::OpenExisting(Path()).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidData);
    EXPECT_NE(status.message().find("has a write-ahead log"), std::string::npos) << status.message();
  }
  EXPECT_EQ(ReadFile(Path()), before);
  EXPECT_FALSE(fs::exists(Path() + "-wal"));
  set_mode("PRAGMA journal_mode = DELETE");
  EXPECT_EQ(NumEntries(Path()), 1u);
}

// A log that another program left with an older copy, after the newest copy was put back over that one.
TEST_F(LedgerTest, AWriteAheadLogOfAnOlderCopy_TakesNoChargeBack) {
  Charge(Path(), 1);
  fs::copy_file(Path(), Path("old"));
  ASSERT_EQ(InChild([&] {
              sqlite3* handle = nullptr;
              sqlite3_open(Path("old").c_str(), &handle);
              const char* leave = "PRAGMA journal_mode = WAL; VACUUM";
              _exit(sqlite3_exec(handle, leave, nullptr, nullptr, nullptr) == SQLITE_OK ? 7 : 1);
            }),
            7);
  ASSERT_GT(fs::file_size(Path("old-wal")), 0u);
  Charge(Path(), 2);
  fs::copy_file(Path(), Path("old"), fs::copy_options::overwrite_existing);
  const std::string newest = ReadFile(Path("old")), log = ReadFile(Path("old-wal"));
  for (const Status& status :
       {Ledger::Open(Path("old"), kOptions).status(), Ledger::OpenExisting(Path("old")).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidData);
    EXPECT_NE(status.message().find("lies beside the ledger"), std::string::npos) << status.message();
  }
  EXPECT_EQ(ReadFile(Path("old")), newest);
  EXPECT_EQ(ReadFile(Path("old-wal")), log);
  fs::remove(Path("old-wal"));
  fs::remove(Path("old-shm"));
  EXPECT_EQ(NumEntries(Path("old")), NumEntries(Path()));
}

}  // namespace
}  // namespace wisp::privacy::ledger_file_test
