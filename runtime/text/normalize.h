// The normalising steps of an image, one text to another. Not the splitting: that is in split.h.
//
//   WISP_RETURN_IF_ERROR(Normalize(image, text, out, spare));   // `out` is the normalised text
#ifndef WISP_RUNTIME_TEXT_NORMALIZE_H_
#define WISP_RUNTIME_TEXT_NORMALIZE_H_

#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/text/image.h"

namespace wisp::text {

// `text` is UTF-8 and lies in neither buffer. `spare` is for the steps in between; both are kept between calls so that
// nothing is allocated. kInvalidArgument if the text grows beyond all measure, which only a malicious image asks for.
// `cut_front`: whether characters at the front were left out, which the reference's Metaspace asks about.
Status Normalize(const Image& image, std::string_view text, std::string& out, std::string& spare, bool& cut_front);

// One step of SentencePiece's precompiled charsmap (charsmap.cc).
void AppendCharsmapped(const Image& image, std::string_view text, std::string& out);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_NORMALIZE_H_
