// Texts as records of a decoder, and how well the decoder predicts them.
//
//   const std::vector<Record> records = ViewRecords(texts);                       // of data::EncodeTexts
//   const LanguageQuality q = EvaluateLanguage(graph, weights, records, workers);
//   std::exp(q.Loss())                                                          // perplexity per token
#ifndef WISP_RUNTIME_TRAIN_RUN_LANGUAGE_H_
#define WISP_RUNTIME_TRAIN_RUN_LANGUAGE_H_

#include <span>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/data/texts.h"
#include "runtime/layers/model_view.h"
#include "runtime/layers/packed_weights.h"

namespace wisp {

// One record per text: its inputs are all tokens but the last, its targets all but the first. `texts` must outlive
// them.
std::vector<Record> ViewRecords(const data::TextSequences& texts);

struct LanguageQuality {
  double nats = 0;  // sum of -ln(probability) over all predicted tokens
  uint64_t num_tokens = 0;
  double Loss() const { return num_tokens == 0 ? 0 : nats / static_cast<double>(num_tokens); }
};

// The graph must be one for inference, and every record must have 1 to max_length inputs. The result has the same bits
// for any number of workers. Local only if the records are private.
LanguageQuality EvaluateLanguage(const ModelView& graph, const ParameterSource& source, std::span<const Record> records,
                                 Workers& workers);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_LANGUAGE_H_
