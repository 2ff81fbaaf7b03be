// The decoding steps of an image: turns tokens' texts into one text, at once or as the tokens come. tokenizer.cc
// chooses the tokens.
//
//   Decoding decoding(image);
//   for (const std::string_view token : {"un", "##able"}) decoding.Add(token);
//   decoding.End();
//   decoding.Take();   // "unable"
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_DECODE_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_DECODE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizers/image.h"

namespace wisp::text {

class DecodeStage;

// All decoding uses this class, so a text that is taken in pieces equals the text of all tokens at once. It holds back
// what a later token may change. Without a decoder the tokens are joined by spaces, as in the reference.
class Decoding {
 public:
  // The image's bytes must outlive this object.
  explicit Decoding(const Image& image);
  Decoding(Decoding&&) noexcept;
  Decoding& operator=(Decoding&&) noexcept;
  ~Decoding();

  void Add(std::string_view token);  // `token` must not be empty
  void End();                        // call it after the last token: releases what is held back
  void Forget();                     // drops what was not taken, including what is held back
  std::string Take();                // the text that has become final since the last call; whole characters

 private:
  std::unique_ptr<std::string> text_;
  std::vector<std::unique_ptr<DecodeStage>> stages_;  // the last stage first
};

// Converts bytes to text. Each longest piece that cannot become a character gives one U+FFFD.
std::string ToUtf8(std::string_view bytes);

// The byte for a letter of GPT-2's byte alphabet, or -1 if it is no such letter; and the inverse.
int LetterToByte(uint32_t code);
uint32_t ByteToLetter(uint8_t byte);

// The byte of a token such as "<0x41>", or -1 for any other token.
int ParseFallbackByte(std::string_view token);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_DECODE_H_
