// Texts of several prompts at once: each step of a decoder reads its weights once for all of them.
//
//   WISP_ASSIGN_OR_RETURN(const auto made, GenerateBatch(*session, tokenizer, prompts, {.max_new_tokens = 100}, {},
//                                                        [](size_t prompt, std::string_view more) { ... }));
//
// Prompt i has keys and values of its own and draws with the seed + i: its text is, bit for bit, what Generate makes of
// it alone with that seed, whatever else is generated beside it. A text that ends makes room for the next prompt. What
// it is not: private.
#ifndef WISP_RUNTIME_INFERENCE_GENERATE_BATCH_H_
#define WISP_RUNTIME_INFERENCE_GENERATE_BATCH_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/inference/generate.h"
#include "runtime/inference/text_batch.h"

namespace wisp {

struct GenerateTogether {
  size_t at_once = 16;     // prompts that grow beside each other: 1 to TextBatch::kMostPlaces
  size_t num_threads = 1;  // as of SessionOptions
  Executor executor = {};
};

// What is new of the text of that prompt, whole characters: false ends this text.
using OnBatchText = std::function<bool(size_t prompt, std::string_view more)>;

// A text for each prompt, in their order. Errors of Generate, of TextBatch::Create, and those of a prompt name its
// index; all prompts are looked at before the first token.
Result<std::vector<Generated>> GenerateBatch(const Session& session, const text::Tokenizer& tokenizer,
                                             std::span<const std::string> prompts, const GenerateOptions& options,
                                             const GenerateTogether& together = {}, const OnBatchText& on_text = {});

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_GENERATE_BATCH_H_
