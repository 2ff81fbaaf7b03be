// Columns of text: padded by what a terminal shows, not by bytes.
//
//   PrintText("%s %8.3f\n", Padded(name, 32).c_str(), score);
#ifndef WISP_TOOLS_WISP_PADDED_H_
#define WISP_TOOLS_WISP_PADDED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace wisp::tools {

// How many cells of a terminal the text takes: one for a character, none for an accent that is a character of its own,
// two for one of East Asia's wide ones or a picture. A byte that is no UTF-8 takes one.
size_t CellsOf(std::string_view text);

// With blanks behind it up to so many cells; longer texts as they are.
std::string Padded(std::string text, size_t cells);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_PADDED_H_
