// Built for speed: once for each word of a text.
#include <algorithm>

#include "runtime/text/tokenizers/models.h"
#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {
namespace {

using Node = WordWork::Node;

// Finds the best path to each byte, as the reference's Viterbi does. Of equal scores the first one found stays.
void FindPaths(const Image& image, std::string_view word, std::vector<Node>& nodes) {
  nodes.assign(word.size() + 1, {.score = 0, .id = -1, .begin = -1});
  for (size_t at = 0; at < word.size();) {
    const double here = nodes[at].score;
    const auto offer = [&](size_t end, int32_t id, double score) {
      Node& node = nodes[end];
      const double candidate = score + here;
      if (node.begin < 0 || candidate > node.score) node = {candidate, id, static_cast<int32_t>(at)};
    };
    const size_t next = at + CharacterAt(word, at).size;
    bool single = false;
    image.trie.Prefixes(Trie::kRoot, word, at, [&](int32_t id, size_t end) {
      offer(end, id, image.scores[static_cast<size_t>(id)]);
      single = single || end == next;
    });
    if (!single) offer(next, image.unk, image.unknown_score);
    at = next;
  }
}

// Appends unknown text. Joined neighbours may form a token after all; otherwise it becomes its bytes' tokens, or else
// the unknown token.
void AppendUnknown(const Image& image, std::string_view text, std::vector<int32_t>& ids) {
  if (const int32_t id = image.trie.Find(text); id >= 0) return ids.push_back(id);
  if (image.Is(option::kByteFallback) &&
      std::all_of(text.begin(), text.end(), [&](char c) { return image.byte_ids[static_cast<uint8_t>(c)] >= 0; })) {
    for (const char c : text) ids.push_back(image.byte_ids[static_cast<uint8_t>(c)]);
    return;
  }
  ids.push_back(image.unk);
}

}  // namespace

void AppendUnigram(const Image& image, std::string_view word, WordWork& work, std::vector<int32_t>& ids) {
  auto& nodes = work.nodes;
  FindPaths(image, word, nodes);
  // Collects the path from its end to its front.
  auto& ends = work.queue;
  ends.clear();
  for (size_t end = word.size(); end > 0; end = static_cast<size_t>(nodes[end].begin)) ends.push_back(end);
  size_t unknown_begin = 0;
  bool unknown = false;
  for (size_t i = ends.size(); i-- > 0;) {
    const Node& node = nodes[ends[i]];
    const auto begin = static_cast<size_t>(node.begin);
    if (node.id == image.unk) {
      if (!unknown) unknown_begin = begin;
      unknown = true;
      continue;
    }
    if (unknown) AppendUnknown(image, word.substr(unknown_begin, begin - unknown_begin), ids);
    unknown = false;
    ids.push_back(node.id);
  }
  if (unknown) AppendUnknown(image, word.substr(unknown_begin), ids);
}

}  // namespace wisp::text
