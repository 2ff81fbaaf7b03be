// Texts to ids and back, exactly as the reference does it (the package `tokenizers`; docs/convert.md). Not the
// reading of other programs' files: tools/exchange/tokenizer_json.h makes the image of one.
//
//   WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, text::Tokenizer::Open("bert", image));
//   text::Scratch scratch;                                    // one for each thread
//   std::vector<int32_t> ids;
//   WISP_RETURN_IF_ERROR(tokenizer.Encode("a good film", {.scratch = &scratch}, ids));
//   WISP_ASSIGN_OR_RETURN(const std::string text, tokenizer.Decode(ids, {}));
//
// A tokenizer is immutable and may be used by several threads. It looks into the image and builds nothing. Texts are
// not cut to a length; that is left to the caller.
#ifndef WISP_RUNTIME_TEXT_TOKENIZER_H_
#define WISP_RUNTIME_TEXT_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/text/decode.h"
#include "runtime/text/image.h"
#include "runtime/text/models.h"
#include "runtime/text/split.h"
#include "runtime/text/word_cache.h"

namespace wisp::text {

inline constexpr size_t kMaxTextBytes = size_t{16} << 20;

// Memory that is kept between calls, and a cache of words. Its size is bounded by the longest text and the cache
// (256 KiB). It belongs to one thread at a time, and may go from one tokenizer to another.
class Scratch {
 private:
  friend class Tokenizer;
  uint64_t owner = 0;
  std::string normal, spare;
  Pieces pieces;
  WordWork work;
  WordCache cache;
};

// Of the template around a text, [CLS] ... [SEP]: all of it, what stands before the text alone (of a text that goes
// on), or nothing.
enum class SpecialTokens { kAdd, kBefore, kNone };
struct EncodeOptions {
  SpecialTokens special = SpecialTokens::kAdd;
  Scratch* scratch = nullptr;  // null: made for the call
};

enum class DecodeSpecials { kSkip, kKeep };
struct DecodeOptions {
  DecodeSpecials special = DecodeSpecials::kSkip;
};

// Ids of tokens with a meaning, -1 for one that there is not.
struct SpecialIds {
  int32_t unk, bos, eos, pad, cls, sep, mask;
};

class Tokenizer {
 public:
  // `bytes` start on 8 bytes, outlive the tokenizer and are not changed. All of it is checked once. `name` is for
  // messages. kInvalidData for what is damaged, kUnsupported for what a newer build has written.
  static Result<Tokenizer> Open(std::string_view name, std::span<const std::byte> bytes);

  // Appends the ids of a text. kInvalidData with the offset of the first byte that is not UTF-8; kInvalidArgument for
  // more than kMaxTextBytes. On an error `ids` are as they were.
  Status Encode(std::string_view text, const EncodeOptions& options, std::vector<int32_t>& ids) const;
  // The same with at most `max_length` ids: the end of the text is left out, the template stays whole. Whether anything
  // was left out. kInvalidArgument where the template alone is longer.
  Result<bool> EncodeWithin(std::string_view text, size_t max_length, const EncodeOptions& options,
                            std::vector<int32_t>& ids) const;
  // Of two texts, as the template for pairs has them.
  Status EncodePair(std::string_view first, std::string_view second, const EncodeOptions& options,
                    std::vector<int32_t>& ids) const;

  // The text of ids. kInvalidArgument for an id out of range. Bytes that are not UTF-8 become U+FFFD.
  Result<std::string> Decode(std::span<const int32_t> ids, const DecodeOptions& options) const;

  // Whether decoding leaves the token out.
  bool Skips(int32_t id, const DecodeOptions& options) const;

  size_t size() const { return image_.num_tokens(); }
  // As the vocabulary has it, "##able" or "Ġgood". Empty for an id without a token or out of range.
  std::string_view TokenText(int32_t id) const;
  SpecialIds special_ids() const;
  // Whether the token ends a text: special_ids().eos, which is written behind texts, or another one.
  bool IsEnd(int32_t id) const;
  // The others beside special_ids().eos.
  std::span<const int32_t> other_ends() const { return image_.ends; }

  // For the writer of images: the text as the model's splitter gets it.
  Status NormalizeText(std::string_view text, std::string& normalised) const;

 private:
  friend class StreamDecoder;
  explicit Tokenizer(Image image);

  // The one way from an id to its text.
  Status AddText(int32_t id, const DecodeOptions& options, Decoding& decoding) const;

  Status EncodeOne(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const;
  Status EncodeNormal(std::string_view text, bool at_start, Scratch& scratch, std::vector<int32_t>& ids) const;
  Status EncodeWords(std::string_view text, bool at_start, Scratch& scratch, std::vector<int32_t>& ids) const;
  Status FillTemplate(std::span<const int32_t> items, std::span<const std::string_view> texts,
                      const EncodeOptions& options, std::vector<int32_t>& ids) const;

  Image image_;
  uint64_t serial_;  // tells caches of words apart
};

// Decodes one id after the other, for generation. The pieces together are the text that Decode makes of all ids. Held
// back is what a later id may change: the beginning of a character, and a run of byte tokens ("<0xE2>"), of which its
// last byte may make replacement characters.
//
//   StreamDecoder stream(tokenizer, {});
//   for (...) { WISP_ASSIGN_OR_RETURN(const std::string more, stream.Push(id)); Show(more); }
//   Show(stream.Finish());
class StreamDecoder {
 public:
  // The tokenizer outlives it.
  StreamDecoder(const Tokenizer& tokenizer, const DecodeOptions& options);
  // kInvalidArgument for an id out of range, which changes nothing.
  Result<std::string> Push(int32_t id);
  // What was held back, with U+FFFD for what is no character. The next id begins a text.
  std::string Finish();
  // Drops what is held back; the next id goes on with the text. For a prompt, which is not shown.
  void Forget();

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  Decoding decoding_;
};

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZER_H_
