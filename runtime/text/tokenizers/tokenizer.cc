// Built for speed: every text that is encoded goes through here.
#include "runtime/text/tokenizers/tokenizer.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/text/tokenizers/added_tokens.h"
#include "runtime/text/tokenizers/normalize.h"
#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {
namespace {

std::atomic<uint64_t> next_serial{1};

}  // namespace

Tokenizer::Tokenizer(Image image) : image_(std::move(image)), serial_(next_serial.fetch_add(1)) {}

Result<Tokenizer> Tokenizer::Open(std::string_view name, std::span<const std::byte> bytes) {
  WISP_ASSIGN_OR_RETURN(Image image, Image::Open(name, bytes));
  return Tokenizer(std::move(image));
}

std::string_view Tokenizer::TokenText(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= size()) return {};
  return image_.Token(static_cast<size_t>(id));
}

SpecialIds Tokenizer::special_ids() const {
  return {image_.unk, image_.bos, image_.eos, image_.pad, image_.cls, image_.sep, image_.mask};
}

bool Tokenizer::IsEnd(int32_t id) const {
  if (id < 0) return false;
  return id == image_.eos || std::find(image_.ends.begin(), image_.ends.end(), id) != image_.ends.end();
}

Status Tokenizer::NormalizeText(std::string_view text, std::string& normalised) const {
  std::string spare;
  bool cut_front = false;
  return Normalize(image_, text, normalised, spare, cut_front);
}

Status Tokenizer::EncodeWords(std::string_view text, bool at_start, Scratch& scratch, std::vector<int32_t>& ids) const {
  Pieces& pieces = scratch.pieces;
  pieces.text.assign(text);
  WISP_RETURN_IF_ERROR(Split(image_, at_start, pieces));
  for (const Piece& piece : pieces.all) {
    const std::string_view word = std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin);
    if (scratch.cache.Find(word, ids)) continue;
    const size_t before = ids.size();
    AppendWord(image_, word, scratch.work, ids);
    scratch.cache.Put(word, std::span(ids).subspan(before));
  }
  return OkStatus();
}

Status Tokenizer::EncodeNormal(std::string_view text, bool at_start, Scratch& scratch,
                               std::vector<int32_t>& ids) const {
  bool cut_front = false;
  if (!image_.normalizers.empty()) {
    WISP_RETURN_IF_ERROR(Normalize(image_, text, scratch.normal, scratch.spare, cut_front));
    text = scratch.normal;
  }
  const bool first = at_start && !cut_front;
  return ForEachPart(
      image_, image_.added_normal, text,
      [&](size_t begin, size_t end) {
        return EncodeWords(text.substr(begin, end - begin), first && begin == 0, scratch, ids);
      },
      [&](const schema::AddedToken& token) {
        ids.push_back(static_cast<int32_t>(token.id()));
        return OkStatus();
      });
}

Status Tokenizer::EncodeOne(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const {
  return ForEachPart(
      image_, image_.added_raw, text,
      [&](size_t begin, size_t end) { return EncodeNormal(text.substr(begin, end - begin), begin == 0, scratch, ids); },
      [&](const schema::AddedToken& token) {
        ids.push_back(static_cast<int32_t>(token.id()));
        return OkStatus();
      });
}

Status Tokenizer::FillTemplate(std::span<const int32_t> items, std::span<const std::string_view> texts,
                               const EncodeOptions& options, std::vector<int32_t>& ids) const {
  for (const std::string_view text : texts) {
    if (text.size() > kMaxTextBytes)
      return InvalidArgument("a text has ", text.size(), " bytes, allowed are ", kMaxTextBytes);
    WISP_RETURN_IF_ERROR(CheckUtf8("text to encode", text));
  }
  std::optional<Scratch> own;
  Scratch& scratch = options.scratch != nullptr ? *options.scratch : own.emplace();
  if (scratch.owner != serial_) {
    scratch.cache.Clear();
    scratch.owner = serial_;
  }
  const size_t before = ids.size();
  size_t left = texts.size();
  Status status;
  for (const int32_t item : items) {
    if (item < 0) {
      status = EncodeOne(texts[static_cast<size_t>(-1 - item)], scratch, ids);
      if (!status.ok() || (--left == 0 && options.special == SpecialTokens::kBefore)) break;
    } else if (options.special != SpecialTokens::kNone) {
      ids.push_back(item);
    }
  }
  if (!status.ok()) ids.resize(before);
  return status;
}

Status Tokenizer::Encode(std::string_view text, const EncodeOptions& options, std::vector<int32_t>& ids) const {
  static constexpr int32_t kAlone[] = {-1};
  return FillTemplate(image_.single.empty() ? std::span<const int32_t>(kAlone) : image_.single, std::span(&text, 1),
                      options, ids);
}

Result<bool> Tokenizer::EncodeWithin(std::string_view text, size_t max_length, const EncodeOptions& options,
                                     std::vector<int32_t>& ids) const {
  // The number of template tokens after the text, and of all template tokens.
  size_t behind = 0, around = 0;
  for (const int32_t item : image_.single) {
    if (options.special == SpecialTokens::kNone || (options.special == SpecialTokens::kBefore && item < 0)) break;
    behind = item < 0 ? 0 : behind + 1;
    around += item < 0 ? 0 : 1;
  }
  if (options.special == SpecialTokens::kBefore) behind = 0;
  if (around > max_length)
    return InvalidArgument("a text is to have ", max_length, " tokens at most; those around it are ", around, " alone");
  const size_t before = ids.size();
  WISP_RETURN_IF_ERROR(Encode(text, options, ids));
  const size_t length = ids.size() - before;
  if (length <= max_length) return false;
  const auto end = ids.end() - static_cast<std::ptrdiff_t>(behind);
  ids.erase(end - static_cast<std::ptrdiff_t>(length - max_length), end);
  return true;
}

Status Tokenizer::EncodePair(std::string_view first, std::string_view second, const EncodeOptions& options,
                             std::vector<int32_t>& ids) const {
  static constexpr int32_t kBoth[] = {-1, -2};
  const std::string_view texts[] = {first, second};
  return FillTemplate(image_.pair.empty() ? std::span<const int32_t>(kBoth) : image_.pair, texts, options, ids);
}

Status Tokenizer::AddText(int32_t id, const DecodeOptions& options, Decoding& decoding) const {
  if (id < 0 || static_cast<size_t>(id) >= size())
    return InvalidArgument("there is no token ", id, ", allowed is 0 to ", size() - 1);
  if (Skips(id, options)) return OkStatus();
  const schema::AddedToken* added = image_.AddedWith(static_cast<uint32_t>(id));
  const std::string_view token = added != nullptr ? image_.Shown(*added) : image_.Token(static_cast<size_t>(id));
  if (!token.empty()) decoding.Add(token);
  return OkStatus();
}

Result<std::string> Tokenizer::Decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  Decoding decoding(image_);
  for (const int32_t id : ids) WISP_RETURN_IF_ERROR(AddText(id, options, decoding));
  decoding.End();
  return decoding.Take();
}

bool Tokenizer::Skips(int32_t id, const DecodeOptions& options) const {
  if (options.special == DecodeSpecials::kKeep || id < 0) return false;
  const schema::AddedToken* added = image_.AddedWith(static_cast<uint32_t>(id));
  return added != nullptr && (added->options() & added::kSkipped) != 0;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, const DecodeOptions& options)
    : tokenizer_(&tokenizer), options_(options), decoding_(tokenizer.image_) {}

Result<std::string> StreamDecoder::Push(int32_t id) {
  WISP_RETURN_IF_ERROR(tokenizer_->AddText(id, options_, decoding_));
  return decoding_.Take();
}

std::string StreamDecoder::Finish() {
  decoding_.End();
  std::string rest = decoding_.Take();
  decoding_ = Decoding(tokenizer_->image_);
  return rest;
}

void StreamDecoder::Forget() { decoding_.Forget(); }

}  // namespace wisp::text
