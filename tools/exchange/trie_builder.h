// Makes the double-array tries of an image. Reading them: runtime/text/trie.h, which has the layout.
//
//   const std::vector<schema::TrieUnit> units = BuildTrie({{"##a", 3}, {"a", 1}});
#ifndef WISP_TOOLS_EXCHANGE_TRIE_BUILDER_H_
#define WISP_TOOLS_EXCHANGE_TRIE_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schema/generated/tokenizer_generated.h"

namespace wisp::exchange {

// Keys are not empty; of equal ones the last stays. Values are not negative. No keys: no units.
std::vector<schema::TrieUnit> BuildTrie(std::vector<std::pair<std::string, int32_t>> keys);

}  // namespace wisp::exchange

#endif  // WISP_TOOLS_EXCHANGE_TRIE_BUILDER_H_
