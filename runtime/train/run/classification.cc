#include "runtime/layers/packed_weights.h"
#include "runtime/train/run/classification.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace wisp {

std::vector<Record> ViewRecords(const data::LabelledSequences& sequences) {
  std::vector<Record> records;
  for (size_t i = 0; i < sequences.size(); ++i) records.push_back({sequences.Record(i), {&sequences.labels[i], 1}});
  return records;
}

uint32_t Predict(const Classifier& graph, RecordContext& context, std::span<const int32_t> tokens) {
  const float* z = graph.Logits(context, tokens);
  return static_cast<uint32_t>(std::max_element(z, z + graph.architecture().head.num_classes) - z);
}

double Accuracy(const Classifier& graph, const float* flat, std::span<const Record> records, const HeadInput& input,
                Workers& workers) {
  if (records.empty()) return 0;
  const PackedWeights weights(graph, flat);
  std::vector<size_t> right(workers.size(), 0);
  workers.Run([&](size_t w) {
    const Buffers buffers = graph.AllocateForInference();
    const KeyValueCache cache = graph.AllocateCache(CacheBlocks::kInTurn);
    RecordContext context{.weights = weights.view(), .buffers = buffers, .cache = &cache, .head_input = input};
    for (size_t i = w; i < records.size(); i += workers.size()) {
      right[w] += Predict(graph, context, records[i].inputs) == static_cast<uint32_t>(records[i].targets[0]) ? 1 : 0;
    }
  });
  return static_cast<double>(std::accumulate(right.begin(), right.end(), size_t{0})) /
         static_cast<double>(records.size());
}

}  // namespace wisp
