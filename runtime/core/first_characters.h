// The beginning of a UTF-8 text, for messages. Never splits a character.
#ifndef WISP_RUNTIME_CORE_FIRST_CHARACTERS_H_
#define WISP_RUNTIME_CORE_FIRST_CHARACTERS_H_

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "runtime/core/text.h"

namespace wisp {

// At most `most` characters. A byte that is not valid UTF-8 counts as one.
[[gnu::cold]] inline std::string_view FirstCharacters(std::string_view text, size_t most) {
  size_t end = 0;
  for (size_t i = 0; i < most && end < text.size(); ++i) end += std::max<size_t>(1, Utf8Length(text.substr(end)));
  return text.substr(0, end);
}

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_FIRST_CHARACTERS_H_
