// Damaged images: whatever a byte says, opening refuses with a sentence or gives a tokenizer that stays within its
// bytes.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/unit/text/text_test_util.h"

namespace wisp::text::tokenizer_image_test {
namespace {

using test::EncodeIds;
using test::OpenGolden;
using test::OpenJson;
using test::SmallJson;

const std::string kText = "Un aff unaffable. ab\u0301 é \u1112\u1161 👩 1234\n <strip> 'll \u2581x";

// On the heap and exactly as long as the image, so that a sanitizer sees a read past its end.
void Try(const std::vector<std::byte>& image) {
  const std::vector<std::byte> exact(image);
  const auto tokenizer = Tokenizer::Open("image", exact);
  if (!tokenizer.ok()) {
    ASSERT_FALSE(tokenizer.status().message().empty());
    return;
  }
  std::vector<int32_t> ids;
  (void)tokenizer->Encode(kText, {}, ids);
  (void)tokenizer->EncodePair(kText, "a", {}, ids);
  for (const int32_t id : ids) ASSERT_TRUE(id >= 0 && static_cast<size_t>(id) < tokenizer->size());
  (void)tokenizer->Decode(ids, {});
  for (size_t id = 0; id < std::min<size_t>(tokenizer->size(), 1000); ++id)
    (void)tokenizer->TokenText(static_cast<int32_t>(id));
}

TEST(TokenizerImage, EveryFlippedByteIsHarmless) {
  const test::Opened small = OpenJson(test::SmallJson().dump());
  for (size_t i = 0; i < small.image.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::vector<std::byte> image = small.image;
      image[i] ^= static_cast<std::byte>(flip);
      Try(image);
    }
  }
}

TEST(TokenizerImage, RandomDamageIsHarmless) {
  constexpr int kImages = 300;
  const uint32_t seed = 20;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const char* name : test::kGoldenNames) {
    const test::Opened golden = OpenGolden(name);
    for (int n = 0; n < kImages; ++n) {
      std::vector<std::byte> image = golden.image;
      for (size_t changes = 1 + random() % 4; changes > 0; --changes)
        image[random() % image.size()] = static_cast<std::byte>(random() % 2 == 0 ? random() : 0xff);
      Try(image);
    }
  }
}

TEST(TokenizerImage, EveryCutIsRefused) {
  const test::Opened small = OpenJson(test::SmallJson().dump());
  for (size_t size = 0; size < small.image.size(); ++size) {
    const std::vector<std::byte> cut(small.image.begin(), small.image.begin() + static_cast<ptrdiff_t>(size));
    const auto tokenizer = Tokenizer::Open("image", cut);
    if (tokenizer.ok()) Try(cut);  // the cut-off part may be padding
    EXPECT_TRUE(size + 64 >= small.image.size() || !tokenizer.ok()) << size;
  }
}

TEST(TokenizerImage, OtherFilesAreRefused) {
  alignas(8) std::byte zeros[64] = {};
  const auto tokenizer = Tokenizer::Open("zeros", zeros);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), StatusCode::kInvalidData);
  EXPECT_EQ(tokenizer.status().message(), "zeros: this is no image of a tokenizer, or it is damaged");
}

TEST(TokenizerImage, PlaceMustBeAligned) {
  const test::Opened small = OpenJson(test::SmallJson().dump());
  std::vector<std::byte> moved(4);
  moved.insert(moved.end(), small.image.begin(), small.image.end());
  const auto tokenizer = Tokenizer::Open("t", std::span(moved).subspan(4, small.image.size()));
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), StatusCode::kInvalidArgument);
}

TEST(Tokenizer, TextThatIsNotUtf8IsRefusedAndChangesNothing) {
  const test::Opened small = OpenJson(test::SmallJson().dump());
  std::vector<int32_t> ids = {7};
  const Status status = small->Encode("good \xff bad", {}, ids);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kInvalidData);
  EXPECT_NE(status.message().find("byte 5 "), std::string::npos) << status.message();
  EXPECT_EQ(ids, std::vector<int32_t>{7});
  const Status pair = small->EncodePair("a", "\x80", {}, ids);
  EXPECT_FALSE(pair.ok());
  EXPECT_EQ(ids, std::vector<int32_t>{7});
}

TEST(Tokenizer, TextThatIsTooLongIsRefused) {
  const test::Opened small = OpenJson(test::SmallJson().dump());
  std::vector<int32_t> ids;
  const Status status = small->Encode(std::string(kMaxTextBytes + 1, ' '), {}, ids);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

TEST(Tokenizer, TextThatGrowsBeyondMeasureIsRefusedAndChangesNothing) {
  nlohmann::json json = test::SmallJson();
  json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(64, 'b')}};
  const test::Opened grows = OpenJson(json.dump());
  std::vector<int32_t> ids = {7};
  const Status status = grows->Encode(std::string(100000, 'a'), {}, ids);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ids, std::vector<int32_t>{7});
  EXPECT_TRUE(grows->Encode("aaa", {}, ids).ok());
}

TEST(Tokenizer, UnigramTakesTheBestPathAndOfEqualOnesTheFirst) {
  const auto ids_with = [](double whole) {
    nlohmann::json json = nlohmann::json::parse(R"({"model": {"type": "Unigram", "unk_id": 0,
        "vocab": [["<unk>", 0], ["a", -0.5], ["b", -0.5], ["ab", 0]]}})");
    json["model"]["vocab"][3][1] = whole;
    const test::Opened unigram = OpenJson(json.dump());
    return EncodeIds(*unigram, "ab");
  };
  EXPECT_EQ(ids_with(-1.25), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(ids_with(-0.75), (std::vector<int32_t>{3}));
  EXPECT_EQ(ids_with(-1), (std::vector<int32_t>{3}));
}

TEST(Tokenizer, PairThatIsGoneIsNotMergedInALongWord) {
  // b and c are merged first. What was known of a and b is then useless: z and a come before a and bc.
  const test::Opened bpe = OpenJson(R"({"model": {"type": "BPE", "vocab": {"z": 0, "a": 1, "b": 2, "c": 3, "bc": 4,
      "ab": 5, "za": 6, "abc": 7}, "merges": ["b c", "a b", "z a", "a bc"]}})");
  std::string word;
  std::vector<int32_t> expected;
  for (int i = 0; i < 20; ++i) {
    word += "zabc";
    expected.insert(expected.end(), {6, 4});
    EXPECT_EQ(EncodeIds(*bpe, word), expected);
  }
}

// The ids are those of the reference.
TEST(Tokenizer, UnknownCharactersSideBySideAreOneWhereTheyFuse) {
  nlohmann::json bpe = nlohmann::json::parse(R"({"model": {
      "type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3},
      "merges": ["a b"]}})");
  EXPECT_EQ(EncodeIds(*OpenJson(bpe.dump()), "xyabzzxa"), (std::vector<int32_t>{0, 3, 0, 1}));
  bpe["model"]["fuse_unk"] = false;
  EXPECT_EQ(EncodeIds(*OpenJson(bpe.dump()), "xyabzzxa"), (std::vector<int32_t>{0, 0, 3, 0, 0, 0, 1}));
}

// Marks that BERT does not strip stand in the order of Unicode: U+1D165 before U+302E.
TEST(Tokenizer, MarksThatStayAreInOrder) {
  const auto opened = OpenJson(SmallJson().dump());
  std::string normal;
  ASSERT_TRUE(opened->NormalizeText("a\xe3\x80\xae\xf0\x9d\x85\xa5z", normal).ok());
  EXPECT_EQ(normal, "a\xf0\x9d\x85\xa5\xe3\x80\xaez");
}

TEST(Tokenizer, IdsOutOfRangeAreRefused) {
  const test::Opened small = OpenJson(test::SmallJson().dump());
  for (const int32_t id : {-1, 10, INT32_MAX, INT32_MIN}) {
    const auto text = small->Decode(std::vector<int32_t>{id}, {});
    ASSERT_FALSE(text.ok());
    EXPECT_NE(text.status().message().find("allowed is 0 to 9"), std::string::npos) << text.status().message();
    StreamDecoder stream(*small, {});
    EXPECT_FALSE(stream.Push(id).ok());
    EXPECT_TRUE(stream.Push(7).ok());
    EXPECT_EQ(small->TokenText(id), "");
  }
}

TEST(Tokenizer, KnowsItsTokens) {
  const test::Opened small = OpenJson(test::SmallJson().dump());
  EXPECT_EQ(small->size(), 10u);
  EXPECT_EQ(small->TokenText(5), "##aff");
  EXPECT_EQ(small->special_ids().unk, 1);
  EXPECT_EQ(small->special_ids().cls, 2);
  EXPECT_EQ(small->special_ids().sep, 3);
  EXPECT_EQ(small->special_ids().pad, 0);
  EXPECT_EQ(small->special_ids().mask, -1);
  EXPECT_EQ(EncodeIds(*small, "unaffable. zz"), (std::vector<int32_t>{2, 4, 5, 6, 9, 1, 3}));
}

TEST(Tokenizer, ScratchGoesFromOneToAnother) {
  // Words in the cache belong to one tokenizer; another's ids must not come out.
  const test::Opened a = OpenGolden("gpt2"), b = OpenGolden("llama3");
  Scratch scratch;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(EncodeIds(*a, "the film", {.scratch = &scratch}), EncodeIds(*a, "the film"));
    EXPECT_EQ(EncodeIds(*b, "the film", {.scratch = &scratch}), EncodeIds(*b, "the film"));
  }
  EXPECT_NE(EncodeIds(*a, "the film"), EncodeIds(*b, "the film"));
}

TEST(Tokenizer, ThreadsShareIt) {
  const test::Opened gpt2 = OpenGolden("gpt2");
  const auto expected = EncodeIds(*gpt2, kText);
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      Scratch scratch;
      for (int i = 0; i < 200; ++i) same[t] += EncodeIds(*gpt2, kText, {.scratch = &scratch}) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(4, 200));
}

TEST(StreamDecoder, HoldsBackHalfACharacter) {
  const test::Opened gpt2 = OpenGolden("gpt2");
  const auto ids = EncodeIds(*gpt2, "👍", {.special = SpecialTokens::kNone});
  ASSERT_EQ(ids.size(), 4u);  // four bytes that were not merged
  StreamDecoder stream(*gpt2, {});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(*stream.Push(ids[i]), "");
  EXPECT_EQ(*stream.Push(ids[3]), "👍");
  EXPECT_EQ(*stream.Push(ids[0]), "");
  EXPECT_EQ(stream.Finish(), "\ufffd");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(StreamDecoder, ShowsEachCharacterAsSoonAsItIsWhole) {
  const test::Opened gpt2 = OpenGolden("gpt2");
  std::string expected, shown;
  StreamDecoder stream(*gpt2, {});
  for (int i = 0; i < 50; ++i) {
    const auto ids = EncodeIds(*gpt2, "👍a", {.special = SpecialTokens::kNone});
    for (const int32_t id : ids) shown += *stream.Push(id);
    expected += "👍a";
    EXPECT_EQ(shown, expected);
  }
}

TEST(StreamDecoder, HoldsBackNoMoreThanAFew) {
  const test::Opened gpt2 = OpenGolden("gpt2");
  const int32_t half = EncodeIds(*gpt2, "👍", {.special = SpecialTokens::kNone})[0];
  StreamDecoder stream(*gpt2, {});
  size_t shown = 0;
  for (int i = 0; i < 1000; ++i) shown += stream.Push(half)->size();
  shown += stream.Finish().size();
  EXPECT_EQ(shown, 3000u);
}

}  // namespace
}  // namespace wisp::text::tokenizer_image_test
