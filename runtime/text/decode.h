// The decoding steps of an image: texts of tokens into one text. Not the choice of tokens: that is in tokenizer.cc.
//
//   DecodeTokens(image, {"un", "##able"})   // "unable"
#ifndef WISP_RUNTIME_TEXT_DECODE_H_
#define WISP_RUNTIME_TEXT_DECODE_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/image.h"

namespace wisp::text {

// Without a decoder the tokens are joined by spaces, as in the reference.
std::string DecodeTokens(const Image& image, std::vector<std::string> tokens);

// The bytes as text: each longest piece that cannot become a character is one U+FFFD.
std::string Utf8Of(std::string_view bytes);

// The byte that a letter of GPT-2's alphabet for bytes stands for, -1 if it is none; and the other way round.
int ByteOfLetter(uint32_t code);
uint32_t LetterOfByte(uint8_t byte);

// The byte of a token "<0x41>", -1 if it is none.
int ByteOfFallback(std::string_view token);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_DECODE_H_
