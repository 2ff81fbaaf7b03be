#include "runtime/core/hex.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace wisp {
namespace {

TEST(ToHex, BytesHaveTwoDigitsEach) {
  EXPECT_EQ(ToHex(std::string()), "");
  EXPECT_EQ(ToHex(std::string_view("\x00\x0a\xff z", 5)), "000aff207a");
  EXPECT_EQ(ToHex(std::array<uint8_t, 3>{0, 16, 255}), "0010ff");
}

TEST(ToHex, ANumberHasAllItsDigitsOrTheLastOfThem) {
  EXPECT_EQ(ToHex(uint64_t{0}), "0000000000000000");
  EXPECT_EQ(ToHex(0x0123456789abcdefU), "0123456789abcdef");
  EXPECT_EQ(ToHex(UINT64_MAX), "ffffffffffffffff");
  EXPECT_EQ(ToHex(0x12abU, 4), "12ab");
  EXPECT_EQ(ToHex(0x12abU, 2), "ab");
}

}  // namespace
}  // namespace wisp
