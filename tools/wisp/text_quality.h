// How well a decoder foretells texts: per token and per byte.
#ifndef WISP_TOOLS_WISP_TEXT_QUALITY_H_
#define WISP_TOOLS_WISP_TEXT_QUALITY_H_

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "runtime/text/tokenizer.h"
#include "runtime/train/run/language.h"

namespace wisp::tools {

// Of texts that the model did not learn from. Computed from them: local only.
struct TextQuality {
  double loss = 0;           // nats a token
  double bits_per_byte = 0;  // of the bytes that were asked for
  uint64_t num_texts = 0, num_tokens = 0, num_bytes = 0;
};

// Of a graph for inference, with records of its tokenizer.
Result<TextQuality> QualityOf(const Recommender& graph, const ParameterSource& weights,
                              const text::Tokenizer& tokenizer, std::span<const Record> records, Workers& workers);

// "loss", "perplexity", "perplexity_per_byte", "bits_per_byte", "texts", "tokens", "bytes".
nlohmann::ordered_json ToJson(const TextQuality& quality);
std::string InWords(const TextQuality& quality);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_TEXT_QUALITY_H_
