// The patterns that split texts for byte-level BPE, each as a hand-written scanner. There is no regular expression
// engine: converting a tokenizer with any other pattern is refused (tools/convert/tokenizer_steps.cc).
//
//   size_t end = Gpt2End(text, at);   // the piece that begins at `at` ends there
#ifndef WISP_RUNTIME_TEXT_TOKENIZERS_PATTERNS_H_
#define WISP_RUNTIME_TEXT_TOKENIZERS_PATTERNS_H_

#include <cstddef>
#include <string_view>

namespace wisp::text {

#define WISP_CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
inline constexpr std::string_view kGpt2Pattern =
    WISP_CONTRACTIONS R"(| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
#define WISP_BEFORE_NUMBERS "(?i:" WISP_CONTRACTIONS R"()|[^\r\n\p{L}\p{N}]?\p{L}+|)"
#define WISP_BEHIND_NUMBERS R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
inline constexpr std::string_view kLlama3Pattern = WISP_BEFORE_NUMBERS R"(\p{N}{1,3})" WISP_BEHIND_NUMBERS;
inline constexpr std::string_view kQwen2Pattern = WISP_BEFORE_NUMBERS R"(\p{N})" WISP_BEHIND_NUMBERS;
#undef WISP_CONTRACTIONS
#undef WISP_BEFORE_NUMBERS
#undef WISP_BEHIND_NUMBERS

// `at` must be below text.size(). The returned end is above `at`.
size_t Gpt2End(std::string_view text, size_t at);
// Llama 3 groups up to three digits, Qwen 2 one.
size_t Llama3End(std::string_view text, size_t at, size_t most_digits);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_TOKENIZERS_PATTERNS_H_
