// The image of a tokenizer (schema/tokenizer.fbs): a checked view of its bytes, and the meaning of its steps. Only
// runtime/text and the writer, tools/convert/tokenizer_image.h, use it; programs use tokenizer.h.
//
//   WISP_ASSIGN_OR_RETURN(const Image image, Image::Open("t.image", bytes));
//   image.Token(17);   // points into the bytes
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_IMAGE_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/text/tokenizers/trie.h"
#include "schema/generated/tokenizer_generated.h"

namespace wisp::text {

// Numbers stored in the format: values are only ever added.
namespace option {                            // options of the image
inline constexpr uint32_t kByteLevel = 1;     // BPE over bytes: byte_ids are the first symbols
inline constexpr uint32_t kByteFallback = 2;  // text that the model does not know becomes the tokens of its bytes
inline constexpr uint32_t kFuseUnknown = 4;   // BPE: neighbouring unknown symbols become one token
inline constexpr uint32_t kIgnoreMerges = 8;  // BPE: a whole word that is a token is not merged
inline constexpr uint32_t kAll = 15;
}  // namespace option

namespace added {  // options of an added token
inline constexpr uint32_t kSpecial = 1, kLeftStrip = 2, kRightStrip = 4, kSingleWord = 8, kNormalized = 16;
inline constexpr uint32_t kSkipped = 32;  // left out when special tokens are not decoded
inline constexpr uint32_t kAll = 63;
}  // namespace added

enum class NormalizeKind : uint32_t {
  kBert = 1,  // options are in namespace bert
  kForm = 2,  // options hold a Form
  kLower = 3,
  kStripAccents = 4,
  kStrip = 5,          // options: 1 strips the left end, 2 the right end
  kReplace = 6,        // replaces text a by text b
  kReplaceSpaces = 7,  // replaces two or more spaces by b
  kPrepend = 8,        // prepends text a
  kCharsmap = 9,
  kNmt = 10,
};
namespace bert {
constexpr uint32_t kClean = 1, kSpaceChinese = 2, kStripAccents = 4, kLower = 8;
}

enum class SplitKind : uint32_t {
  kBert = 1,
  kGpt2 = 2,         // the pattern of GPT-2
  kLlama3 = 3,       // the pattern of Llama 3
  kQwen2 = 4,        // the pattern of Qwen 2
  kPrefixSpace = 5,  // adds a space before a piece that does not begin with one
  kMetaspace = 6,    // a is the replacement; options are in namespace metaspace
  kWhitespace = 7,   // splits into runs of word characters and runs of others
  kWhitespaceOnly = 8,
  kPunctuation = 9,
  kDigits = 10,  // options: 1 splits every digit
  kText = 11,    // splits at text a; options hold a TextCut
};
namespace metaspace {
constexpr uint32_t kAlways = 1, kFirst = 2, kSplit = 4;
}
enum class TextCut : uint32_t { kRemoved = 0, kIsolated = 1, kWithPrevious = 2, kWithNext = 3 };

enum class DecodeKind : uint32_t {
  kWordPiece = 1,  // a is the prefix; options: 1 cleans up spaces
  kByteLevel = 2,
  kMetaspace = 3,  // a is the replacement; options: 1 adds none at the front
  kReplace = 4,    // replaces text a by text b
  kByteFallback = 5,
  kFuse = 6,
  kStrip = 7,  // a is the character; options: the number at the front, plus 65536 times the number at the end
};

// Limits that keep small what a malicious image can make us do.
constexpr size_t kMaxSteps = 32, kMaxStepText = 64, kMaxCharsmapText = 256, kMaxTemplate = 64, kMaxEnds = 64;
constexpr size_t kMaxTokens = size_t{1} << 24, kMaxAdded = 1 << 16;

// The first slot to search for a pair in a table of `size` entries; `size` is a power of two.
inline size_t MergeSlot(uint32_t left, uint32_t right, size_t size) {
  const uint64_t mixed =
      (uint64_t{left} << 32 | right) * 0x9e3779b97f4a7c15u;  // Fibonacci hashing: 2^64 / golden ratio
  return (mixed >> 32) & (size - 1);
}

struct Step {
  uint32_t kind, options;
  std::string_view a, b;
};

struct Image {
  // `bytes` start on 8 bytes, outlive the image, and do not change. Every byte is read once; nothing is built.
  static Result<Image> Open(std::string_view name, std::span<const std::byte> bytes);

  size_t num_tokens() const { return token_offsets.size() - 1; }
  std::string_view Token(size_t id) const {
    return token_bytes.substr(token_offsets[id], token_offsets[id + 1] - token_offsets[id]);
  }
  bool Is(uint32_t flag) const { return (options & flag) != 0; }
  std::string_view Shown(const schema::AddedToken& token) const {
    return texts.substr(token.shown().begin(), token.shown().size());
  }
  // Decoding: the added token with this id, or null. `added` is sorted by id.
  const schema::AddedToken* AddedWith(uint32_t id) const;

  schema::TokenModel model = schema::TokenModel::None;
  uint32_t options = 0;
  uint32_t max_word_characters = 0;
  uint32_t continuing_node = Trie::kNone;  // the trie's node after the prefix of continuing tokens
  std::span<const uint32_t> token_offsets;
  std::string_view token_bytes;
  Trie trie;
  std::span<const schema::TokenMerge> merges;
  std::span<const double> scores;
  double unknown_score = 0;
  std::span<const int32_t> byte_ids;
  std::vector<Step> normalizers, splitters, decoders;  // they point to a few texts
  std::span<const uint32_t> charsmap_trie;
  std::string_view charsmap_texts;
  std::span<const schema::AddedToken> added;
  Trie added_raw, added_normal;
  std::span<const int32_t> single, pair;
  std::string_view texts;
  int32_t unk = -1, bos = -1, eos = -1, pad = -1, cls = -1, sep = -1, mask = -1;
  std::span<const int32_t> ends;  // tokens other than `eos` that end a text
};

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_IMAGE_H_
