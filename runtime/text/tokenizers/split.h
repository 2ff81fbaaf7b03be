// The splitting steps of an image: cut a normalised text into words, which the model encodes one by one.
//
//   pieces.text = normalised;
//   WISP_RETURN_IF_ERROR(Split(image, true, pieces));
//   for (const Piece& p : pieces.all) Use(pieces.text.substr(p.begin, p.end - p.begin));
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_SPLIT_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_SPLIT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/text/tokenizers/image.h"

namespace wisp::text {

struct Piece {
  uint32_t begin, end;  // byte range in Pieces::text; never empty
};

struct Pieces {
  std::string text;
  std::vector<Piece> all;
  // A step writes here; then the two texts are swapped.
  std::string next_text;
  std::vector<Piece> next;
};

// Splits pieces.text, which is UTF-8, into pieces.all. `at_start`: the text begins what is being encoded.
// kInvalidArgument: the text grows beyond every plausible size, which only a malicious image causes.
Status Split(const Image& image, bool at_start, Pieces& pieces);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_SPLIT_H_
