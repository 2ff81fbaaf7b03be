// Numbers for people: a spent epsilon is never shown smaller than it is.
#include "runtime/privacy/json.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "gtest/gtest.h"
#include "runtime/core/decimal.h"

namespace wisp::privacy::json_test {
namespace {

double Read(const std::string& text) {
  double number = 0;
  ReadDecimal(text.data(), text.data() + text.size(), number);
  return number;
}

TEST(EpsilonText, ReadBackIsNeverLessAndNearAbove) {
  uint64_t state = 1;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double mantissa = 1 + static_cast<double>(state >> 11) * 0x1p-53 * 9;
    const double number = mantissa * std::pow(10.0, static_cast<int>(state % 41) - 30);
    for (const int digits : {1, 2, 3, 4, 5, 6, 15}) {
      const double shown = Read(EpsilonText(number, digits));
      ASSERT_GE(shown, number) << DoubleText(number) << " is shown as " << EpsilonText(number, digits);
      // The shown number is less than one in the last place away, except for what a double itself cannot represent.
      ASSERT_LE(shown - number, number * (std::pow(10.0, 1 - digits) + 1e-14))
          << DoubleText(number) << " is shown as " << EpsilonText(number, digits);
    }
  }
}

TEST(EpsilonText, AtTheEdgesOfADigit) {
  EXPECT_EQ(EpsilonText(0), "0");
  EXPECT_EQ(EpsilonText(2), "2");
  EXPECT_EQ(EpsilonText(3.00001), "3.001");
  EXPECT_EQ(EpsilonText(9.99991), "10");
  EXPECT_EQ(EpsilonText(1.2345e-9), "1.235e-09");
  EXPECT_EQ(EpsilonText(1.00000001e-9), "1.001e-09");
  EXPECT_EQ(EpsilonText(12345.6), "1.235e+04");
  EXPECT_EQ(EpsilonText(std::nextafter(0.1, 1.0)), "0.1001");
  EXPECT_EQ(EpsilonText(std::nextafter(100.0, 0.0)), "100");
  EXPECT_EQ(EpsilonText(5e-324), "4.941e-324");
  EXPECT_EQ(EpsilonText(std::numeric_limits<double>::infinity()), "infinity");
  EXPECT_EQ(EpsilonText(std::nan("")), "nan");
}

}  // namespace
}  // namespace wisp::privacy::json_test
