// Tokenizers: images and tokenizer.json files, then a text. An opened tokenizer gives ids of its vocabulary, and
// decoding gives a text.
#include <vector>

#include "runtime/text/tokenizers/tokenizer.h"
#include "runtime/text/tokenizers/unicode.h"
#include "tests/fuzz/input.h"
#include "tools/convert/tokenizer_json.h"

namespace {

using namespace wisp;

void Use(const text::Tokenizer& tokenizer, std::string_view text) {
  text::Scratch scratch;
  std::vector<int32_t> ids;
  const Status status = tokenizer.Encode(text, {.scratch = &scratch}, ids);
  if (!status.ok()) {
    fuzz::RequireSentence(status.message());
    fuzz::Require(ids.empty(), "an error adds no ids");
    return;
  }
  std::vector<int32_t> again;
  fuzz::Require(tokenizer.Encode(text, {.scratch = &scratch}, again).ok() && again == ids,
                "words from the cache have the same ids");
  (void)tokenizer.EncodePair(text, text.substr(0, text.find(' ')), {.scratch = &scratch}, again);
  for (const int32_t id : ids)
    fuzz::Require(id >= 0 && static_cast<size_t>(id) < tokenizer.size(), "an id is one of the vocabulary");
  const auto whole = tokenizer.Decode(ids, {.special = text::DecodeSpecials::kKeep});
  fuzz::Require(whole.ok() && text::IsUtf8(*whole), "ids decode to a text");
  text::StreamDecoder stream(tokenizer, {.special = text::DecodeSpecials::kKeep});
  std::string pieces;
  for (const int32_t id : ids) {
    const auto more = stream.Push(id);
    fuzz::Require(more.ok() && text::IsUtf8(*more), "a stream shows a text");
    pieces += *more;
  }
  fuzz::Require(pieces + stream.Finish() == *whole, "a stream is the whole");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const bool json = input.Byte() % 2 == 1;
  const std::string_view first = input.Piece(input.Number<uint16_t>());
  const std::string_view rest = input.Rest();
  // Exactly these bytes, so that a read past them is noticed.
  const std::vector<char> text(rest.begin(), rest.end());
  const auto bytes = std::as_bytes(std::span(first.data(), first.size()));
  std::vector<std::byte> image(bytes.begin(), bytes.end());
  if (json) {
    auto made = convert::TokenizerImage({.name = "memory", .tokenizer_json = first});
    if (!made.ok()) {
      fuzz::RequireSentence(made.status().message());
      return 0;
    }
    image = *std::move(made);
  }
  const auto tokenizer = text::Tokenizer::Open("memory", image);
  fuzz::Require(tokenizer.ok() || !json, "an image that was made opens");
  if (!tokenizer.ok()) {
    fuzz::RequireSentence(tokenizer.status().message());
  } else {
    Use(*tokenizer, {text.data(), text.size()});
  }
  return 0;
}
