// Suggestions of near names: which names are near, in which order, and that a large catalogue costs one pass.
#include "tools/wisp/recipe/near_names.h"

#include <gtest/gtest.h>

#include <random>

namespace wisp::tools::near_names_test {
namespace {

using Names = std::vector<std::string>;

Names Near(std::string_view wanted, const Names& names,
           NearNames::Beginnings beginnings = NearNames::Beginnings::kCount) {
  NearNames near(wanted, beginnings);
  for (const std::string& name : names) near.Add(name);
  return near.Found();
}

// The definition, without a bound.
size_t Slow(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::string_view a1 = a.substr(1), b1 = b.substr(1);
  size_t best = std::min({Slow(a1, b) + 1, Slow(a, b1) + 1, Slow(a1, b1) + (a[0] == b[0] ? 0 : 1)});
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0])
    best = std::min(best, Slow(a.substr(2), b.substr(2)) + 1);
  return best;
}

TEST(EditDistance, IsThatOfTheDefinitionUpToItsBound) {
  constexpr uint32_t kSeed = 11;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  const auto word = [&] {
    std::string text(random() % 6, ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::string a = word(), b = word();
    for (size_t most = 0; most < 7; ++most)
      EXPECT_EQ(EditDistance(a, b, most), std::min(Slow(a, b), most + 1)) << a << " " << b;
  }
}

TEST(NearNames, TypingErrorsComeFirst_ThenTheLongestBeginning) {
  const Names keys = {"bagel-brie",    "bagel-salmon",  "tea-mint",    "tea-mango",
                      "bagel-spinach", "muffin-almond", "wagel-sesame"};
  EXPECT_EQ(Near("bagel-sesame", keys), (Names{"wagel-sesame", "bagel-salmon", "bagel-spinach"}));
  EXPECT_EQ(Near("tae-mint", keys), (Names{"tea-mint"}));
  EXPECT_EQ(Near("tea-mnit", keys), (Names{"tea-mint", "tea-mango"}));
  EXPECT_EQ(Near("soup", keys), Names{});
  EXPECT_EQ(Near("", keys), Names{});
  EXPECT_EQ(Near("--epsilom", {"--epsilon", "--epochs"}, NearNames::Beginnings::kDoNotCount), (Names{"--epsilon"}));
  EXPECT_EQ(Near("--epochs-of-it", {"--epsilon", "--epochs"}, NearNames::Beginnings::kDoNotCount), Names{});
}

TEST(NearNames, ManyAndLongNames_AreOnePass) {
  NearNames near(std::string(100000, 'x'));
  for (int i = 0; i < 200000; ++i) near.Add("item" + std::to_string(i));
  near.Add(std::string(100000, 'x'));
  EXPECT_EQ(near.Found(), Names{});
  EXPECT_EQ(near.Question(), "");
  NearNames one("item12345x");
  for (int i = 0; i < 200000; ++i) one.Add("item" + std::to_string(i));
  EXPECT_EQ(one.Question(), "; did you mean item12345, item123450 or item123451?");
}

}  // namespace
}  // namespace wisp::tools::near_names_test
