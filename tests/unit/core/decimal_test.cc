// Numbers that we write and read by hand where the C++ library cannot: the tests expect the library's bytes and
// results.
#include "runtime/core/decimal.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#if defined(__cpp_lib_to_chars)

namespace wisp::decimal_test {
namespace {

std::string ByHand(double value) {
  char text[kDecimalBytes];
  return {text, decimal_by_hand::Write(text, value)};
}

std::string ByLibrary(double value) {
  char text[kDecimalBytes];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::vector<double> Doubles() {
  constexpr uint32_t kSeed = 20261125;
  std::mt19937_64 random(kSeed);
  using Limits = std::numeric_limits<double>;
  std::vector<double> values = {0,
                                -0.0,
                                0.1,
                                1.0 / 3,
                                1e22,
                                1e23,
                                123456,
                                1e5,
                                1e-5,
                                0x1p60,
                                0x1p53 + 2,
                                9007199254740993.0,
                                1e100,
                                Limits::max(),
                                Limits::min(),
                                Limits::denorm_min(),
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::quiet_NaN(),
                                0.0001,
                                0.00001234};
  for (int exponent = -1074; exponent < 1024; ++exponent) {
    const double power = std::ldexp(1.0, exponent);
    for (const double value : {power, std::nextafter(power, 0.0), std::nextafter(power, Limits::infinity())}) {
      if (std::isfinite(value)) values.push_back(value);
    }
  }
  for (int i = 0; i < 100000; ++i) {
    const auto bits = std::bit_cast<double>(random());
    values.push_back(bits);
    values.push_back(static_cast<double>(static_cast<int64_t>(random()) >> (i % 64)));
    values.push_back(static_cast<double>(random() % 1000000) / 1000);
  }
  return values;
}

TEST(Decimal, WritesByHandWhatTheLibraryWrites) {
  for (const double value : Doubles()) ASSERT_EQ(ByHand(value), ByLibrary(value));
}

void ExpectReadAlike(const std::string& text) {
  double hand = -7, library = -7;
  const char *begin = text.data(), *end = begin + text.size();
  const auto a = decimal_by_hand::Read(begin, end, hand);
  const auto b = std::from_chars(begin, end, library);
  EXPECT_EQ(a.ptr - begin, b.ptr - begin) << text;
  EXPECT_EQ(a.ec, b.ec) << text;
  EXPECT_EQ(std::bit_cast<uint64_t>(hand), std::bit_cast<uint64_t>(library)) << text;
}

TEST(Decimal, ReadsByHandWhatTheLibraryReads) {
  for (const char* text : {"",
                           "-",
                           "+1",
                           " 1",
                           "1 ",
                           "1.",
                           ".5",
                           ".",
                           "-.",
                           "1e",
                           "1e+",
                           "1e5x",
                           "1E-5",
                           "1e400",
                           "-1e400",
                           "1e-400",
                           "0e-400",
                           "inf",
                           "-INF",
                           "infinity",
                           "infinit",
                           "nan",
                           "0x10",
                           "1.2.3",
                           "00012",
                           "1,5",
                           "1e00000000000000000001",
                           "4.9e-324",
                           "2e-324",
                           "179769313486231580793728971405301e300",
                           "123456789012345678901234567890.123456789e-20",
                           "--1",
                           "e5",
                           "1e-"})
    ExpectReadAlike(text);
  ExpectReadAlike(std::string("1\0002", 3));
  for (const double value : Doubles())
    if (value == value) ExpectReadAlike(ByLibrary(value));
}

TEST(Decimal, WritesSoManyDigits) {
  for (const double value : {0.1, 123456789.0, 1e-7, 0.30000000000000004, -2.5e20}) {
    char hand[kDecimalBytes], library[kDecimalBytes];
    decimal_by_hand::Print(hand, "%.*g", 9, value);
    EXPECT_EQ(std::string(hand), std::string(library, WriteDecimal(library, value, 9)));
  }
}

}  // namespace
}  // namespace wisp::decimal_test

#endif
