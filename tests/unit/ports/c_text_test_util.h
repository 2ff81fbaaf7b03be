// Models of texts for tests of the C interface: a small encoder, and tokenizers of the golden files.
#ifndef WISP_TESTS_UNIT_PORTS_C_TEXT_TEST_UTIL_H_
#define WISP_TESTS_UNIT_PORTS_C_TEXT_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "tests/unit/from_sources.h"
#include "tools/convert/tokenizer_json.h"

namespace wisp::test {

inline std::vector<std::byte> GoldenTokenizer(const std::string& name) {
  std::ifstream file(FromSources("tests/golden/tokenizers/" + name + ".json"), std::ios::binary);
  const std::string json(std::istreambuf_iterator<char>(file), {});
  const auto image = convert::TokenizerImage({.name = name, .tokenizer_json = json});
  EXPECT_TRUE(image.ok()) << image.status().message();
  return image.ok() ? *image : std::vector<std::byte>();
}

// Returns an architecture like BERT's with this many classes; 0: an encoder of vectors.
inline Architecture TextEncoder(uint32_t classes = 0) {
  Architecture a = UniformArchitecture{.num_items = 300,
                                       .max_length = 12,
                                       .width = 16,
                                       .num_heads = 2,
                                       .num_blocks = 2,
                                       .inner_width = 24,
                                       .norm = NormPlacement::kPost,
                                       .attend = Attend::kAll};
  a.token_types = {.count = 2, .separator = 3};
  a.embedding_norm_epsilon = 1e-5f;
  a.head = {.kind = classes > 0 ? HeadKind::kClasses : HeadKind::kEmbedding,
            .num_classes = classes,
            .pooling = Pooling::kMean,
            .pooler = Pooler::kNone,
            .unit_length = classes == 0};
  return a;
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_PORTS_C_TEXT_TEST_UTIL_H_
