// Helpers of the tokenizers' tests: the golden files, and a small tokenizer.json to change.
#ifndef WISP_TESTS_UNIT_TEXT_TEXT_TEST_UTIL_H_
#define WISP_TESTS_UNIT_TEXT_TEXT_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/text/tokenizers/decode.h"
#include "runtime/text/tokenizers/tokenizer.h"
#include "runtime/text/tokenizers/unicode.h"
#include "tests/unit/from_sources.h"
#include "tools/convert/tokenizer_json.h"

namespace wisp::text::test {

inline const char* const kGoldenNames[] = {"bert",   "bert-added",   "bert-cased", "words",        "words-cut",
                                           "gpt2",   "gpt2-added",   "roberta",    "llama3",       "qwen2",
                                           "llama2", "llama2-added", "unigram",    "unigram-bytes"};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string GoldenPath(const std::string& file) {
  return wisp::test::FromSources("tests/golden/tokenizers/" + file);
}

// An image and the tokenizer that points into it.
struct Opened {
  std::vector<std::byte> image;
  Result<Tokenizer> tokenizer = Status(StatusCode::kInvalidData, "not opened");
  const Tokenizer& operator*() const { return *tokenizer; }
  const Tokenizer* operator->() const { return &*tokenizer; }
};

inline Opened OpenFiles(const convert::TokenizerFiles& files) {
  Opened opened;
  auto image = convert::TokenizerImage(files);
  EXPECT_TRUE(image.ok()) << image.status().message();
  if (!image.ok()) return opened;
  opened.image = *std::move(image);
  opened.tokenizer = Tokenizer::Open(files.name, opened.image);
  EXPECT_TRUE(opened.tokenizer.ok()) << opened.tokenizer.status().message();
  return opened;
}

inline Opened OpenJson(const std::string& json) { return OpenFiles({.name = "t", .tokenizer_json = json}); }
inline Opened OpenGolden(const std::string& name) { return OpenJson(ReadFile(GoldenPath(name + ".json"))); }

inline std::vector<int32_t> EncodeIds(const Tokenizer& tokenizer, std::string_view text,
                                      const EncodeOptions& options = {}) {
  std::vector<int32_t> ids;
  const Status status = tokenizer.Encode(text, options, ids);
  EXPECT_TRUE(status.ok()) << status.message();
  return ids;
}

// Returns ids as a model may sample them: any, with byte tokens more often.
inline std::vector<int32_t> RandomIds(const Tokenizer& tokenizer, std::mt19937& random) {
  std::vector<int32_t> bytes, ids(1 + random() % 24);
  for (size_t id = 0; id < tokenizer.size(); ++id) {
    const std::string_view text = tokenizer.TokenText(static_cast<int32_t>(id));
    const int byte = ParseFallbackByte(text);
    if (byte >= 0x80 || (!text.empty() && CharacterAt(text, 0).size == text.size() && CharacterAt(text, 0).code > 0x7e))
      bytes.push_back(static_cast<int32_t>(id));
  }
  const bool mostly_bytes = random() % 2 == 0 && !bytes.empty();
  for (int32_t& id : ids) {
    id = mostly_bytes && random() % 8 != 0 ? bytes[random() % bytes.size()]
                                           : static_cast<int32_t>(random() % tokenizer.size());
  }
  return ids;
}

// Returns a WordPiece of a few tokens, with everything around it.
inline nlohmann::json SmallJson() {
  return nlohmann::json::parse(R"({
    "added_tokens": [
      {"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
       "special": true},
      {"id": 3, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
       "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                   "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100,
              "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "un": 4, "##aff": 5, "##able": 6, "a": 7,
                        "##b": 8, ".": 9}}})");
}

}  // namespace wisp::text::test

#endif  // WISP_TESTS_UNIT_TEXT_TEXT_TEST_UTIL_H_
