#include "runtime/core/file_lock.h"

#include <gtest/gtest.h>

#include <optional>

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

}  // namespace
}  // namespace wisp::file_lock_test
