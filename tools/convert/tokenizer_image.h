// A tokenizer in plain parts, and the image that is made of them (schema/tokenizer.fbs). tokenizer_json.h reads the
// files of other programs; runtime/text/tokenizers/tokenizer.h uses an image.
//
//   TokenizerParts parts;
//   parts.tokens = {"[UNK]", "a", "##b"};
//   ...
//   WISP_ASSIGN_OR_RETURN(const std::vector<std::byte> image, MakeImage("vocab.txt", parts));
#ifndef WISP_TOOLS_CONVERT_TOKENIZER_IMAGE_H_
#define WISP_TOOLS_CONVERT_TOKENIZER_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/text/tokenizers/image.h"
#include "runtime/text/tokenizers/tokenizer.h"

namespace wisp::convert {

struct TokenizerStep {
  uint32_t kind = 0, options = 0;
  std::string a, b;
};

// A token that is taken out of the text before the model sees it.
struct AddedPart {
  int32_t id = -1;
  std::string content;
  uint32_t options = 0;  // text::added
};

struct MergePart {
  int32_t left, right, result;
};

struct TokenizerParts {
  schema::TokenModel model = schema::TokenModel::None;
  uint32_t options = 0;  // text::option
  uint32_t max_word_characters = 0;
  std::string continuing_prefix;
  std::vector<std::string> tokens;  // by id; empty: no token has this id
  size_t num_model_tokens = 0;      // the model knows this many; the rest was added
  std::vector<MergePart> merges;    // the best first; of equal pairs the last one counts
  std::vector<double> scores;       // Unigram: one for each token of the model
  std::vector<TokenizerStep> normalizers, splitters, decoders;
  std::string charsmap;  // in SentencePiece's form
  std::vector<AddedPart> added;
  std::vector<int32_t> single, pair;
  text::SpecialIds special = {-1, -1, -1, -1, -1, -1, -1};
  std::vector<int32_t> other_ends;  // in addition to special.eos
};

// Makes the image, which starts on 8 bytes. It is opened once as a check before it is returned. `name` is for messages.
Result<std::vector<std::byte>> MakeImage(const std::string& name, const TokenizerParts& parts);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_TOKENIZER_IMAGE_H_
