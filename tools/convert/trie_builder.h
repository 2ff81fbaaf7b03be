// Builds the double-array tries of an image. runtime/text/tokenizers/trie.h reads them and has the layout.
//
//   const std::vector<schema::TrieUnit> units = BuildTrie({{"##a", 3}, {"a", 1}});
#ifndef WISP_TOOLS_CONVERT_TRIE_BUILDER_H_
#define WISP_TOOLS_CONVERT_TRIE_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schema/generated/tokenizer_generated.h"

namespace wisp::convert {

// Keys must not be empty; of equal keys the last one counts. Values must not be negative. Without keys there are no
// units.
std::vector<schema::TrieUnit> BuildTrie(std::vector<std::pair<std::string, int32_t>> keys);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_TRIE_BUILDER_H_
