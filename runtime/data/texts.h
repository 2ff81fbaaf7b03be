// Records of text for a decoder: a record is one line, one paragraph, or one piece of a long text. Private training
// protects a record as a whole.
//
//   WISP_ASSIGN_OR_RETURN(const TextUnit unit, ParseTextUnit("paragraph"));
//   WISP_ASSIGN_OR_RETURN(const Texts texts, ReadTexts("notes.txt", {.unit = unit}));
//   WISP_ASSIGN_OR_RETURN(const TextSequences data, EncodeTexts(texts, tokenise, {}));
//   data.Record(i)   // the tokens of text i, and of no other
//
// Every text is tokenised by itself, so its tokens follow from its own bytes alone. What does not fit is left out,
// never made into a second record.
#ifndef WISP_RUNTIME_DATA_TEXTS_H_
#define WISP_RUNTIME_DATA_TEXTS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/data/labelled.h"

namespace wisp::data {

struct TextUnit {
  enum class Kind {
    kLine,       // a line that is not blank
    kParagraph,  // lines between blank lines
    kChunk,      // a fixed number of bytes of the file
  } kind = Kind::kLine;
  uint64_t chunk_bytes = 0;  // kChunk: kMinChunk to kMaxChunk
};
inline constexpr uint64_t kMinChunk = 8, kMaxChunk = uint64_t{1} << 20;

// Parses "line", "paragraph", "chunk:256". kInvalidArgument names `what`.
Result<TextUnit> ParseTextUnit(std::string_view what, std::string_view text);
std::string ToText(const TextUnit& unit);  // in the form that ParseTextUnit reads

struct TextOptions {
  TextUnit unit;
  // For private training, where a refusal would reveal something about a record: a file without texts is not an error.
  bool private_run = false;
};

// Text i begins on line lines[i] of the file, from 1.
struct Texts {
  std::string name;  // of the file, for messages
  std::vector<std::string> texts;
  std::vector<uint64_t> lines;
};

// Lines end in LF or CRLF; byte order marks at the front of any line or chunk are left out. A line keeps its blanks, a
// paragraph its line ends except the last. A chunk is the bytes from one multiple of chunk_bytes to the next, and its
// text the characters that lie wholly within: a character across a border is in no text. So each text follows from the
// bytes of its own record, and removing these changes no other text. kInvalidData: no text, or more than 2^31 - 1.
Result<Texts> ReadTexts(const std::string& path, const TextOptions& options);
Result<Texts> ParseTexts(const std::string& name, std::string_view file, const TextOptions& options);

// One buffer of tokens: those of record i are tokens[begin[i]] .. tokens[begin[i + 1] - 1], at least two. `text` is the
// record's index among the texts.
struct TextSequences {
  std::vector<int32_t> tokens;
  std::vector<uint64_t> begin = {0};
  std::vector<uint32_t> text;
  uint64_t num_cut = 0;      // texts that were cut; all these counts are local only
  uint64_t num_short = 0;    // left out: fewer than two tokens, so there is nothing to predict
  uint64_t num_dropped = 0;  // left out: refused by the tokenizer, such as bytes that are not UTF-8
  std::string first_dropped;
  size_t size() const { return text.size(); }
  std::span<const int32_t> Record(size_t i) const {
    return {tokens.data() + begin[i], static_cast<size_t>(begin[i + 1] - begin[i])};
  }
};

// kInvalidData names file and line of a text that is refused. With `drop_bad` such texts are left out and counted,
// unless most are refused and they are many: then the file is in another form (HasAnotherForm in lines.h).
Result<TextSequences> EncodeTexts(const Texts& texts, const Tokenise& tokenise, bool drop_bad);

// True if a text is held out for testing; about `share` of all texts are, 0 to 1. It follows from the text's content
// alone, so no record decides about another one.
bool IsHeldOut(std::string_view text, double share);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_TEXTS_H_
