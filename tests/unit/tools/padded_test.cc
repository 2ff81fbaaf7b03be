// Columns of lists: the text after a name begins at one place, whatever script the name is in.
#include "tools/wisp/padded.h"

#include <gtest/gtest.h>

namespace wisp::tools::padded_test {
namespace {

TEST(CellsOf, CountsWhatATerminalShows) {
  EXPECT_EQ(CellsOf(""), 0u);
  EXPECT_EQ(CellsOf("tea"), 3u);
  EXPECT_EQ(CellsOf("\xc5\xbburek"), 5u);              // Zurek with a dot above the Z, in one character
  EXPECT_EQ(CellsOf("cafe\xcc\x81"), 4u);              // the accent is a character of its own
  EXPECT_EQ(CellsOf("\xe6\x8a\xb9\xe8\x8c\xb6"), 4u);  // two wide ones
  EXPECT_EQ(CellsOf("\xf0\x9f\x8d\xb5"), 2u);          // a cup
  EXPECT_EQ(CellsOf("a\xff\xfe"), 3u);                 // not UTF-8
}

TEST(Padded, FillsUpToTheColumn) {
  EXPECT_EQ(Padded("tea", 5), "tea  ");
  EXPECT_EQ(Padded("\xc5\xbburek", 6), "\xc5\xbburek ");
  EXPECT_EQ(Padded("longer", 3), "longer");
}

}  // namespace
}  // namespace wisp::tools::padded_test
