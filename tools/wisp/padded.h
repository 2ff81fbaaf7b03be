// Pads columns of text by what a terminal shows, not by bytes.
//
//   PrintText("%s %8.3f
// ", Padded(name, 32).c_str(), score);
#ifndef WISP_TOOLS_WISP_PADDED_H_
#define WISP_TOOLS_WISP_PADDED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace wisp::tools {

// Returns the cells of a terminal that the text takes: one for a character, none for a combining accent, two for a wide
// East Asian character or a picture. A byte that is not UTF-8 takes one.
size_t CountCells(std::string_view text);

// Appends blanks up to `cells` cells; longer texts stay unchanged.
std::string Padded(std::string text, size_t cells);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_PADDED_H_
