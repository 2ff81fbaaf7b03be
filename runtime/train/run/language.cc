#include "runtime/train/run/language.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace wisp {
namespace {

constexpr size_t kRowsAtOnce = 64;  // rows of logits: 64 KB a tile

// The buffers of one worker.
struct Room {
  explicit Room(const ModelView& graph)
      : buffers(graph.AllocateForInference()), cache(graph.AllocateCache(CacheBlocks::kInTurn)) {}

  Buffers buffers;
  KeyValueCache cache;
  std::vector<float> logits = std::vector<float>(kRowsAtOnce * kHeadTile);
  std::vector<float> max = std::vector<float>(kRowsAtOnce), sum = max, target_logit = max;
};

// The sum over some rows, whose hidden states are h [targets, D].
double ComputeRowNats(const ModelView& graph, const Weights& weights, Room& room, const float* h,
                      std::span<const int32_t> targets) {
  const size_t num_items = graph.architecture().num_items, rows = targets.size();
  std::fill(room.max.begin(), room.max.end(), -std::numeric_limits<float>::infinity());
  std::fill(room.sum.begin(), room.sum.end(), 0.0f);
  for (size_t tile = 0; tile * kHeadTile < num_items; ++tile) {
    const size_t n = std::min(kHeadTile, num_items - tile * kHeadTile);
    graph.ScoreTile(weights, h, rows, tile, room.logits.data());
    graph.ops().softmax_stats({.z_RN = room.logits.data(),
                               .ldz = n,
                               .target_R = targets.data(),
                               .max_R = room.max.data(),
                               .sum_R = room.sum.data(),
                               .target_logit_R = room.target_logit.data(),
                               .rows = rows,
                               .n = n,
                               .first = static_cast<int32_t>(tile * kHeadTile)});
  }
  double nats = 0;
  for (size_t r = 0; r < rows; ++r)
    nats += double{room.max[r]} + std::log(double{room.sum[r]}) - double{room.target_logit[r]};
  return nats;
}

double ComputeNats(const ModelView& graph, const Weights& weights, Room& room, const Record& record) {
  RecordContext context{.weights = weights, .buffers = room.buffers, .cache = &room.cache};
  const float* h = graph.RepresentEach(context, record.inputs);
  double nats = 0;
  for (size_t row = 0; row < record.targets.size(); row += kRowsAtOnce) {
    const size_t rows = std::min(kRowsAtOnce, record.targets.size() - row);
    nats +=
        ComputeRowNats(graph, weights, room, h + row * graph.architecture().width, record.targets.subspan(row, rows));
  }
  return nats;
}

}  // namespace

std::vector<Record> ViewRecords(const data::TextSequences& texts) {
  std::vector<Record> records;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::span<const int32_t> tokens = texts.Record(i);
    records.push_back({tokens.first(tokens.size() - 1), tokens.last(tokens.size() - 1)});
  }
  return records;
}

LanguageQuality EvaluateLanguage(const ModelView& graph, const ParameterSource& source, std::span<const Record> records,
                                 Workers& workers) {
  const PackedWeights weights(graph, source);
  std::vector<double> nats(records.size());
  workers.Run([&](size_t worker) {
    Room room(graph);
    for (size_t i = worker; i < records.size(); i += workers.size())
      nats[i] = ComputeNats(graph, weights.view(), room, records[i]);
  });
  LanguageQuality quality{.nats = std::accumulate(nats.begin(), nats.end(), 0.0)};
  for (const Record& record : records) quality.num_tokens += record.targets.size();
  return quality;
}

}  // namespace wisp
