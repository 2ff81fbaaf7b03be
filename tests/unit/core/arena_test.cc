// Arenas start with zeros, also if memory is reused, and touch no page before it is used.
#include "runtime/core/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace wisp::arena_test {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

// An arena of one array with this many bytes.
struct Bytes {
  explicit Bytes(size_t count, ArenaUse use)
      : size(count),
        arena(
            [&] {
              ArenaPlan plan;
              plan.Reserve<std::byte>(count);
              return plan;
            }(),
            {}, use) {}
  std::byte* begin() const { return arena[Slot<std::byte>{0}]; }
  bool all_zero() const {
    return std::all_of(begin(), begin() + size, [](std::byte b) { return b == std::byte{0}; });
  }
  size_t size;
  Arena arena;
};

// The memory was full of ones a moment ago. Sizes lie around the one from which on pages are returned to the system.
TEST(Arena, StartsAtZeroWhereMemoryIsUsedAgain) {
  for (const ArenaUse use : {ArenaUse::kWhole, ArenaUse::kInPart}) {
    for (const size_t size : {size_t{64}, size_t{5000}, kMegabyte - 128, kMegabyte - 64, kMegabyte, kMegabyte + 4032,
                              3 * kMegabyte + 192, 40 * kMegabyte + 64}) {
      for (int round = 0; round < 3; ++round) {
        const Bytes bytes(size, use);
        ASSERT_TRUE(bytes.all_zero()) << size << " bytes, round " << round;
        std::memset(bytes.begin(), 0xff, size);
      }
    }
  }
}

#ifdef __linux__
TEST(Arena, WhatIsUsedInPartTakesThatPartAlone) {
  const Bytes bytes(64 * kMegabyte, ArenaUse::kInPart);
  bytes.begin()[32 * kMegabyte] = std::byte{1};
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::byte* const first = bytes.begin() + (page - reinterpret_cast<uintptr_t>(bytes.begin()) % page) % page;
  std::vector<unsigned char> resident((bytes.size - page) / page);
  ASSERT_EQ(mincore(first, resident.size() * page, resident.data()), 0);
  const auto count = std::count_if(resident.begin(), resident.end(), [](unsigned char r) { return (r & 1) != 0; });
  EXPECT_GE(count, 1);
  EXPECT_LE(count * static_cast<long>(page), 3 * static_cast<long>(kMegabyte)) << "a large page, and both ends";
}
#endif

}  // namespace
}  // namespace wisp::arena_test
