// Writing when things go wrong: a refused model, a full disk, a killed process, readers and writers at once. In every
// case the file at the path is the old one or the new one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmath>
#include <fcntl.h>
#include <limits>
#include <random>
#include <thread>

#include "runtime/core/file.h"
#include "runtime/model/model_file.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::model_write_test {
namespace {

using test::SmallModel;
using test::TemporaryFolder;

class ModelWrite : public testing::Test {
 protected:
  ModelWrite() {
    EXPECT_TRUE(WriteModel(path_, old_.contents()).ok());
    old_bytes_ = test::ReadBytes(path_);
    new_.weights[0] += 1;
    new_bytes_ = new_.Bytes();
  }
  void ExpectOldFileAlone() const {
    EXPECT_EQ(test::ReadBytes(path_), old_bytes_);
    EXPECT_EQ(folder_.NumFiles(), 1u) << "a temporary file was left behind";
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "m.wisp", old_bytes_, new_bytes_;
  SmallModel old_, new_;
};

TEST(GetFolder, IsTheFolderOrTheOneWeAreIn) {
  for (const auto& [path, folder] : {std::pair("m.wisp", "."),
                                     {"", "."},
                                     {"a/m.wisp", "a"},
                                     {"/a/b/m.wisp", "/a/b"},
                                     {"/m.wisp", "/"},
                                     {"a/", "a"}}) {
    EXPECT_EQ(GetFolder(path), folder) << path;
  }
}

TEST_F(ModelWrite, ContentsThatNobodyCouldReadAreRefused) {
  struct Case {
    const char* part;
    std::function<void(ModelContents&)> spoil;
  };
  std::vector<float> weights = old_.weights;
  weights[5] = std::nanf("");
  const Case cases[] = {
      {"weights to write, the architecture needs", [](ModelContents& c) { c.weights = c.weights.first(3); }},
      {"tensor item_embedding holds a number that is not finite",
       [&weights](ModelContents& c) { c.weights = weights; }},
      {"num_kv_heads is 3, allowed are 1 to",
       [](ModelContents& c) { c.architecture.blocks[0].attention.num_kv_heads = 3; }},
      {"num_items is 0", [](ModelContents& c) { c.architecture.num_items = 0; }},
      {"item_names has 5 entries", [](ModelContents& c) { c.item_names.pop_back(); }},
      {"two items have the key \"a\"", [](ModelContents& c) { c.item_keys[0] = "a"; }},
      {"item_keys is not text", [](ModelContents& c) { c.item_keys[0] = "a\tb"; }},
      {"item_names is not text", [](ModelContents& c) { c.item_names[0] = std::string("a\0", 2); }},
      {"description is not text", [](ModelContents& c) { c.description = "\xff"; }},
      {"noise is not from the secure generator",
       [](ModelContents& c) { c.provenance[1].noise = NoiseOrigin::kReproducible; }},
      {"names no mechanism", [](ModelContents& c) { c.provenance[1].mechanisms.clear(); }},
      {"epsilon is nan", [](ModelContents& c) { c.provenance[1].epsilon = std::nan(""); }},
      {"noise is 9", [](ModelContents& c) { c.provenance[1].noise = NoiseOrigin(9); }},
      {"states an origin of the output bias",
       [](ModelContents& c) {
         c.architecture.head.output_bias = OutputBias::kNone;
         c.weights = c.weights.first(FlatSize(ListParameters(c.architecture)));
       }},
      {"provenance has 1025 entries", [](ModelContents& c) { c.provenance.resize(1025); }},
      {"names, keys, successions, provenance and a tokenizer take",
       [](ModelContents& c) { c.description.assign(container::kMaxMetadataBytes + 1, 'x'); }},
      {"the metadata would take",
       [](ModelContents& c) { c.description.assign(container::kMaxMetadataBytes - 1000, 'x'); }},
  };
  for (const Case& c : cases) {
    ModelContents contents = old_.contents();
    c.spoil(contents);
    const Status status = WriteModel(path_, contents);
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(StatusCode::kInvalidArgument)) << c.part;
    EXPECT_NE(status.message().find(c.part), std::string::npos)
        << "wanted: " << c.part << "\nfound: " << status.message();
    EXPECT_EQ(status.message().rfind(path_ + ": ", 0), 0u) << status.message();
  }
  ExpectOldFileAlone();
}

TEST_F(ModelWrite, InfiniteEpsilon_DiffersFromNoEpsilon) {
  ModelContents contents = old_.contents();
  contents.provenance[1].epsilon = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(WriteModel(path_, contents).ok());
  EXPECT_EQ(ModelFile::Open(path_)->provenance()[1].epsilon, std::numeric_limits<double>::infinity());
  contents.provenance[1].epsilon = 0;
  ASSERT_TRUE(WriteModel(path_, contents).ok());
  EXPECT_EQ(ModelFile::Open(path_)->provenance()[1].epsilon, 0.0);
  EXPECT_FALSE(ModelFile::Open(path_)->provenance()[0].epsilon.has_value());
}

TEST_F(ModelWrite, PlacesThatTakeNoFileAreRefusedByName) {
  struct Case {
    std::string path;
    StatusCode code;
    const char* part;
  };
  const Case cases[] = {{folder_ / "absent/m.wisp", StatusCode::kIo, "No such file"},
                        {path_ + "/m.wisp", StatusCode::kIo, "Not a directory"},
                        {folder_.path(), StatusCode::kInvalidArgument, "is not a regular file"},
                        {folder_ / "absent/", StatusCode::kInvalidArgument, "does not name a file"},
                        {"/dev/full", StatusCode::kInvalidArgument, "is not a regular file"},
                        {"", StatusCode::kInvalidArgument, "does not name a file"},
                        {folder_ / std::string(300, 'x'), StatusCode::kIo, "File name too long"}};
  for (const Case& c : cases) {
    const Status status = WriteModel(c.path, new_.contents());
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(c.code)) << status.message();
    EXPECT_NE(status.message().find(c.part), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(c.path), std::string::npos) << status.message();
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  ExpectOldFileAlone();
}

TEST_F(ModelWrite, FolderWithoutPermissionLeavesTheOldFile) {
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);  // otherwise it might be a database that others may write
  ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
  const int status = test::RunChild([this] {
    if (geteuid() == 0 && setuid(65534) != 0) return 2;
    const Status s = WriteModel(path_, new_.contents());
    return s.code() == StatusCode::kIo && s.message().find("Permission denied") != std::string::npos ? 0 : 1;
  });
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  EXPECT_EQ(status, 0);
  ExpectOldFileAlone();
}

// The limit on a file's size simulates a full disk; it can be set to any byte.
TEST_F(ModelWrite, DiskFullAtAnyByteLeavesTheOldFile) {
  for (size_t limit = 0; limit <= new_bytes_.size(); limit += limit + 97 < new_bytes_.size() ? 97 : 1) {
    const int status = test::RunChild([this, limit] {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit size{limit, limit};
      if (setrlimit(RLIMIT_FSIZE, &size) != 0) return 2;
      const Status s = WriteModel(path_, new_.contents());
      if (s.ok()) return 3;
      return s.code() == StatusCode::kIo && s.message().find("File too large") != std::string::npos ? 0 : 1;
    });
    if (limit == new_bytes_.size()) {
      EXPECT_EQ(WEXITSTATUS(status), 3) << "the last byte fits";
      EXPECT_EQ(test::ReadBytes(path_), new_bytes_);
      break;
    }
    ASSERT_EQ(status, 0) << "limit " << limit;
    ExpectOldFileAlone();
  }
}

// Under the same limit, the signal's default action makes the kernel kill the process in the middle of a write.
TEST_F(ModelWrite, KilledBetweenTwoWritesLeavesTheOldFileAndTheNextWriteCleansUp) {
  for (size_t limit = 0; limit < new_bytes_.size(); limit += 509) {
    const int status = test::RunChild([this, limit] {
      const rlimit size{limit, limit}, none{0, 0};
      setrlimit(RLIMIT_CORE, &none);
      if (setrlimit(RLIMIT_FSIZE, &size) != 0) return 2;
      return WriteModel(path_, new_.contents()).ok() ? 3 : 4;
    });
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << "limit " << limit << ", status " << status;
    EXPECT_EQ(test::ReadBytes(path_), old_bytes_);
    EXPECT_EQ(folder_.NumFiles(), 2u);
    ASSERT_TRUE(WriteModel(path_, old_.contents()).ok());
    ExpectOldFileAlone();
  }
}

TEST_F(ModelWrite, KilledAtAnyTimeLeavesOneOfTheTwoFiles) {
  const uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 40; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      while (true) {
        if (!WriteModel(path_, new_.contents()).ok() || !WriteModel(path_, old_.contents()).ok()) _exit(1);
      }
    }
    usleep(static_cast<useconds_t>(500 + random() % 4000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a write failed";
    const std::string found = test::ReadBytes(path_);
    ASSERT_TRUE(found == old_bytes_ || found == new_bytes_);
    ASSERT_LE(folder_.NumFiles(), 2u) << "what earlier processes left behind was not removed";
  }
  ASSERT_TRUE(WriteModel(path_, old_.contents()).ok());
  ExpectOldFileAlone();
}

TEST_F(ModelWrite, TemporaryFileOfALivingWriterStays) {
  auto slow = FileReplacement::Begin(path_);
  ASSERT_TRUE(slow.ok());
  test::WriteBytes(TemporaryName(path_, 123, 0), "abandoned");
  EXPECT_TRUE(slow->CheckOnlyWriter().ok());
  {
    const auto second = FileReplacement::Begin(path_);
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(slow->CheckOnlyWriter().code(), StatusCode::kIo);
    EXPECT_EQ(second->CheckOnlyWriter().code(), StatusCode::kIo);
  }
  EXPECT_TRUE(slow->CheckOnlyWriter().ok());
  ASSERT_TRUE(WriteModel(path_, new_.contents()).ok());
  EXPECT_EQ(folder_.NumFiles(), 2u);
  ASSERT_TRUE(slow->Write(std::as_bytes(std::span(std::string_view("slow")))).ok());
  ASSERT_TRUE(slow->Commit().ok());
  EXPECT_EQ(test::ReadBytes(path_), "slow");
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_F(ModelWrite, FilesOfOthersWithSimilarNamesStay) {
  for (const char* name : {"m.wisp.tmp-", "m.wisp.tmp-1-2.bak", "m.wisp.tmp", "other.wisp.tmp-1-2", "m.wisp.tmp-x",
                           "m.wisp.tmp-1-2", "m.wisp.tmp-2026-11-27", "m.wisp.tmp-1-2-0123456789abcdef"}) {
    test::WriteBytes(folder_ / name, "x");
  }
  test::WriteBytes(TemporaryName(path_, 123, 0), "abandoned");
  ASSERT_TRUE(WriteModel(path_, new_.contents()).ok());
  EXPECT_EQ(folder_.NumFiles(), 9u);
  EXPECT_FALSE(std::filesystem::exists(TemporaryName(path_, 123, 0)));
}

// A log or a ledger, the files that SQLite keeps beside it, and one with the name of a temporary file.
TEST_F(ModelWrite, DatabasesAndWhatLiesBesideThemStay) {
  const std::string database("SQLite format 3\0 and its pages", 30),
      ledger = folder_ / "l.db", beside = ledger + "-wal", named = TemporaryName(path_, 1, 2);
  for (const std::string& path : {ledger, named}) test::WriteBytes(path, database);
  test::WriteBytes(beside, "x");
  for (const std::string& path : {ledger, beside}) {
    const Status status = WriteModel(path, new_.contents());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << path;
    EXPECT_NE(status.message().find("will not be replaced: name"), std::string::npos) << status.message();
  }
  for (const std::string& path : {ledger, beside}) EXPECT_EQ(RemoveFile(path).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(WriteModel(path_, new_.contents()).ok());
  for (const std::string& path : {ledger, named}) EXPECT_EQ(test::ReadBytes(path), database) << path;
  EXPECT_EQ(test::ReadBytes(beside), "x");
  EXPECT_TRUE(RemoveFile(path_).ok());
  EXPECT_TRUE(RemoveFile(path_).ok()) << "it is not there any more";
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(ModelWrite, ADatabaseThatCameMeanwhile_Stays) {
  const std::string database("SQLite format 3\0 and its pages", 30), path = folder_ / "new.wisp";
  auto file = FileReplacement::Begin(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  test::WriteBytes(path, database);
  const Status status = file->Commit();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("is an SQLite database by now"), std::string::npos) << status.message();
  EXPECT_EQ(test::ReadBytes(path), database);
}

// This holds for any umask: weights and names may come from the data of the device's user.
TEST_F(ModelWrite, FilesAreTheOwnersAlone) {
  const mode_t before = umask(0);
  EXPECT_TRUE(WriteModel(path_, new_.contents()).ok());
  EXPECT_TRUE(MakePrivate(folder_ / "made").ok());
  umask(before);
  for (const std::string& path : {path_, folder_ / "made"}) {
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << path;
  }
  test::WriteBytes(folder_ / "made", "kept");
  EXPECT_TRUE(MakePrivate(folder_ / "made").ok());
  EXPECT_EQ(test::ReadBytes(folder_ / "made"), "kept");
}

// An app may replace a log by a link to another place. The file is made where the link leads.
TEST_F(ModelWrite, AFileBehindALinkIsTheOwnersAloneToo) {
  std::filesystem::create_symlink(folder_ / "real", folder_ / "link");
  const mode_t before = umask(0);
  const Status made = MakePrivate(folder_ / "link");
  umask(before);
  ASSERT_TRUE(made.ok()) << made.message();
  struct stat info;
  ASSERT_EQ(stat((folder_ / "real").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  std::filesystem::create_symlink(folder_ / "none/real", folder_ / "nowhere");
  EXPECT_EQ(MakePrivate(folder_ / "nowhere").code(), StatusCode::kIo);
}

TEST_F(ModelWrite, ReservedSpace_IsEnoughAndTheRestGivenBack) {
  ModelContents contents = new_.contents();
  contents.weights = {};
  auto room = ReserveModel(path_, contents);
  ASSERT_TRUE(room.ok()) << room.status().message();
  uint64_t reserved = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / ""))
    reserved = std::max<uint64_t>(reserved, entry.file_size());
  contents = new_.contents();
  contents.reserved = &*room;
  ASSERT_TRUE(WriteModel(path_, contents).ok());
  EXPECT_EQ(test::ReadBytes(path_), new_bytes_);
  EXPECT_GE(reserved, new_bytes_.size());
}

TEST_F(ModelWrite, ReplacementWithoutCommitDoesNothing) {
  {
    auto replacement = FileReplacement::Begin(path_);
    ASSERT_TRUE(replacement.ok());
    ASSERT_TRUE(replacement->WriteZeros(10000).ok());
    EXPECT_EQ(replacement->size(), 10000u);
    const FileReplacement moved = *std::move(replacement);
    EXPECT_EQ(folder_.NumFiles(), 2u);
  }
  ExpectOldFileAlone();
}

TEST_F(ModelWrite, MappedOldFileOutlivesItsReplacement) {
  const auto file = ModelFile::Open(path_);
  ASSERT_TRUE(file.ok());
  ModelContents contents = old_.contents();
  contents.weights = file->flat_weights();  // written over the same file that they are mapped from
  contents.description = "again";
  ASSERT_TRUE(WriteModel(path_, contents).ok());
  EXPECT_EQ(file->description(), "a small model");
  EXPECT_TRUE(file->VerifyWeights().ok());
  const auto again = ModelFile::Open(path_, Verify::kFull);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->description(), "again");
}

TEST_F(ModelWrite, ReadersNeverSeeAPartWhileWritersReplace) {
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i)
        failures += WriteModel(path_, (i + t) % 2 == 0 ? new_.contents() : old_.contents()).ok() ? 0 : 1;
    });
  }
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto file = ModelFile::Open(path_, Verify::kFull);
        failures += file.ok() && file->FindItem("10") == std::optional<uint32_t>(4) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_F(ModelWrite, OneOpenFileServesManyThreads) {
  const auto file = ModelFile::Open(path_);
  ASSERT_TRUE(file.ok());
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        failures += file->VerifyWeights().ok() ? 0 : 1;
        for (uint32_t item = 0; item < file->num_items(); ++item)
          failures += file->FindItem(file->item_key(item)) == item ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace wisp::model_write_test
