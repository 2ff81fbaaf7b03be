// The normalising steps of an image, from text to text. split.h splits the result.
//
//   WISP_RETURN_IF_ERROR(Normalize(image, text, out, spare));   // `out` is the normalised text
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_NORMALIZE_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_NORMALIZE_H_

#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/text/tokenizers/image.h"

namespace wisp::text {

// `text` is UTF-8 and points into neither buffer. `spare` holds the text between steps; keep both buffers between calls
// to save allocations. `cut_front` is set to true if characters at the front were removed; Metaspace needs to know.
// kInvalidArgument: the text grows beyond every plausible size, which only a malicious image causes.
Status Normalize(const Image& image, std::string_view text, std::string& out, std::string& spare, bool& cut_front);

// One step of SentencePiece's precompiled charsmap (charsmap.cc).
void AppendCharsmapped(const Image& image, std::string_view text, std::string& out);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_NORMALIZE_H_
