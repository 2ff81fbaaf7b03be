// The files of a Hugging Face tokenizer, made into the image of one. What is not supported is refused by name; what is
// accepted gives the ids of the package `tokenizers` (docs/convert.md). Not a trainer, and it loads nothing.
//
//   WISP_ASSIGN_OR_RETURN(const std::vector<std::byte> image, TokenizerImageOfFolder("bert-tiny"));
//   WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, text::Tokenizer::Open("bert-tiny", image));
//
// Read are, in this order: tokenizer.json; vocab.txt (WordPiece as BERT has it); vocab.json with merges.txt
// (byte-level BPE as GPT-2 and RoBERTa have it). Files beside them add settings, and which token has which meaning.
#ifndef WISP_TOOLS_EXCHANGE_TOKENIZER_JSON_H_
#define WISP_TOOLS_EXCHANGE_TOKENIZER_JSON_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace wisp::exchange {

// What the files hold; empty for one that there is not.
struct TokenizerFiles {
  std::string name;            // for messages: of the folder, or of the one file
  std::string json_name = {};  // of tokenizer.json, where it is one of a folder
  std::string_view tokenizer_json, tokenizer_config, vocab_txt, vocab_json, merges_txt;
  std::string_view special_tokens_map, added_tokens, generation_config, config;  // JSON of these names
  // Texts are in lower case before anything else is done, as sentence-transformers may ask.
  bool lower_case = false;
};

// A token with a meaning ("begin", "end", ...), and the files that give it this.
struct FoundToken {
  std::string meaning;
  int32_t id = -1;
  std::string text, from;
};

// What was found in files beside the tokenizer: for people.
struct TokenizerReport {
  std::vector<FoundToken> tokens;  // of several ends the first one is written behind texts
  std::vector<std::string> notes;  // settings that took another's place, and those that are not followed
  uint32_t max_length = 0;         // tokens of a text; 0: nothing is said
};

// kInvalidData for what is malformed, kUnsupported for a kind that is not supported. The image starts on 8 bytes.
Result<std::vector<std::byte>> TokenizerImage(const TokenizerFiles& files, TokenizerReport* report = nullptr);

// Whether a folder has the files of one: tokenizer.json, vocab.txt or vocab.json.
bool HasTokenizer(const std::string& folder);

// The files of these names in a folder, or one file, which must be a tokenizer.json. `report` may be null.
Result<std::vector<std::byte>> TokenizerImageOfFolder(const std::string& path, TokenizerReport* report = nullptr,
                                                      bool lower_case = false);

}  // namespace wisp::exchange

#endif  // WISP_TOOLS_EXCHANGE_TOKENIZER_JSON_H_
