// The patterns that split texts for byte-level BPE, each a scanner written for it alone. Not an engine of regular
// expressions: any other pattern is refused when a tokenizer is converted (tools/exchange/tokenizer_steps.cc).
//
//   size_t end = Gpt2End(text, at);   // the piece that begins at `at` ends there
#ifndef WISP_RUNTIME_TEXT_PATTERNS_H_
#define WISP_RUNTIME_TEXT_PATTERNS_H_

#include <cstddef>
#include <string_view>

namespace wisp::text {

inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// `at` is below text.size(); the end is above `at`.
size_t Gpt2End(std::string_view text, size_t at);
// Llama 3 takes up to three digits together, Qwen 2 one.
size_t Llama3End(std::string_view text, size_t at, size_t most_digits);

}  // namespace wisp::text

#endif  // WISP_RUNTIME_TEXT_PATTERNS_H_
