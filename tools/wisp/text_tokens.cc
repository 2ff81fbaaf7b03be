#include "tools/wisp/text_tokens.h"

#include <algorithm>

#include "runtime/core/file.h"
#include "runtime/data/lines.h"
#include "tools/wisp/dataset.h"

namespace wisp::tools {

data::LetterCase GetLetterCase(Tokenizer tokenizer) {
  return tokenizer == Tokenizer::kWhitespaceLower ? data::LetterCase::kLower : data::LetterCase::kKeep;
}
Tokenizer FindTokenizer(data::LetterCase letters) {
  return letters == data::LetterCase::kLower ? Tokenizer::kWhitespaceLower : Tokenizer::kWhitespace;
}

Result<TextTokens> TextTokens::Of(const ModelFile& file) {
  if (!file.tokenizer().empty()) {
    WISP_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, wisp::FindTokenizer(file));
    return TextTokens(std::move(tokenizer));
  }
  const Tokenizer words = file.is_classifier() ? file.classifier().tokenizer : Tokenizer::kNone;
  if (words == Tokenizer::kNone)
    return Unsupported(file.name(), ": it brings no tokenizer: texts cannot be given to it");
  WISP_ASSIGN_OR_RETURN(data::Vocabulary vocabulary, data::Vocabulary::Create(file.name(), ItemKeys(file)));
  return TextTokens(std::move(vocabulary), GetLetterCase(words));
}

std::string GivenTexts::Where(const std::string& input, size_t i) const {
  if (!lines.empty()) return input + ", line " + std::to_string(lines[i]) + ": ";
  return texts.size() > 1 ? "text " + std::to_string(i + 1) + ": " : "";
}

Result<GivenTexts> TextsGiven(const std::vector<std::string>& texts, const std::string& input) {
  if (texts.empty() == input.empty()) return InvalidArgument("either --text or --input is needed");
  if (!texts.empty()) return GivenTexts{.texts = texts};
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(input));
  GivenTexts given;
  data::Lines lines({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  while (lines.Next()) {
    given.texts.emplace_back(lines.line());
    given.lines.push_back(lines.number());
  }
  if (given.texts.empty()) return InvalidArgument(input, ": it has no text, a line for each is needed");
  return given;
}

Result<uint32_t> TextTokens::ChooseMaxTokens(const std::optional<uint32_t>& max_length,
                                             const Architecture& architecture) const {
  if (!max_length) return architecture.max_length;
  WISP_RETURN_IF_ERROR(CheckRoom("--max-length", *max_length, architecture.max_length));
  return *max_length;
}

Status TextTokens::CheckRoom(const char* what, uint32_t max_length, uint32_t most) const {
  if (tokenizer_) return CheckTextRoom(*tokenizer_, what, max_length, most);
  if (max_length > 1 && max_length <= most) return OkStatus();  // one token stands before every text
  return InvalidArgument(what, " is ", max_length, ", allowed are 2 to ", most);
}

Result<data::Tokenised> TextTokens::Append(std::string_view text, uint32_t max_length,
                                           std::vector<int32_t>& tokens) const {
  const size_t first = tokens.size();
  if (words_) {
    data::AppendTokens(text, *words_, letters_, max_length, tokens);
    return data::Tokenised{};
  }
  WISP_ASSIGN_OR_RETURN(const bool was_cut, AppendText(*tokenizer_, text, max_length, scratch_.get(), tokens));
  const int32_t unknown = tokenizer_->special_ids().unk;
  const auto unknowns =
      unknown < 0 ? 0 : std::count(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end(), unknown);
  return data::Tokenised{.was_cut = was_cut, .num_unknown = static_cast<uint64_t>(unknowns)};
}

}  // namespace wisp::tools
