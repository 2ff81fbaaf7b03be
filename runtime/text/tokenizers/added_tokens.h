// Finds added tokens in a text as the reference (the package `tokenizers`) does. The leftmost match wins, then the
// longest, without overlap. A token may ask for more: to match whole words only, or to take the white space before or
// after it.
//
//   ForEachPart(image, image.added_raw, text, [](size_t begin, size_t end) { ... },
//               [](const schema::AddedToken& token) { ... });
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_ADDED_TOKENS_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_ADDED_TOKENS_H_

#include <algorithm>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/text/tokenizers/image.h"
#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {

struct AddedMatch {
  const schema::AddedToken* token;  // null: no match
  size_t begin, end;
};

// The first match that begins at `at` or later.
inline AddedMatch NextMatch(const Image& image, const Trie& trie, std::string_view text, size_t at) {
  for (; at < text.size(); ++at) {
    AddedMatch match{nullptr, at, at};
    trie.Prefixes(Trie::kRoot, text, at, [&](int32_t index, size_t end) {
      match.token = &image.added[static_cast<size_t>(index)];
      match.end = end;
    });
    if (match.token != nullptr) return match;
  }
  return {nullptr, at, at};
}

inline bool StandsAlone(std::string_view text, const AddedMatch& match) {
  const auto is_word = [&](size_t at) { return Has(CharacterAt(text, at).code, unicode::kWord); };
  return (match.begin == 0 || !is_word(Before(text, match.begin))) && (match.end == text.size() || !is_word(match.end));
}

// Calls part(begin, end) for text between added tokens and added(token) for each added token, in order. Both return a
// Status. Parts are not empty.
template <typename OnPart, typename OnAdded>
Status ForEachPart(const Image& image, const Trie& trie, std::string_view text, const OnPart& part,
                   const OnAdded& added) {
  size_t done = 0;
  for (size_t at = 0; !trie.empty() && at < text.size();) {
    const AddedMatch match = NextMatch(image, trie, text, at);
    if (match.token == nullptr) break;
    at = match.end;
    const uint32_t options = match.token->options();
    size_t begin = match.begin, end = match.end;
    if ((options & added::kSingleWord) != 0 && !StandsAlone(text, match)) continue;
    while ((options & added::kLeftStrip) != 0 && begin > done) {
      const size_t before = Before(text, begin);
      if (!Has(CharacterAt(text, before).code, unicode::kWhite)) break;
      begin = before;
    }
    // White space that the previous token took is not taken again.
    if ((options & added::kLeftStrip) != 0) begin = std::max(begin, done);
    while ((options & added::kRightStrip) != 0 && end < text.size()) {
      const Character c = CharacterAt(text, end);
      if (!Has(c.code, unicode::kWhite)) break;
      end += c.size;
    }
    if (done < begin) WISP_RETURN_IF_ERROR(part(done, begin));
    WISP_RETURN_IF_ERROR(added(*match.token));
    done = end;
  }
  return done < text.size() ? part(done, text.size()) : OkStatus();
}

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_ADDED_TOKENS_H_
