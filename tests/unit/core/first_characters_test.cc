// The beginning of a text, for messages.
#include "runtime/core/first_characters.h"

#include <gtest/gtest.h>

namespace wisp::first_characters_test {
namespace {

TEST(FirstCharacters, NeverCutACharacter) {
  EXPECT_EQ(FirstCharacters("tea", 5), "tea");
  EXPECT_EQ(FirstCharacters("tea", 2), "te");
  EXPECT_EQ(FirstCharacters("\xc5\xbburek", 1), "\xc5\xbb");
  EXPECT_EQ(FirstCharacters("\xc5\xbburek", 2), "\xc5\xbbu");
  EXPECT_EQ(FirstCharacters("\xff\xff\xc5", 2), "\xff\xff");  // no UTF-8
  EXPECT_EQ(FirstCharacters("", 3), "");
}

}  // namespace
}  // namespace wisp::first_characters_test
