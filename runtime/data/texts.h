// Records of text for a decoder: one line, one paragraph, or one piece of a long text is one record. A record is what
// private training protects as a whole.
//
//   WISP_ASSIGN_OR_RETURN(const TextUnit unit, ParseTextUnit("paragraph"));
//   WISP_ASSIGN_OR_RETURN(const Texts texts, ReadTexts("notes.txt", {.unit = unit}));
//   WISP_ASSIGN_OR_RETURN(const TextSequences data, EncodeTexts(texts, tokenise, {}));
//   data.Record(i)   // the tokens of text i, and of no other
//
// Every text is made into tokens alone, so its tokens follow from its own bytes and from nothing beside them. What does
// not fit is left out, never made into a second record.
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
    kLine,       // blank lines are none
    kParagraph,  // lines between blank ones
    kChunk,      // so many bytes of the file
  } kind = Kind::kLine;
  uint64_t chunk_bytes = 0;  // kChunk: kMinChunk to kMaxChunk
};
inline constexpr uint64_t kMinChunk = 8, kMaxChunk = uint64_t{1} << 20;

// "line", "paragraph", "chunk:256". kInvalidArgument names `what`.
Result<TextUnit> ParseTextUnit(std::string_view what, std::string_view text);
std::string ToText(const TextUnit& unit);  // as ParseTextUnit reads it

struct TextOptions {
  TextUnit unit;
  // For private training, where a refusal would tell of a record: no text at all is no error.
  bool private_run = false;
};

// Text i begins on line lines[i] of the file, from 1.
struct Texts {
  std::string name;  // of the file, for messages
  std::vector<std::string> texts;
  std::vector<uint64_t> lines;
};

// Ends of lines are LF or CRLF; byte order marks at the front of any line or chunk are left out. A line keeps its
// blanks, a paragraph its ends of lines but for the last. A chunk is the bytes from one multiple of chunk_bytes to the
// next, and its text the characters that lie in them as a whole: one across a border is in no text. So each text
// follows from the bytes of its own record, and to take these away changes no other text. kInvalidData: no text, or
// more than 2^31 - 1.
Result<Texts> ReadTexts(const std::string& path, const TextOptions& options);
Result<Texts> ParseTexts(const std::string& name, std::string_view file, const TextOptions& options);

// One buffer of tokens: those of record i are tokens[begin[i]] .. tokens[begin[i + 1] - 1], two or more. `text` says
// which of the texts it was.
struct TextSequences {
  std::vector<int32_t> tokens;
  std::vector<uint64_t> begin = {0};
  std::vector<uint32_t> text;
  uint64_t num_cut = 0;      // texts that were longer; local only, all of these
  uint64_t num_short = 0;    // left out: fewer than two tokens, so nothing follows anything
  uint64_t num_dropped = 0;  // left out: what no tokenizer takes, such as bytes that are not UTF-8
  std::string first_dropped;
  size_t size() const { return text.size(); }
  std::span<const int32_t> Record(size_t i) const {
    return {tokens.data() + begin[i], static_cast<size_t>(begin[i + 1] - begin[i])};
  }
};

// kInvalidData names file and line of a text that is refused; with `drop_bad` such texts are left out and
// counted, unless most are such and they are many: then the file is in another form (IsOfAnotherForm in lines.h).
Result<TextSequences> EncodeTexts(const Texts& texts, const Tokenise& tokenise, bool drop_bad);

// Whether a text is among those that are held out to test with: about `share` of them, 0 to 1. Follows from what the
// text says and from nothing else, so no record decides about another one.
bool IsHeldOut(std::string_view text, double share);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_TEXTS_H_
