// Finds the end of a grapheme as the reference does (UAX #29, extended). Only the charsmap uses it.
//
//   const size_t end = GraphemeEnd(text, at);
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_GRAPHEMES_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_GRAPHEMES_H_

#include <cstddef>
#include <string_view>

namespace wisp::text {

// `at` is below text.size() and begins a grapheme.
size_t GraphemeEnd(std::string_view text, size_t at);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_GRAPHEMES_H_
