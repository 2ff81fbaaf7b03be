// Keys and values of the positions that have passed through each block, and with Re-Attention the variances of them:
// what attention reads of the past. Inference has one beside its buffers; training has none, for it keeps all.
//
//   KeyValuePlan plan;                                 // a graph's: each attention reserves in it
//   KeyValueCache cache(plan, KeptBlocks::kAll, {.positions = 200});
//   RecordContext context{.weights = w, .buffers = b, .cache = &cache, .past = 7};
#ifndef WISP_RUNTIME_LAYERS_KEY_VALUE_CACHE_H_
#define WISP_RUNTIME_LAYERS_KEY_VALUE_CACHE_H_

#include <algorithm>
#include <vector>

#include "runtime/core/arena.h"

namespace wisp {

// kAll: every block's, so that positions of the past need not be computed again. kInTurn: of the block that runs.
// kTwoInTurn: of two, for several threads (parts.h): while one still reads those of a block, another writes the next.
enum class KeptBlocks { kAll, kTwoInTurn, kInTurn };

// Which blocks' positions are kept, and how many.
struct KeptPositions {
  KeptBlocks blocks = KeptBlocks::kAll;
  size_t positions = 0;
};

class KeyValuePlan {
 public:
  // Room for so many floats of each position in the next block; returns the block's index here.
  size_t Reserve(size_t floats_of_position) {
    sizes_.push_back(floats_of_position);
    return sizes_.size() - 1;
  }
  size_t allocated_bytes(const KeptPositions& kept) const { return PlanOf(kept).allocated_bytes(); }

 private:
  friend class KeyValueCache;
  ArenaPlan PlanOf(const KeptPositions& kept, std::vector<Slot<float>>* slots = nullptr) const {
    ArenaPlan plan;
    const bool all = kept.blocks == KeptBlocks::kAll;
    const size_t largest = sizes_.empty() ? 0 : kept.positions * *std::max_element(sizes_.begin(), sizes_.end());
    Slot<float> turns[2];
    turns[0] = turns[1] = all ? Slot<float>() : plan.Reserve<float>(largest);
    if (kept.blocks == KeptBlocks::kTwoInTurn) turns[1] = plan.Reserve<float>(largest);
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const Slot<float> slot = all ? plan.Reserve<float>(kept.positions * sizes_[i]) : turns[i % 2];
      if (slots != nullptr) slots->push_back(slot);
    }
    return plan;
  }
  std::vector<size_t> sizes_;
};

class KeyValueCache {
 public:
  KeyValueCache() = default;
  KeyValueCache(const KeyValuePlan& plan, const KeptPositions& kept, const kernels::Memory& memory = {})
      : arena_(plan.PlanOf(kept, &slots_), memory, ArenaUse::kInPart), kept_(kept) {}
  // Valid as long as the cache lives, for any number of threads that take turns.
  float* of_block(size_t index) const { return arena_[slots_[index]]; }
  bool one_at_a_time() const { return kept_.blocks == KeptBlocks::kInTurn; }
  size_t positions() const { return kept_.positions; }  // that there is room for

 private:
  std::vector<Slot<float>> slots_;  // before the arena, which is made of them
  Arena arena_;
  KeptPositions kept_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_KEY_VALUE_CACHE_H_
