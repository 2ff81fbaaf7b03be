// Turns one word into ids: WordPiece, byte pair encoding, Unigram. split.h makes the words.
//
//   WordWork work;
//   AppendWord(image, "unaffable", work, ids);   // ids += those of "un", "##aff", "##able"
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_MODELS_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_MODELS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizers/image.h"

namespace wisp::text {

// Working memory of the models, kept between words.
struct WordWork {
  struct Symbol {
    int32_t id;
    uint32_t rank, result;  // merge with the next symbol; rank UINT32_MAX: no merge
    int32_t previous, next;
  };
  struct Node {
    double score;
    int32_t id, begin;  // the best path that ends here; begin -1: no path
  };
  std::vector<Symbol> symbols;
  std::vector<uint64_t> queue;
  std::vector<Node> nodes;
};

// `word` is UTF-8 and not empty.
void AppendWordPiece(const Image& image, std::string_view word, std::vector<int32_t>& ids);
void AppendBpe(const Image& image, std::string_view word, WordWork& work, std::vector<int32_t>& ids);
void AppendUnigram(const Image& image, std::string_view word, WordWork& work, std::vector<int32_t>& ids);

inline void AppendWord(const Image& image, std::string_view word, WordWork& work, std::vector<int32_t>& ids) {
  switch (image.model) {
    case schema::TokenModel::WordPiece:
      return AppendWordPiece(image, word, ids);
    case schema::TokenModel::Bpe:
      return AppendBpe(image, word, work, ids);
    default:
      return AppendUnigram(image, word, work, ids);
  }
}

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_MODELS_H_
