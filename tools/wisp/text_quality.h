// Measures how well a decoder predicts texts: per token and per byte.
#ifndef WISP_TOOLS_WISP_TEXT_QUALITY_H_
#define WISP_TOOLS_WISP_TEXT_QUALITY_H_

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "runtime/text/tokenizers/tokenizer.h"
#include "runtime/train/run/language.h"

namespace wisp::tools {

// Figures on texts that the model did not learn from. They are computed from the texts: local only.
struct TextQuality {
  double loss = 0;           // nats per token
  double bits_per_byte = 0;  // per byte of the predicted text
  uint64_t num_texts = 0, num_tokens = 0, num_bytes = 0;
};

// Measures a graph for inference, on records of its tokenizer.
Result<TextQuality> MeasureQuality(const ModelView& graph, const ParameterSource& weights,
                                   const text::Tokenizer& tokenizer, std::span<const Record> records, Workers& workers);

// Writes "loss", "perplexity", "perplexity_per_byte", "bits_per_byte", "texts", "tokens" and "bytes".
nlohmann::ordered_json ToJson(const TextQuality& quality);
std::string InWords(const TextQuality& quality);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_TEXT_QUALITY_H_
