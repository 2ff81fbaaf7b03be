// Generates texts for several prompts at once. Each step reads the decoder's weights once for all of them.
//
//   WISP_ASSIGN_OR_RETURN(const auto made, GenerateBatch(*session, tokenizer, prompts, {.max_new_tokens = 100}, {},
//                                                        [](size_t prompt, std::string_view more) { ... }));
//
// Prompt i has its own key/value cache and samples with the seed + i. Its text has the bits that Generate gives with
// that seed, whatever else is generated beside it. When a text ends, the next prompt takes its place. Not private.
#ifndef WISP_RUNTIME_TEXT_GENERATE_BATCH_H_
#define WISP_RUNTIME_TEXT_GENERATE_BATCH_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/text/generate.h"
#include "runtime/text/text_batch.h"

namespace wisp {

struct GenerateTogether {
  size_t at_once = 16;     // prompts that are generated together: 1 to TextBatch::kMostPlaces
  size_t num_threads = 1;  // see SessionOptions
  Executor executor = {};
};

// Gets the new part of one prompt's text, in whole characters. Returning false ends this text.
using OnBatchText = std::function<bool(size_t prompt, std::string_view more)>;

// Returns a text for each prompt, in their order. Has the errors of Generate and of TextBatch::Create. An error of a
// prompt names its index. All prompts are checked before the first token.
Result<std::vector<Generated>> GenerateBatch(const Session& session, const text::Tokenizer& tokenizer,
                                             std::span<const std::string> prompts, const GenerateOptions& options,
                                             const GenerateTogether& together = {}, const OnBatchText& on_text = {});

}  // namespace wisp

#endif  // WISP_RUNTIME_TEXT_GENERATE_BATCH_H_
