// Files of other programs: what is accepted, and that each unsupported kind is refused by name.
#include "tools/convert/tokenizer_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/unit/text/text_test_util.h"
#include "tools/convert/tokenizer_image.h"
#include "tools/convert/trie_builder.h"

namespace wisp::convert::tokenizer_json_test {
namespace {

using nlohmann::json;
using text::test::EncodeIds;
using text::test::OpenFiles;
using text::test::OpenGolden;
using text::test::OpenJson;
using text::test::SmallJson;

void ExpectRefused(const std::string& file, const std::string& words, StatusCode code) {
  const auto image = TokenizerImage({.name = "t", .tokenizer_json = file});
  ASSERT_FALSE(image.ok()) << words;
  EXPECT_EQ(image.status().code(), code) << image.status().message();
  EXPECT_NE(image.status().message().find(words), std::string::npos)
      << image.status().message() << "\nexpected: " << words;
  EXPECT_EQ(image.status().message().rfind("t: ", 0), 0u) << image.status().message();
}

void ExpectChanged(const std::function<void(json&)>& change, const std::string& words,
                   StatusCode code = StatusCode::kUnsupported) {
  json changed = SmallJson();
  change(changed);
  ExpectRefused(changed.dump(), words, code);
}

json Bpe() {
  return json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<u>": 3}, "merges": ["a b"]}})");
}
json Unigram() {
  return json::parse(
      R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["ab", -2]]}})");
}

TEST(TokenizerJson, UnsupportedKindsAreNamed) {
  ExpectChanged([](json& j) { j["model"]["type"] = "WordLevel"; },
                "'WordLevel', supported are WordPiece, BPE and Unigram");
  ExpectChanged(
      [](json& j) {
        j["normalizer"] = {{"type", "Odd"}};
      },
      "the normalizer has the type 'Odd', supported are");
  ExpectChanged(
      [](json& j) {
        j["pre_tokenizer"] = {{"type", "CharDelimiterSplit"}};
      },
      "the pre_tokenizer has the type 'CharDelimiterSplit', supported are");
  ExpectChanged([](json& j) { j["post_processor"] = {{"type", "Odd"}}; }, "the post_processor has the type 'Odd'");
  ExpectChanged([](json& j) { j["decoder"] = {{"type", "CTC"}}; }, "the decoder has the type 'CTC', supported are");
  ExpectChanged([](json& j) { j["pre_tokenizer"] = {{"type", "ByteLevel"}}; }, "before a BPE model alone");
  ExpectChanged(
      [](json& j) {
        j["pre_tokenizer"] = {{"type", "Punctuation"}, {"behavior", "Contiguous"}};
      },
      "Contiguous");
  ExpectChanged(
      [](json& j) {
        j["pre_tokenizer"] = json::parse(R"({"type": "Split", "pattern": {"Regex": "x+"},
      "behavior": "Isolated", "invert": false})");
      },
      "'x+' with the behavior 'Isolated' is not supported, supported are those of GPT-2");
  ExpectChanged(
      [](json& j) {
        j["normalizer"] = json::parse(R"({"type": "Replace", "pattern": {"Regex": "a|b"},
      "content": ""})");
      },
      "the Regex 'a|b' is not supported");
  ExpectChanged(
      [](json& j) {
        j["normalizer"] = json::parse(R"({"type": "Prepend", "prepend": "\u001b[2J"})");
        j["normalizer"]["type"] = "\x1b[2J";
      },
      "'?[2J'");
}

TEST(TokenizerJson, UnsupportedModelsAreNamed) {
  const auto bpe = [](const char* key, const json& value, const char* words,
                      StatusCode code = StatusCode::kUnsupported) {
    json changed = Bpe();
    changed["model"][key] = value;
    ExpectRefused(changed.dump(), words, code);
  };
  bpe("dropout", 0.1, "dropout is set");
  bpe("end_of_word_suffix", "</w>", "end_of_word_suffix is '</w>'");
  bpe("continuing_subword_prefix", "##", "continuing_subword_prefix is '##'");
  bpe("unk_token", "<no>", "'<no>' is not in the vocabulary", StatusCode::kInvalidData);
  bpe("merges", json::array({"a c"}), "is not all in the vocabulary", StatusCode::kInvalidData);
  bpe("merges", json::array({"a b c"}), "merge 0 is no pair", StatusCode::kInvalidData);
  bpe("merges", 7, "the model has no merges", StatusCode::kInvalidData);
  bpe("vocab", json::object(), "the model has no vocab", StatusCode::kInvalidData);
  bpe("vocab", {{"a", 0}, {"b", 0}}, "both have the id 0");
  bpe("vocab", {{"a", 4000000000u}}, "is no whole number below", StatusCode::kInvalidData);
  bpe("vocab", {{"a", -1}}, "is no whole number below", StatusCode::kInvalidData);
  bpe("fuse_unk", "yes", "fuse_unk is no boolean", StatusCode::kInvalidData);
  json unigram = Unigram();
  unigram["model"]["unk_id"] = nullptr;
  ExpectRefused(unigram.dump(), "its unk_id is no token", StatusCode::kUnsupported);
  unigram = Unigram();
  unigram["model"]["vocab"].push_back({"a", 0});
  ExpectRefused(unigram.dump(), "the token 'a' is there twice", StatusCode::kUnsupported);
  unigram["model"]["vocab"] = json::parse(R"([["a"]])");
  ExpectRefused(unigram.dump(), "entry 0 of its vocab", StatusCode::kInvalidData);
}

TEST(TokenizerJson, MalformedPartsAreNamed) {
  const StatusCode invalid = StatusCode::kInvalidData;
  ExpectRefused("", "there is no tokenizer", StatusCode::kInvalidArgument);
  ExpectRefused("{", "this is no JSON object", invalid);
  ExpectRefused("[]", "this is no JSON object", invalid);
  ExpectRefused("{\"a\": \"\xff\"}", "this is no JSON object", invalid);
  ExpectRefused("{}", "it has no object named model", invalid);
  ExpectRefused("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}", "nested more than 64 deep", invalid);
  ExpectChanged([](json& j) { j["model"]["unk_token"] = "no"; }, "its unk_token 'no' is not in the vocabulary",
                invalid);
  ExpectChanged([](json& j) { j["added_tokens"] = 3; }, "added_tokens is no list", invalid);
  ExpectChanged([](json& j) { j["added_tokens"][0]["id"] = 7; }, "has the id 7, the reference gives it 2");
  ExpectChanged([](json& j) { j["added_tokens"][0]["lstrip"] = 1; }, "lstrip is no boolean", invalid);
  ExpectChanged([](json& j) { j["post_processor"]["cls"] = {"[CLS]"}; }, "cls is no pair", invalid);
  ExpectChanged([](json& j) { j["post_processor"]["cls"][1] = 4711; }, "a template has the item 4711", invalid);
  ExpectChanged([](json& j) { j["normalizer"] = 3; }, "the normalizer is no object", invalid);
  ExpectChanged([](json& j) { j["normalizer"] = {{"type", "Sequence"}}; }, "must have a list of normalizers", invalid);
  ExpectChanged(
      [](json& j) {
        j["normalizer"] = {{"type", "Prepend"}, {"prepend", std::string(65, 'x')}};
      },
      "allowed are 64", invalid);
  ExpectChanged(
      [](json& j) {
        j["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAA!"}};
      },
      "is no base64", invalid);
  ExpectChanged(
      [](json& j) {
        j["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}};
      },
      "allowed is a trie of whole units", invalid);
  ExpectChanged(
      [](json& j) {
        j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "ab"}};
      },
      "a metaspace must be one character", invalid);
  ExpectChanged(
      [](json& j) {
        j["pre_tokenizer"] = {{"type", "Metaspace"}, {"prepend_scheme", "often"}};
      },
      "its prepend_scheme is 'often'", invalid);
}

// Replaces any value of the file by one of another type: it is refused or accepted, but never a crash.
void Visit(json& node, const std::function<void()>& tried) {
  const json kept = node;
  for (const json& other :
       {json(), json(true), json(-1), json(1e300), json(4294967295u), json("x"), json::array(), json::object()}) {
    node = other;
    tried();
  }
  node = kept;
  if (!node.is_structured()) return;
  for (auto& child : node) Visit(child, tried);
}

TEST(TokenizerJson, ValuesOfOtherTypesAreHarmless) {
  json bpe = Bpe(), unigram = Unigram(), small = SmallJson();
  bpe["pre_tokenizer"] = json::parse(R"({"type": "Sequence", "pretokenizers": [{"type": "Digits",
      "individual_digits": true}, {"type": "ByteLevel", "add_prefix_space": true, "use_regex": true}]})");
  bpe["post_processor"] = json::parse(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x",
      "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"x": {"id": "x",
      "ids": [1], "tokens": ["x"]}}})");
  unigram["normalizer"] = json::parse(R"({"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": true},
      {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}]})");
  unigram["decoder"] = json::parse(R"({"type": "Strip", "content": "a", "start": 1, "stop": 0})");
  for (json* root : {&bpe, &unigram, &small}) {
    ASSERT_TRUE(TokenizerImage({.name = "t", .tokenizer_json = root->dump()}).ok());
    Visit(*root, [&] {
      const std::string file = root->dump();
      const auto image = TokenizerImage({.name = "t", .tokenizer_json = file});
      if (image.ok()) return;
      EXPECT_FALSE(image.status().message().empty());
    });
  }
}

TEST(TokenizerJson, DamagedFilesAreHarmless) {
  const uint32_t seed = 5;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const char* name : {"bert-added", "llama3", "unigram"}) {
    const std::string whole = text::test::ReadFile(text::test::GoldenPath(std::string(name) + ".json"));
    for (int i = 0; i < 200; ++i) {
      std::string file = whole;
      file[random() % file.size()] = static_cast<char>(random());
      if (i % 3 == 0) file.resize(random() % file.size());
      const auto image = TokenizerImage({.name = "t", .tokenizer_json = file});
      EXPECT_TRUE(image.ok() || !image.status().message().empty());
    }
  }
}

TEST(TokenizerFiles, VocabularyIsReadAsBertHasIt) {
  const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\na\n##b\n.\n";
  const auto lower = OpenFiles({.name = "t", .vocab_txt = vocabulary});
  const auto json = OpenJson(SmallJson().dump());
  for (const char* text : {"Unaffable. AB", "a [SEP] b", ""})
    EXPECT_EQ(EncodeIds(*lower, text), EncodeIds(*json, text));
  const auto cased =
      OpenFiles({.name = "t", .tokenizer_config = R"({"do_lower_case": false})", .vocab_txt = vocabulary});
  EXPECT_EQ(EncodeIds(*cased, "A a"), (std::vector<int32_t>{2, 1, 7, 3}));
  const auto lacking = TokenizerImage({.name = "t", .vocab_txt = "a\nb\n[UNK]\n"});
  ASSERT_FALSE(lacking.ok());
  EXPECT_NE(lacking.status().message().find("it lacks the token of the start"), std::string::npos);
  EXPECT_FALSE(TokenizerImage({.name = "t", .vocab_txt = "a\xff\n"}).ok());
}

TEST(TokenizerFiles, MergesAreReadAsRobertaHasThem) {
  json golden = json::parse(text::test::ReadFile(text::test::GoldenPath("roberta.json")));
  std::string merges = "#version: 0.2\n";
  for (const json& merge : golden["model"]["merges"])
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  const std::string vocabulary = golden["model"]["vocab"].dump();
  const auto files = OpenFiles({.name = "t",
                                .tokenizer_config = R"({"add_prefix_space": true})",
                                .vocab_json = vocabulary,
                                .merges_txt = merges});
  const auto whole = OpenGolden("roberta");
  for (const char* text : {"The film isn't good <mask> </s>", "", " a"})
    EXPECT_EQ(EncodeIds(*files, text), EncodeIds(*whole, text));
}

TEST(TokenizerFiles, FolderWithoutOneIsRefused) {
  const auto none = ReadTokenizerImage(text::test::GoldenPath(""));
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("needed is tokenizer.json, vocab.txt, or vocab.json"), std::string::npos);
  EXPECT_FALSE(ReadTokenizerImage("/there/is/no/such/file").ok());
  EXPECT_TRUE(ReadTokenizerImage(text::test::GoldenPath("bert.json")).ok());
}

TEST(TokenizerFiles, ConfigurationNamesTokens) {
  const std::string file = SmallJson().dump();
  const auto named = OpenFiles({.name = "t", .tokenizer_json = file, .tokenizer_config = R"({"bos_token": "a",
      "eos_token": {"content": "un"}, "pad_token": null})"});
  EXPECT_EQ(named->special_ids().bos, 7);
  EXPECT_EQ(named->special_ids().eos, 4);
  EXPECT_EQ(named->special_ids().pad, -1);
}

TEST(TrieBuilder, FindsWhatIsThereAndNothingElse) {
  const uint32_t seed = 9;
  std::mt19937 random(seed);
  std::map<std::string, int32_t> expected;
  std::vector<std::pair<std::string, int32_t>> keys;
  for (int32_t i = 0; i < 5000; ++i) {
    std::string key(1 + random() % 6, '\0');
    for (char& c : key) c = static_cast<char>(random() % 3 == 0 ? random() : 'a' + random() % 4);
    keys.emplace_back(key, i);
    expected[key] = i;
  }
  const auto units = BuildTrie(keys);
  const text::Trie trie(units);
  for (const auto& [key, value] : expected) {
    EXPECT_EQ(trie.Find(key), value);
    for (size_t size = 1; size <= key.size(); ++size) {
      const auto found = expected.find(key.substr(0, size) + "x");
      EXPECT_EQ(trie.Find(key.substr(0, size) + "x"), found == expected.end() ? -1 : found->second);
    }
  }
  EXPECT_LT(units.size(), 3 * 20000u);
  EXPECT_TRUE(BuildTrie({}).empty());
}

}  // namespace
}  // namespace wisp::convert::tokenizer_json_test
