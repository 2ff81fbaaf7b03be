// Texts as records of a decoder, and how well it foretells them.
//
//   const std::vector<Record> records = RecordsOf(texts);                       // of data::EncodeTexts
//   const LanguageQuality q = EvaluateLanguage(graph, weights, records, workers);
//   std::exp(q.Loss())                                                          // perplexity per token
#ifndef WISP_RUNTIME_TRAIN_RUN_LANGUAGE_H_
#define WISP_RUNTIME_TRAIN_RUN_LANGUAGE_H_

#include <span>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/data/texts.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/layers/recommender.h"

namespace wisp {

// Of each text a record: its tokens but the last, and as targets its tokens but the first. `texts` must outlive them.
std::vector<Record> RecordsOf(const data::TextSequences& texts);

struct LanguageQuality {
  double nats = 0;  // the sum over all tokens that were asked for of -ln(probability)
  uint64_t num_tokens = 0;
  double Loss() const { return num_tokens == 0 ? 0 : nats / static_cast<double>(num_tokens); }
};

// Of a graph for inference; every record of 1 to max_length inputs. The same bits for any number of workers. Local only
// where the records are private.
LanguageQuality EvaluateLanguage(const Recommender& graph, const ParameterSource& source,
                                 std::span<const Record> records, Workers& workers);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_LANGUAGE_H_
