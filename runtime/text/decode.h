// The decoding steps of an image: texts of tokens into one text, whole or as the tokens come. Not the choice of tokens:
// that is in tokenizer.cc.
//
//   Decoding decoding(image);
//   for (const std::string_view token : {"un", "##able"}) decoding.Add(token);
//   decoding.End();
//   decoding.Take();   // "unable"
#ifndef WISP_RUNTIME_TEXT_DECODE_H_
#define WISP_RUNTIME_TEXT_DECODE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/image.h"

namespace wisp::text {

class DecodeStage;

// There is no other way to decode, so a text that is taken in pieces is that of all tokens at once. What a later token
// may change is held back. Without a decoder the tokens are joined by spaces, as in the reference.
class Decoding {
 public:
  // The bytes of the image outlive it.
  explicit Decoding(const Image& image);
  Decoding(Decoding&&) noexcept;
  Decoding& operator=(Decoding&&) noexcept;
  ~Decoding();

  void Add(std::string_view token);  // not empty
  void End();                        // after the last: nothing is held back now
  void Forget();                     // drops what was not taken, also what is held back
  std::string Take();                // what is sure since the last time, whole characters

 private:
  std::unique_ptr<std::string> text_;
  std::vector<std::unique_ptr<DecodeStage>> stages_;  // the last one first
};

// The bytes as text: each longest piece that cannot become a character is one U+FFFD.
std::string Utf8Of(std::string_view bytes);

// The byte that a letter of GPT-2's alphabet for bytes stands for, -1 if it is none; and the other way round.
int ByteOfLetter(uint32_t code);
uint32_t LetterOfByte(uint8_t byte);

// The byte of a token "<0x41>", -1 if it is none.
int ByteOfFallback(std::string_view token);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_DECODE_H_
