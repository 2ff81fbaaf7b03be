// Converts the files of a Hugging Face tokenizer to an image. Unsupported parts are refused by name; an accepted
// tokenizer gives the ids of the package `tokenizers` (docs/convert.md). This does not train, and it downloads nothing.
//
//   WISP_ASSIGN_OR_RETURN(const std::vector<std::byte> image, ReadTokenizerImage("bert-tiny"));
//   WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, text::Tokenizer::Open("bert-tiny", image));
//
// It looks for these files in this order: tokenizer.json; vocab.txt (WordPiece as in BERT); vocab.json with merges.txt
// (byte-level BPE as in GPT-2 and RoBERTa). Files beside them add settings and the meanings of tokens.
#ifndef WISP_TOOLS_CONVERT_TOKENIZER_JSON_H_
#define WISP_TOOLS_CONVERT_TOKENIZER_JSON_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace wisp::convert {

// The contents of the files; empty for a missing file.
struct TokenizerFiles {
  std::string name;            // for messages: the folder, or the one file
  std::string json_name = {};  // tokenizer.json, if it lies in a folder
  std::string_view tokenizer_json, tokenizer_config, vocab_txt, vocab_json, merges_txt;
  std::string_view special_tokens_map, added_tokens, generation_config, config;  // JSON of these names
  // Makes texts lower case before anything else, as sentence-transformers may ask.
  bool lower_case = false;
};

// A token with a meaning ("begin", "end", ...), and the files that give it this meaning.
struct FoundToken {
  std::string meaning;
  int32_t id = -1;
  std::string text, from;
};

// Findings in files beside the tokenizer, for people.
struct TokenizerReport {
  std::vector<FoundToken> tokens;  // of several ends, the first one is written after texts
  std::vector<std::string> notes;  // settings that replaced others, and settings that are not followed
  uint32_t max_length = 0;         // tokens of a text; 0: not given
};

// Returns kInvalidData for malformed files, and kUnsupported for an unsupported kind. The image starts on 8 bytes.
Result<std::vector<std::byte>> TokenizerImage(const TokenizerFiles& files, TokenizerReport* report = nullptr);

// Returns true if a folder has a tokenizer's files: tokenizer.json, vocab.txt or vocab.json.
bool HasTokenizer(const std::string& folder);

// Reads the files of these names in a folder, or one file, which must be a tokenizer.json. `report` may be null.
Result<std::vector<std::byte>> ReadTokenizerImage(const std::string& path, TokenizerReport* report = nullptr,
                                                  bool lower_case = false);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_TOKENIZER_JSON_H_
