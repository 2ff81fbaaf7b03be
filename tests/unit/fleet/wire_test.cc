#include "runtime/fleet/flower/wire.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace wisp::fleet::wire_test {
namespace {

using flower::Presence;
using flower::WireReader;
using flower::WireWriter;

// Reads all fields and tells the fault, or "read".
std::string FaultOf(const std::string& bytes) {
  WireReader reader(bytes, "answer");
  while (reader.Next()) {}
  EXPECT_EQ(reader.Next(), false);
  return reader.status().ok() ? "read" : reader.status().message();
}

TEST(Wire, NumbersReadBack) {
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{300},
                                uint64_t{1} << 35, uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()}) {
    const std::string bytes = WireWriter().Varint(5, number, Presence::kExplicit).Take();
    WireReader reader(bytes, "answer");
    ASSERT_TRUE(reader.Next());
    EXPECT_EQ(reader.field(), 5u);
    EXPECT_EQ(reader.Varint(), number);
    EXPECT_FALSE(reader.Next());
    EXPECT_TRUE(reader.status().ok());
  }
  for (const int64_t number : {int64_t{0}, int64_t{-1}, int64_t{1}, std::numeric_limits<int64_t>::min(),
                               std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(flower::FromZigZag(flower::ZigZag(number)), number);
  }
  EXPECT_EQ(flower::ZigZag(-1), 1u);
  EXPECT_EQ(flower::ZigZag(1), 2u);
}

TEST(Wire, DefaultsAreLeftOut) {
  EXPECT_EQ(WireWriter().Varint(1, 0).Double(2, 0).Bytes(3, "").Take(), "");
  EXPECT_EQ(WireWriter().Varint(1, 0, Presence::kExplicit).Take(), std::string("\x08\0", 2));
  EXPECT_EQ(WireWriter().Double(2, -0.0).Take().size(), 9u);
  EXPECT_EQ(WireWriter().Message(3, WireWriter()).Take(), std::string("\x1a\0", 2));
  EXPECT_EQ(WireWriter().Varint(16, 300).Take(), "\x80\x01\xac\x02");
}

TEST(Wire, UnknownFieldsAreSkipped) {
  const std::string bytes =
      WireWriter().Varint(1, 1).Double(2, 0.5).Bytes(3, "ab").Take() + "\x25" + "1234" + "\x08\x07";
  WireReader reader(bytes, "answer");
  uint64_t last = 0;
  while (reader.Next()) {
    if (reader.field() == 1) last = reader.Varint();
  }
  EXPECT_TRUE(reader.status().ok());
  EXPECT_EQ(last, 7u);
}

TEST(Wire, FaultsHaveASentence) {
  const std::string ten(10, '\xff');
  EXPECT_EQ(FaultOf(""), "read");
  EXPECT_EQ(FaultOf("\x08"), "the fleet's answer has a number that is cut or too long, at byte 1");
  EXPECT_EQ(FaultOf("\x08\x80"), "the fleet's answer has a number that is cut or too long, at byte 1");
  EXPECT_EQ(FaultOf("\x08" + std::string(9, '\xff') + "\x01"), "read");
  EXPECT_NE(FaultOf("\x08" + std::string(9, '\xff') + "\x02"), "read");
  EXPECT_NE(FaultOf("\x08" + ten + "\x01"), "read");
  EXPECT_EQ(FaultOf(std::string("\0\x01", 2)), "the fleet's answer has a field that cannot exist, at byte 1");
  EXPECT_NE(FaultOf("\xf8\xff\xff\xff\x1f\x01"), "read");
  EXPECT_EQ(FaultOf("\x09"
                    "1234567"),
            "the fleet's answer is cut, at byte 1");
  EXPECT_EQ(FaultOf("\x0d"
                    "123"),
            "the fleet's answer is cut, at byte 1");
  EXPECT_EQ(FaultOf("\x0a\x02"
                    "1"),
            "the fleet's answer is cut, at byte 2");
  EXPECT_NE(FaultOf("\x0a" + std::string(9, '\xff') + "\x01"), "read");
  for (const char* group : {"\x0b", "\x0c", "\x0e", "\x0f"}) {
    EXPECT_EQ(FaultOf(group), "the fleet's answer has a field of a type that is not read, at byte 1");
  }
}

TEST(Wire, ValuesOfAnotherTypeAreFaults) {
  const std::string bytes = WireWriter().Varint(1, 1).Bytes(2, "ab\xff").Take();
  WireReader reader(bytes, "answer");
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.Bytes(), "");
  EXPECT_EQ(reader.status().message(), "the fleet's answer has field 1 of another type, at byte 2");
  EXPECT_EQ(reader.Varint(), 0u);
  EXPECT_FALSE(reader.Next());
  WireReader text(bytes, "answer");
  ASSERT_TRUE(text.Next() && text.Next());
  EXPECT_EQ(text.Text(3), "");
  EXPECT_EQ(text.status().message(), "the fleet's answer has a text that is not UTF-8, at byte 7");
  WireReader large(bytes, "answer");
  ASSERT_TRUE(large.Next() && large.Next());
  EXPECT_EQ(large.Text(2), "");
  EXPECT_FALSE(large.status().ok());
}

}  // namespace
}  // namespace wisp::fleet::wire_test
