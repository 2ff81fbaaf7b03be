// Built for speed: once for each word of a text.
#include "runtime/text/tokenizers/models.h"

namespace wisp::text {
namespace {

size_t CountCharacters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return count;
}

}  // namespace

// Takes the longest token at the front, then the longest continuing token, and so on. If no token fits somewhere, the
// whole word becomes one unknown token.
void AppendWordPiece(const Image& image, std::string_view word, std::vector<int32_t>& ids) {
  const size_t before = ids.size();
  bool known = word.size() <= image.max_word_characters || CountCharacters(word) <= image.max_word_characters;
  uint32_t node = Trie::kRoot;
  for (size_t at = 0; known && at < word.size(); node = image.continuing_node) {
    int32_t longest = -1;
    if (node != Trie::kNone) {
      image.trie.Prefixes(node, word, at, [&](int32_t id, size_t end) {
        longest = id;
        at = end;
      });
    }
    known = longest >= 0;
    ids.push_back(longest);
  }
  if (known) return;
  ids.resize(before);
  ids.push_back(image.unk);
}

}  // namespace wisp::text
