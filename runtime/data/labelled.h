// Labelled texts, and the vocabulary that converts them to tokens: the data that a classifier is trained and tested on.
//
//   lines   label<TAB>token token ...     no header; also the default if neither name nor first line says otherwise
//   TSV     a header that names the columns "label" and "sentence" or "text"; no quotes: a tab or a line end ends a
//           field
//   CSV     the same with RFC 4180 quotes
//
// None of this is private. A vocabulary must be public, or it reveals which words the records contain: GetTokens is for
// data whose set of tokens is declared public. It sorts them, so that the result reveals no more than the set (not the
// order of arrival, and no counts). Labels are looked up in classes that the caller names; nothing here collects them.
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
  // CSV and TSV go by the name, else by the first line, which may be a header of TSV; with drop_bad by the name alone.
  LabelledFormat format = LabelledFormat::kAuto;
  std::string text_column, label_column;  // empty: "sentence" or "text", and "label"
  // For private training, where a refusal would reveal something about a record: a malformed record is left out and
  // counted, and a file without records is not an error. If most records are malformed, and there are many, Encode
  // refuses the file as being in another form (HasAnotherForm in lines.h). Each line of CSV is then a record of its
  // own, so that a quote never swallows another record. Errors in the header stay errors.
  bool drop_bad = false;
};

// Texts as they are in the file; text i has label i and begins on line i.
struct LabelledTexts {
  std::string name;  // of the file, for messages
  std::vector<std::string> texts, labels;
  std::vector<uint64_t> lines;
  uint64_t num_dropped = 0;   // local only, both
  std::string first_dropped;  // the reason, in a sentence
};

// Blank lines are skipped. Errors name file, line, the value found and what is allowed. At most 2^31 - 1 texts.
Result<LabelledTexts> ReadLabelled(const std::string& path, const LabelledOptions& options);
Result<LabelledTexts> ParseLabelled(const std::string& name, std::string_view text, const LabelledOptions& options);

enum class LetterCase { kKeep, kLower };  // kLower: A-Z only, whatever the language of the machine

// The token that every sequence begins with, and the one that replaces unknown tokens. Both are entries of the
// vocabulary.
inline constexpr std::string_view kFirstToken = "[CLS]", kUnknownToken = "[UNK]";

class Vocabulary {
 public:
  // Entry i is token i. kInvalidData: a duplicate token, an invalid one (KeyFault), or kFirstToken or kUnknownToken
  // missing.
  static Result<Vocabulary> Create(const std::string& name, std::span<const std::string> tokens);

  const std::vector<std::string>& tokens() const { return table_.keys(); }
  // Returns unknown() for a token that is not in the vocabulary.
  int32_t Find(std::string_view token) const;
  int32_t first() const { return first_; }
  int32_t unknown() const { return unknown_; }

 private:
  KeyTable table_;
  int32_t first_ = 0, unknown_ = 0;
};

// Reads the tokens of a file, one a line. If the two special ones are missing, they are added in front.
Result<std::vector<std::string>> ReadTokens(const std::string& path);

// The set of tokens that occur, sorted by their bytes, behind the two special ones. FOR PUBLIC SETS OF TOKENS ONLY.
// `drop_bad` leaves out tokens that no vocabulary can hold, such as bytes that are not UTF-8; otherwise the vocabulary
// refuses them.
std::vector<std::string> GetTokens(const LabelledTexts& texts, LetterCase letters, bool drop_bad = false);

// Appends kFirstToken and the text's tokens (separated by ASCII blanks), at most max_length in all.
void AppendTokens(std::string_view text, const Vocabulary& vocabulary, LetterCase letters, uint32_t max_length,
                  std::vector<int32_t>& tokens);

struct EncodeOptions {
  // Public names. A label is a class's name or its number; if a class is called by another class's number, labels are
  // names only.
  std::span<const std::string> classes;
  LetterCase letters = LetterCase::kLower;
  uint32_t max_length = 0;  // 1 and above; kFirstToken counts
  bool drop_bad = false;    // LabelledOptions::drop_bad, here for texts whose label is no class
};

// One buffer of tokens: those of record i are tokens[begin[i]] .. tokens[begin[i + 1] - 1].
struct LabelledSequences {
  std::vector<int32_t> tokens, labels;
  std::vector<uint64_t> begin = {0};
  uint64_t num_unknown = 0, num_cut = 0;  // unknown tokens, and texts that were cut; local only
  uint64_t num_dropped = 0;               // from reading and from encoding; local only
  std::string first_dropped;
  size_t size() const { return labels.size(); }
  std::span<const int32_t> Record(size_t i) const {
    return {tokens.data() + begin[i], static_cast<size_t>(begin[i + 1] - begin[i])};
  }
};

// kInvalidData: a label that is no class, unless such texts are dropped.
Result<LabelledSequences> Encode(const LabelledTexts& texts, const Vocabulary& vocabulary,
                                 const EncodeOptions& options);

// The result of converting one text, which appends 1 to max_length tokens. An error is about the text.
struct Tokenised {
  bool was_cut = false;
  uint64_t num_unknown = 0;
};
using Tokenise = std::function<Result<Tokenised>(std::string_view text, std::vector<int32_t>& tokens)>;
// Encode with any tokenizer; `letters` and `max_length` are not read. kInvalidData also for a text that the tokenizer
// refuses, unless such texts are dropped.
Result<LabelledSequences> EncodeWith(const LabelledTexts& texts, const Tokenise& tokenise,
                                     const EncodeOptions& options);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_LABELLED_H_
