// A tokenizer without a vocabulary file: token i is the byte i, and token 256, <|endoftext|>, ends a text.
#ifndef WISP_TOOLS_CONVERT_BYTE_TOKENIZER_H_
#define WISP_TOOLS_CONVERT_BYTE_TOKENIZER_H_

#include <cstddef>
#include <vector>

#include "runtime/core/status.h"

namespace wisp::convert {

// Returns its image, in the form of TokenizerImage.
Result<std::vector<std::byte>> ByteTokenizerImage();

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_BYTE_TOKENIZER_H_
