#include "runtime/core/file_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/core/in_child.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::file_lock_test {
namespace {

TEST(FileLock, IsHeldByOne) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "lock";
  auto first = FileLock::Take(path, "somebody has it");
  ASSERT_TRUE(first.ok()) << first.status().message();
  std::optional<FileLock> moved(*std::move(first));
  const auto second = FileLock::Take(path, "somebody has it");
  EXPECT_EQ(second.status().code(), StatusCode::kIo);
  EXPECT_EQ(second.status().message(), "somebody has it");
  moved.reset();
  EXPECT_TRUE(FileLock::Take(path, "somebody has it").ok());
  EXPECT_EQ(FileLock::Take(folder / "none/lock", "held").status().code(), StatusCode::kIo);
}

TEST(FileLock, LeavesNoFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "lock";
  std::ofstream(path, std::ios::app).flush();  // of a process that was killed
  {
    auto lock = FileLock::Take(path, "held");
    ASSERT_TRUE(lock.ok()) << lock.status().message();
    EXPECT_FALSE(FileLock::Take(path, "held").ok());
    EXPECT_TRUE(std::filesystem::exists(path)) << "removed by who was refused";
    EXPECT_EQ(test::InChild([&] {
                { const FileLock of_child = *std::move(lock); }
                return std::string("done");
              }),
              "done");
    EXPECT_TRUE(std::filesystem::exists(path)) << "removed by a child";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  // A file that somebody else has put there is not ours.
  {
    const auto lock = FileLock::Take(path, "held");
    ASSERT_TRUE(lock.ok());
    std::filesystem::remove(path);
    std::ofstream(path).flush();
  }
  EXPECT_TRUE(std::filesystem::exists(path));
  std::ofstream(path) << "of somebody else";
  EXPECT_TRUE(FileLock::Take(path, "held").ok());
  EXPECT_TRUE(std::filesystem::exists(path));
}

// Many take turns. Each removes the file, which others have opened: no two of them have the lock.
TEST(FileLock, TheFileThatGoesIsNobodysLock) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "lock";
  std::atomic<int> holders = 0, turns = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (turns < 500) {
        const auto lock = FileLock::Take(path, "held");
        if (!lock.ok()) continue;
        EXPECT_EQ(++holders, 1);
        ++turns;
        std::this_thread::sleep_for(std::chrono::microseconds(100));  // long enough for another to come
        --holders;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace wisp::file_lock_test
