// Columns of lists: the text after a name begins at one place, whatever script the name is in.
#include "tools/wisp/padded.h"

#include <gtest/gtest.h>

namespace wisp::tools::padded_test {
namespace {

TEST(CountCells, CountsWhatATerminalShows) {
  EXPECT_EQ(CountCells(""), 0u);
  EXPECT_EQ(CountCells("tea"), 3u);
  EXPECT_EQ(CountCells("\xc5\xbburek"), 5u);              // Zurek with a dot above the Z, in one character
  EXPECT_EQ(CountCells("cafe\xcc\x81"), 4u);              // the accent is a character of its own
  EXPECT_EQ(CountCells("\xe6\x8a\xb9\xe8\x8c\xb6"), 4u);  // two wide ones
  EXPECT_EQ(CountCells("\xf0\x9f\x8d\xb5"), 2u);          // a cup
  EXPECT_EQ(CountCells("a\xff\xfe"), 3u);                 // not UTF-8
}

TEST(Padded, FillsUpToTheColumn) {
  EXPECT_EQ(Padded("tea", 5), "tea  ");
  EXPECT_EQ(Padded("\xc5\xbburek", 6), "\xc5\xbburek ");
  EXPECT_EQ(Padded("longer", 3), "longer");
}

}  // namespace
}  // namespace wisp::tools::padded_test
