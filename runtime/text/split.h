// The splitting steps of an image: a normalised text into the words that the model sees one by one.
//
//   pieces.text = normalised;
//   WISP_RETURN_IF_ERROR(Split(image, true, pieces));
//   for (const Piece& p : pieces.all) Use(pieces.text.substr(p.begin, p.end - p.begin));
#ifndef WISP_RUNTIME_TEXT_SPLIT_H_
#define WISP_RUNTIME_TEXT_SPLIT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/text/image.h"

namespace wisp::text {

struct Piece {
  uint32_t begin, end;  // bytes of Pieces::text; never empty
};

struct Pieces {
  std::string text;
  std::vector<Piece> all;
  // What a step writes to, before the two are exchanged.
  std::string next_text;
  std::vector<Piece> next;
};

// Splits pieces.text, which is UTF-8, into pieces.all. `at_start`: whether it is the very front of what is encoded.
// kInvalidArgument if the text grows beyond all measure, which only a malicious image asks for.
Status Split(const Image& image, bool at_start, Pieces& pieces);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_SPLIT_H_
