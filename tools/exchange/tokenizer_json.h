// The files of a Hugging Face tokenizer, made into the image of one. What is not supported is refused by name; what is
// accepted gives the ids of the package `tokenizers` (docs/tokenizers.md). Not a trainer, and it loads nothing.
//
//   WISP_ASSIGN_OR_RETURN(const std::vector<std::byte> image, TokenizerImageOfFolder("bert-tiny"));
//   WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, text::Tokenizer::Open("bert-tiny", image));
//
// Read are, in this order: tokenizer.json; vocab.txt (WordPiece as BERT has it); vocab.json with merges.txt
// (byte-level BPE as GPT-2 and RoBERTa have it). tokenizer_config.json adds which token has which meaning, and what
// BERT's normaliser does.
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
};

// kInvalidData for what is malformed, kUnsupported for a kind that is not supported. The image starts on 8 bytes.
Result<std::vector<std::byte>> TokenizerImage(const TokenizerFiles& files);

// The files of these names in a folder, or one file, which must be a tokenizer.json.
Result<std::vector<std::byte>> TokenizerImageOfFolder(const std::string& path);

}  // namespace wisp::exchange

#endif  // WISP_TOOLS_EXCHANGE_TOKENIZER_JSON_H_
