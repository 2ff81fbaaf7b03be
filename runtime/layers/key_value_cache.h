// The keys and values of positions that have passed through each block and, with Re-Attention, their variances.
// Attention reads the past from here. Inference has a cache beside its buffers. Training has none, since it keeps all
// positions.
//
//   KeyValuePlan plan;                                 // a graph's: each attention reserves in it
//   KeyValueCache cache(plan, {.positions = 200});
//   RecordContext context{.weights = w, .buffers = b, .cache = &cache, .past = 7};
#ifndef WISP_RUNTIME_LAYERS_KEY_VALUE_CACHE_H_
#define WISP_RUNTIME_LAYERS_KEY_VALUE_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/core/arena.h"

namespace wisp {

// kAll: the cache holds every block, so that past positions need not be computed again. kInTurn: it holds only the
// block that is running. kTwoInTurn: it holds two blocks, for several threads (parts.h): one thread may still read a
// block while another writes the next.
enum class CacheBlocks { kAll, kTwoInTurn, kInTurn };

// The blocks, the number of positions and the element type that a cache holds.
struct CachedPositions {
  CacheBlocks blocks = CacheBlocks::kAll;
  size_t positions = 0;
  kernels::CacheType type = kernels::CacheType::kFloat;
};

// The numbers that a block keeps for each position.
struct CachedNumbers {
  size_t keys_and_values = 0;  // in elements of the cache's type
  size_t variances = 0;        // floats
};

class KeyValuePlan {
 public:
  // Keys are kept in panels of `panel` positions (OpTable::cached_panel). 0 or 1: keys are kept by rows.
  void set_panel(size_t panel) { panel_ = std::max<size_t>(1, panel); }
  // Reserves space for these numbers of each position in the next block. Returns the block's index in the cache.
  size_t Reserve(const CachedNumbers& of_position) {
    blocks_.push_back(of_position);
    return blocks_.size() - 1;
  }
  size_t allocated_bytes(const CachedPositions& kept) const { return GetPlan(kept).allocated_bytes(); }

 private:
  friend class KeyValueCache;
  size_t RoomFor(size_t positions) const { return (positions + panel_ - 1) / panel_ * panel_; }
  size_t GetBytes(const CachedNumbers& numbers, const CachedPositions& kept) const {
    return RoomFor(kept.positions) *
           (numbers.keys_and_values * kernels::CacheElementBytes(kept.type) + numbers.variances * sizeof(float));
  }
  ArenaPlan GetPlan(const CachedPositions& kept, std::vector<Slot<std::byte>>* slots = nullptr) const {
    ArenaPlan plan;
    const bool all = kept.blocks == CacheBlocks::kAll;
    size_t largest = 0;
    for (const CachedNumbers& numbers : blocks_) largest = std::max(largest, GetBytes(numbers, kept));
    Slot<std::byte> turns[2];
    turns[0] = turns[1] = all ? Slot<std::byte>() : plan.Reserve<std::byte>(largest);
    if (kept.blocks == CacheBlocks::kTwoInTurn) turns[1] = plan.Reserve<std::byte>(largest);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const Slot<std::byte> slot = all ? plan.Reserve<std::byte>(GetBytes(blocks_[i], kept)) : turns[i % 2];
      if (slots != nullptr) slots->push_back(slot);
    }
    return plan;
  }
  std::vector<CachedNumbers> blocks_;
  size_t panel_ = 1;
};

class KeyValueCache {
 public:
  KeyValueCache() = default;
  KeyValueCache(const KeyValuePlan& plan, const CachedPositions& kept, const kernels::Memory& memory = {})
      : arena_(plan.GetPlan(kept, &slots_), memory, ArenaUse::kInPart),
        kept_(kept),
        room_(plan.RoomFor(kept.positions)) {
    for (const CachedNumbers& numbers : plan.blocks_)
      variances_at_.push_back(room_ * numbers.keys_and_values * kernels::CacheElementBytes(kept.type));
  }
  // The keys and values of a block. Valid as long as the cache lives. Threads may use it one after another.
  kernels::CachedHeads keys_and_values(size_t index) const {
    return {.data = arena_[slots_[index]], .room = room_, .type = kept_.type};
  }
  // The keys and values as rows, if the op table keeps rows.
  float* rows(size_t index) const { return static_cast<float*>(keys_and_values(index).data); }
  float* variances(size_t index) const {
    return reinterpret_cast<float*>(arena_[slots_[index]] + variances_at_[index]);
  }
  bool one_at_a_time() const { return kept_.blocks == CacheBlocks::kInTurn; }
  size_t positions() const { return kept_.positions; }  // positions that there is space for
  kernels::CacheType type() const { return kept_.type; }

 private:
  std::vector<Slot<std::byte>> slots_;  // declared before the arena, whose constructor fills them
  Arena arena_;
  CachedPositions kept_;
  size_t room_ = 0;
  std::vector<size_t> variances_at_;  // byte offset of the variances in each block
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_KEY_VALUE_CACHE_H_
