// Labelled texts and the vocabulary that turns them into tokens: what a classifier is trained and tested on.
//
//   lines   label<TAB>token token ...     no header; also the default where neither name nor first line says another
//   TSV     a header that names the columns "label" and "sentence" or "text"; no quotes: a tab or a line end ends a
//           field
//   CSV     the same with RFC 4180 quotes
//
// What it is not: a source of privacy. A vocabulary must be public, or it says which words the records have: TokensOf
// is for data whose set of tokens is declared public. It sorts, so that no more than the set shows (order of arrival
// and counts do not). Labels are looked up in classes that the caller names; nothing here collects them.
//
//   WISP_ASSIGN_OR_RETURN(const Vocabulary vocabulary, Vocabulary::Create("v.txt", tokens));
//   WISP_ASSIGN_OR_RETURN(const LabelledTexts texts, ReadLabelled("train.tsv", {}));
//   WISP_ASSIGN_OR_RETURN(const LabelledSequences data, Encode(texts, vocabulary, {.classes = classes,
//       .max_length = 64}));
#ifndef WISP_RUNTIME_DATA_LABELLED_H_
#define WISP_RUNTIME_DATA_LABELLED_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/data/key_table.h"

namespace wisp::data {

enum class LabelledFormat { kAuto, kLines, kTsv, kCsv };
Result<LabelledFormat> ParseLabelledFormat(std::string_view name);  // auto, lines, tsv, csv

struct LabelledOptions {
  // By the name for CSV and TSV, else by the first line, which may be a header of TSV; with drop_bad by the name alone.
  LabelledFormat format = LabelledFormat::kAuto;
  std::string text_column, label_column;  // empty: "sentence" or "text", and "label"
  // For private training, where a refusal would tell of a record: one that is malformed is left out and counted, and
  // none at all is no error. Where most are, and they are many, Encode refuses the file: it is in another form
  // (IsOfAnotherForm in lines.h). A line of CSV is a record of its own then, so that a quote never takes in another
  // one. Faults of the header stay errors.
  bool drop_bad = false;
};

// Texts as they stand in the file; text i has label i and begins on line i.
struct LabelledTexts {
  std::string name;  // of the file, for messages
  std::vector<std::string> texts, labels;
  std::vector<uint64_t> lines;
  uint64_t num_dropped = 0;   // local only, both
  std::string first_dropped;  // why, in a sentence
};

// Blank lines are skipped. Errors name file, line, the value found and what is allowed. At most 2^31 - 1 texts.
Result<LabelledTexts> ReadLabelled(const std::string& path, const LabelledOptions& options);
Result<LabelledTexts> ParseLabelled(const std::string& name, std::string_view text, const LabelledOptions& options);

enum class LetterCase { kKeep, kLower };  // kLower: A-Z only, whatever the language of the machine

// The token that every sequence begins with, and the one for whatever the vocabulary does not have. Both are entries of
// it.
inline constexpr std::string_view kFirstToken = "[CLS]", kUnknownToken = "[UNK]";

class Vocabulary {
 public:
  // Entry i is token i. kInvalidData: a token twice, one that is no text (KeyFault), kFirstToken or kUnknownToken
  // missing.
  static Result<Vocabulary> Create(const std::string& name, std::span<const std::string> tokens);

  const std::vector<std::string>& tokens() const { return table_.keys(); }
  // unknown() for a token that it does not have.
  int32_t Find(std::string_view token) const;
  int32_t first() const { return first_; }
  int32_t unknown() const { return unknown_; }

 private:
  KeyTable table_;
  int32_t first_ = 0, unknown_ = 0;
};

// The tokens of a file, one a line, the two special ones in front where the file does not have them.
Result<std::vector<std::string>> ReadTokens(const std::string& path);

// The set of tokens that occur, sorted by their bytes, behind the two special ones. FOR PUBLIC SETS OF TOKENS ONLY.
// With `drop_bad` without those that no vocabulary can hold, such as bytes that are no UTF-8; without it the vocabulary
// refuses them.
std::vector<std::string> TokensOf(const LabelledTexts& texts, LetterCase letters, bool drop_bad = false);

// Appends kFirstToken and the text's tokens (separated by ASCII blanks), max_length of them at most.
void AppendTokens(std::string_view text, const Vocabulary& vocabulary, LetterCase letters, uint32_t max_length,
                  std::vector<int32_t>& tokens);

struct EncodeOptions {
  // Public. A label is a class's name or its number. Where a class is called by another number than its own, names
  // alone are labels.
  std::span<const std::string> classes;
  LetterCase letters = LetterCase::kLower;
  uint32_t max_length = 0;  // 1 and above, kFirstToken included
  bool drop_bad = false;    // as LabelledOptions: here texts with a label that is no class
};

// One buffer of tokens: those of record i are tokens[begin[i]] .. tokens[begin[i + 1] - 1].
struct LabelledSequences {
  std::vector<int32_t> tokens, labels;
  std::vector<uint64_t> begin = {0};
  uint64_t num_unknown = 0, num_cut = 0;  // unknown tokens, and texts that were longer; local only
  uint64_t num_dropped = 0;               // local only, both: those of the texts and what was dropped here
  std::string first_dropped;
  size_t size() const { return labels.size(); }
  std::span<const int32_t> Record(size_t i) const {
    return {tokens.data() + begin[i], static_cast<size_t>(begin[i + 1] - begin[i])};
  }
};

// kInvalidData: a label that is no class, unless such texts are dropped.
Result<LabelledSequences> Encode(const LabelledTexts& texts, const Vocabulary& vocabulary,
                                 const EncodeOptions& options);

// How one text becomes tokens: appends 1 to max_length of them. An error is about the text.
struct Tokenised {
  bool was_cut = false;
  uint64_t num_unknown = 0;
};
using Tokenise = std::function<Result<Tokenised>(std::string_view text, std::vector<int32_t>& tokens)>;
// The same with tokens from anywhere; `letters` and `max_length` are not read. kInvalidData also for a text that is
// refused, unless such texts are dropped.
Result<LabelledSequences> EncodeWith(const LabelledTexts& texts, const Tokenise& tokenise,
                                     const EncodeOptions& options);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_LABELLED_H_
