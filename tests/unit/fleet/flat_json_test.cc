#include "runtime/fleet/flat_json.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace wisp::flat_json_test {
namespace {

Result<FlatJson> Parse(std::string_view text) { return FlatJson::Parse(text, "plan.json", 100000); }

std::string ErrorOf(std::string_view text) {
  const Result<FlatJson> json = Parse(text);
  EXPECT_TRUE(json.ok() || json.status().code() == StatusCode::kInvalidData);
  return json.ok() ? "accepted" : json.status().message();
}

TEST(FlatJson, ReadsEveryKindOfValue) {
  Result<FlatJson> json = Parse(
      " { \"name\" : \"films\", \"z\":1.5e-1,\n\"rounds\": 100, \"least\": -9223372036854775808,\"on\":true , "
      "\"off\":false}\n");
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(*json->Text("name", 5), "films");
  EXPECT_EQ(*json->Number("z", 0, 1), 0.15);
  EXPECT_EQ(*json->Whole("rounds", 1, 100), 100);
  EXPECT_EQ(*json->Number("rounds", 1, 100), 100.0);
  EXPECT_EQ(*json->Whole("least", std::numeric_limits<int64_t>::min(), 0), std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(*json->Truth("on"));
  EXPECT_FALSE(*json->Truth("off"));
  EXPECT_TRUE(json->NoOtherKeys().ok());
  EXPECT_EQ(json->entries().size(), 6u);
  EXPECT_TRUE(Parse("{}").ok());
}

TEST(FlatJson, EscapesBecomeUtf8) {
  Result<FlatJson> json = Parse(R"({"a": "\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00", "\u0062": "é€😀"})");
  ASSERT_TRUE(json.ok()) << json.status().message();
  EXPECT_EQ(*json->Text("a", 100), "\"\\/\b\f\n\r\tAé€😀");
  EXPECT_EQ(*json->Text("b", 100), "é€😀");
}

TEST(FlatJson, MalformedTextIsRefused) {
  for (const std::string_view text : {
           "",
           " ",
           "[]",
           "{",
           "}",
           "{}{}",
           "{} x",
           "{,}",
           "{\"a\"}",
           "{\"a\":}",
           "{\"a\":1,}",
           "{\"a\":1 \"b\":2}",
           "{a:1}",
           "{'a':1}",
           "{1:1}",
           "{\"a\":null}",
           "{\"a\":{}}",
           "{\"a\":[]}",
           "{\"a\":True}",
           "{\"a\":nan}",
           "{\"a\":Infinity}",
           "{\"a\":-}",
           "{\"a\":+1}",
           "{\"a\":01}",
           "{\"a\":-01}",
           "{\"a\":.5}",
           "{\"a\":1.}",
           "{\"a\":1e}",
           "{\"a\":1e+}",
           "{\"a\":0x1}",
           "{\"a\":1e999}",
           "{\"a\":1e-999}",
           "{\"a\":\"",
           "{\"a\":\"b",
           "{\"a\":\"\\\"}",
           "{\"a\":\"\\x\"}",
           "{\"a\":\"\\u12\"}",
           "{\"a\":\"\\u12g4\"}",
           "{\"a\":\"\\u-123\"}",
           "{\"a\":\"\\ud800\"}",
           "{\"a\":\"\\ud800\\u0041\"}",
           "{\"a\":\"\\udc00\"}",
           "{\"a\":\"\\u0000\"}",
           "{\"a\":\"\n\"}",
           "{\"a\":\"\x01\"}",
           "{\"a\":\"\xff\"}",
           "{\"a\":\"\xed\xa0\x80\"}",
           "\xef\xbb\xbf{}",
           "{\"a\":1/**/}",
           "{\"a\":truefalse}",
       }) {
    EXPECT_NE(ErrorOf(text), "accepted") << text;
  }
  EXPECT_NE(ErrorOf(std::string_view("{}\0", 3)), "accepted");
}

TEST(FlatJson, EveryPrefixIsRefused) {
  const std::string_view whole = R"({"a": "\ud83d\ude00é", "b": -1.5e+3, "c": false})";
  ASSERT_EQ(ErrorOf(whole), "accepted");
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_NE(ErrorOf(whole.substr(0, size)), "accepted") << size;
}

TEST(FlatJson, ErrorsNameTheLineAndWhatIsAllowed) {
  EXPECT_EQ(ErrorOf("{\"a\": 1,\n\"b\": null}"),
            "plan.json line 2: has 'n' in place of a string, a number, true or false");
  EXPECT_EQ(ErrorOf("{\"a\": 1"), "plan.json line 1: has the end of the text in place of ',' or '}'");
  EXPECT_EQ(ErrorOf("{\"a\": 1, \"\\u0061\": 2}"), "plan.json: has \"a\" twice");
  EXPECT_EQ(FlatJson::Parse("{}  ", "p", 3).status().message(), "p: has 4 bytes; allowed are 3 at most");
  EXPECT_TRUE(FlatJson::Parse("{} ", "p", 3).ok());
}

TEST(FlatJson, KeysAreLimited) {
  std::string text = "{";
  for (size_t i = 0; i < FlatJson::kMostKeys; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
  EXPECT_TRUE(Parse(text + "}").ok());
  EXPECT_FALSE(Parse(text + ",\"one more\":0}").ok());
}

TEST(FlatJson, GettersTellTypeAndRange) {
  Result<FlatJson> json =
      Parse("{\"n\": 0, \"x\": 1e3, \"big\": 9223372036854775808, \"s\": \"a\\u001bb\", \"on\": true}");
  ASSERT_TRUE(json.ok());
  constexpr std::array<std::string_view, 3> kNames = {"all", "blocks", "adapter"};
  const auto message = [](const auto& result) { return result.status().message(); };
  EXPECT_EQ(message(json->Whole("n", 1, 100000)), "plan.json: \"n\" is 0; allowed are whole numbers from 1 to 100000");
  EXPECT_EQ(message(json->Whole("x", 1, 100000)),
            "plan.json: \"x\" is 1e3; allowed are whole numbers from 1 to 100000, without point and exponent");
  EXPECT_FALSE(json->Whole("big", 1, INT64_MAX).ok());
  EXPECT_EQ(message(json->Number("x", 0, 0.5)), "plan.json: \"x\" is 1e3; allowed are numbers from 0 to 0.5");
  EXPECT_FALSE(json->Number("on", 0, 1).ok());
  EXPECT_EQ(message(json->Text("s", 2)), "plan.json: \"s\" is \"a?b\"; allowed are strings of 2 bytes at most");
  EXPECT_EQ(message(json->Truth("s")), "plan.json: \"s\" is \"a?b\"; allowed are true and false");
  EXPECT_EQ(message(json->Choice("s", kNames)),
            "plan.json: \"s\" is \"a?b\"; allowed are \"all\", \"blocks\" and \"adapter\"");
  EXPECT_EQ(message(json->Text("none", 2)), "plan.json: has no \"none\"; allowed are strings of 2 bytes at most");
  EXPECT_FALSE(json->Has("none"));
  EXPECT_TRUE(json->Has("n"));
  Result<FlatJson> part = Parse("{\"part\": \"blocks\"}");
  EXPECT_EQ(*part->Choice("part", kNames), 1u);
}

TEST(FlatJson, KeysThatNobodyAsksForAreRefused) {
  Result<FlatJson> json = Parse("{\"rounds\": 1, \"delta\": 0.5, \"detla\": 1}");
  ASSERT_TRUE(json.ok());
  ASSERT_TRUE(json->Whole("rounds", 1, 1).ok() && json->Number("delta", 0, 1).ok());
  EXPECT_EQ(json->NoOtherKeys().message(), "plan.json: \"detla\" is not known; known here: rounds, delta");
}

}  // namespace
}  // namespace wisp::flat_json_test
