// Ranking quality with full ranking: every item that is not in the user's history competes (docs/algorithms.md, section
// 8).
#ifndef WISP_RUNTIME_TRAIN_RUN_EVALUATE_H_
#define WISP_RUNTIME_TRAIN_RUN_EVALUATE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/layers/recommender.h"

namespace wisp {

// One question: after `history` (all of it is excluded from the ranking; the last max_length items are read),
// which rank has `target`?
struct RankingCase {
  std::span<const int32_t> history;  // at least one item, oldest first
  int32_t target;
};

struct RankingQuality {
  double hit_at_10 = 0, ndcg_at_10 = 0;
  uint64_t num_users = 0;
};

// Rank from 0 of `target` among the items with excluded[item] == 0. Ties count against the model.
size_t RankOf(std::span<const float> scores, std::span<const uint8_t> excluded, int32_t target);

// For each of `num_items` items 1 if it is retired, else 0: what RankOf begins with.
std::vector<uint8_t> RetiredMarks(size_t num_items, std::span<const int32_t> retired);

// 1 / log2(rank + 2) if rank < k, else 0.
double Ndcg(size_t rank, size_t k);

// `weights` in the flat layout of the graph's architecture, or as a file has them. `retired` items (ModelFile::retired)
// do not compete; where one is the target it is ranked all the same.
RankingQuality EvaluateRanking(const Recommender& graph, const ParameterSource& weights,
                               std::span<const RankingCase> cases, Workers& workers,
                               std::span<const int32_t> retired = {});

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_EVALUATE_H_
