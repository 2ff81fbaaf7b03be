// Converts texts to the items of a model, by the tokenizer in its file or as words of its vocabulary.
//
//   WISP_ASSIGN_OR_RETURN(const TextTokens tokens, TextTokens::Of(file));
//   WISP_ASSIGN_OR_RETURN(const data::Tokenised made, tokens.Append(text, max_length, ids));
#ifndef WISP_TOOLS_WISP_TEXT_TOKENS_H_
#define WISP_TOOLS_WISP_TEXT_TOKENS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/labelled.h"
#include "runtime/text/texts.h"

namespace wisp::tools {

data::LetterCase GetLetterCase(Tokenizer tokenizer);
Tokenizer FindTokenizer(data::LetterCase letters);

// The texts of --text, or each line of the file of --input that is not blank.
struct GivenTexts {
  std::vector<std::string> texts;
  std::vector<uint64_t> lines;  // with --input, the line of each text, from 1; else empty
  // Returns the prefix of messages about text `i`: "in.txt, line 3: ", or "text 2: " if several were given, or nothing.
  std::string Where(const std::string& input, size_t i) const;
};
// Returns kInvalidArgument if both or neither are given, or if the file has no text.
Result<GivenTexts> TextsGiven(const std::vector<std::string>& texts, const std::string& input);

class TextTokens {
 public:
  // The file must outlive this. Returns kUnsupported if it has neither a tokenizer nor words.
  static Result<TextTokens> Of(const ModelFile& file);
  TextTokens(data::Vocabulary words, data::LetterCase letters) : words_(std::move(words)), letters_(letters) {}

  // Returns the most tokens of a text: --max-length, else as many as the model reads. Returns kInvalidArgument like
  // CheckRoom.
  Result<uint32_t> ChooseMaxTokens(const std::optional<uint32_t>& max_length, const Architecture& architecture) const;

  // Checks that texts of at most `max_length` tokens can hold at least one of their own, beside those that stand around
  // every text. kInvalidArgument names `what`.
  Status CheckRoom(const char* what, uint32_t max_length, uint32_t most) const;

  // Appends 1 to max_length tokens. Not for several threads at once.
  Result<data::Tokenised> Append(std::string_view text, uint32_t max_length, std::vector<int32_t>& tokens) const;

 private:
  explicit TextTokens(text::Tokenizer tokenizer)
      : tokenizer_(std::move(tokenizer)), scratch_(std::make_unique<text::Scratch>()) {}

  std::optional<text::Tokenizer> tokenizer_;
  std::unique_ptr<text::Scratch> scratch_;
  std::optional<data::Vocabulary> words_;
  data::LetterCase letters_ = data::LetterCase::kKeep;
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_TEXT_TOKENS_H_
