// Converts texts to ids and back, exactly as the reference does (the package `tokenizers`; docs/convert.md).
// tools/convert/tokenizer_json.h makes an image from another program's file.
//
//   WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, text::Tokenizer::Open("bert", image));
//   text::Scratch scratch;                                    // one for each thread
//   std::vector<int32_t> ids;
//   WISP_RETURN_IF_ERROR(tokenizer.Encode("a good film", {.scratch = &scratch}, ids));
//   WISP_ASSIGN_OR_RETURN(const std::string text, tokenizer.Decode(ids, {}));
//
// A tokenizer is immutable and thread-safe. It reads the image in place and builds nothing. It does not cut texts to a
// length, except in EncodeWithin.
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_TOKENIZER_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/text/tokenizers/decode.h"
#include "runtime/text/tokenizers/image.h"
#include "runtime/text/tokenizers/models.h"
#include "runtime/text/tokenizers/split.h"
#include "runtime/text/tokenizers/word_cache.h"

namespace wisp::text {

inline constexpr size_t kMaxTextBytes = size_t{16} << 20;

// Memory that is kept between calls, and a cache of words. Its size is bounded by the longest text and the cache (256
// KiB). One thread at a time may use it, with any tokenizer.
class Scratch {
 private:
  friend class Tokenizer;
  uint64_t owner = 0;
  std::string normal, spare;
  Pieces pieces;
  WordWork work;
  WordCache cache;
};

// The template tokens to add around a text, such as [CLS] ... [SEP]. kBefore adds only those before the text, for a
// text that continues.
enum class SpecialTokens { kAdd, kBefore, kNone };
struct EncodeOptions {
  SpecialTokens special = SpecialTokens::kAdd;
  Scratch* scratch = nullptr;  // null: one is made for the call
};

enum class DecodeSpecials { kSkip, kKeep };
struct DecodeOptions {
  DecodeSpecials special = DecodeSpecials::kSkip;
};

// Ids of tokens with a special meaning; -1 if the tokenizer has no such token.
struct SpecialIds {
  int32_t unk, bos, eos, pad, cls, sep, mask;
};

class Tokenizer {
 public:
  // `bytes` start on 8 bytes, outlive the tokenizer, and do not change. All of them are checked once. Messages use
  // `name`. kInvalidData: the image is damaged. kUnsupported: a newer version wrote it.
  static Result<Tokenizer> Open(std::string_view name, std::span<const std::byte> bytes);

  // Appends the ids of a text. kInvalidData: the text is not UTF-8; the message has the offset of the first bad byte.
  // kInvalidArgument: more than kMaxTextBytes. On an error `ids` is unchanged.
  Status Encode(std::string_view text, const EncodeOptions& options, std::vector<int32_t>& ids) const;
  // Encodes to at most `max_length` ids. Cuts the end of the text and keeps the template whole. Returns true if the
  // text was cut. kInvalidArgument: the template alone is longer.
  Result<bool> EncodeWithin(std::string_view text, size_t max_length, const EncodeOptions& options,
                            std::vector<int32_t>& ids) const;
  // Encodes two texts with the template for pairs.
  Status EncodePair(std::string_view first, std::string_view second, const EncodeOptions& options,
                    std::vector<int32_t>& ids) const;

  // Converts ids to text. kInvalidArgument: an id is out of range. Bytes that are not UTF-8 become U+FFFD.
  Result<std::string> Decode(std::span<const int32_t> ids, const DecodeOptions& options) const;

  // True if decoding leaves the token out.
  bool Skips(int32_t id, const DecodeOptions& options) const;

  size_t size() const { return image_.num_tokens(); }
  // The token's text in the vocabulary, such as "##able" or "Ġgood". Empty if the id has no token or is out of range.
  std::string_view TokenText(int32_t id) const;
  SpecialIds special_ids() const;
  // True if the token ends a text. One is special_ids().eos, which is written after texts; there may be others.
  bool IsEnd(int32_t id) const;
  // The tokens that end a text, other than special_ids().eos.
  std::span<const int32_t> other_ends() const { return image_.ends; }

  // For the writer of images: the text that the splitting steps get.
  Status NormalizeText(std::string_view text, std::string& normalised) const;

 private:
  friend class StreamDecoder;
  explicit Tokenizer(Image image);

  // Every conversion from an id to its text uses this function.
  Status AddText(int32_t id, const DecodeOptions& options, Decoding& decoding) const;

  Status EncodeOne(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const;
  Status EncodeNormal(std::string_view text, bool at_start, Scratch& scratch, std::vector<int32_t>& ids) const;
  Status EncodeWords(std::string_view text, bool at_start, Scratch& scratch, std::vector<int32_t>& ids) const;
  Status FillTemplate(std::span<const int32_t> items, std::span<const std::string_view> texts,
                      const EncodeOptions& options, std::vector<int32_t>& ids) const;

  Image image_;
  uint64_t serial_;  // identifies this tokenizer in caches of words
};

// Decodes one id after another, for generation. The pieces together equal the text that Decode makes of all ids. It
// holds back what a later id may change: the beginning of a character, and a run of byte tokens ("<0xE2>"), whose last
// byte may turn all of it into replacement characters.
//
//   StreamDecoder stream(tokenizer, {});
//   for (...) { WISP_ASSIGN_OR_RETURN(const std::string more, stream.Push(id)); Show(more); }
//   Show(stream.Finish());
class StreamDecoder {
 public:
  // The tokenizer must outlive this object.
  StreamDecoder(const Tokenizer& tokenizer, const DecodeOptions& options);
  // kInvalidArgument: the id is out of range. The decoder is unchanged then.
  Result<std::string> Push(int32_t id);
  // Returns what was held back, with U+FFFD for incomplete characters. The next id begins a new text.
  std::string Finish();
  // Drops what is held back; the next id continues the text. For a prompt, which is not shown.
  void Forget();

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  Decoding decoding_;
};

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_TOKENIZER_H_
