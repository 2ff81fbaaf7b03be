// Keys and values of the positions that have passed through each block, and with Re-Attention the variances of them:
// what attention reads of the past. Inference has one beside its buffers; training has none, for it keeps all.
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

// kAll: every block's, so that positions of the past need not be computed again. kInTurn: of the block that runs.
// kTwoInTurn: of two, for several threads (parts.h): while one still reads those of a block, another writes the next.
enum class KeptBlocks { kAll, kTwoInTurn, kInTurn };

// Which blocks' positions are kept, how many, and as what.
struct KeptPositions {
  KeptBlocks blocks = KeptBlocks::kAll;
  size_t positions = 0;
  kernels::KeptType type = kernels::KeptType::kFloat;
};

// What a block keeps of each position.
struct KeptNumbers {
  size_t keys_and_values = 0;  // numbers of the type that is kept
  size_t variances = 0;        // floats
};

class KeyValuePlan {
 public:
  // `panel`: keys are kept in panels of so many positions (OpTable::kept_panel), 0 or 1: by rows.
  void set_panel(size_t panel) { panel_ = std::max<size_t>(1, panel); }
  // Room for these of each position in the next block; returns the block's index here.
  size_t Reserve(const KeptNumbers& of_position) {
    blocks_.push_back(of_position);
    return blocks_.size() - 1;
  }
  size_t allocated_bytes(const KeptPositions& kept) const { return PlanOf(kept).allocated_bytes(); }

 private:
  friend class KeyValueCache;
  size_t RoomFor(size_t positions) const { return (positions + panel_ - 1) / panel_ * panel_; }
  size_t BytesOf(const KeptNumbers& numbers, const KeptPositions& kept) const {
    return RoomFor(kept.positions) *
           (numbers.keys_and_values * kernels::KeptElementBytes(kept.type) + numbers.variances * sizeof(float));
  }
  ArenaPlan PlanOf(const KeptPositions& kept, std::vector<Slot<std::byte>>* slots = nullptr) const {
    ArenaPlan plan;
    const bool all = kept.blocks == KeptBlocks::kAll;
    size_t largest = 0;
    for (const KeptNumbers& numbers : blocks_) largest = std::max(largest, BytesOf(numbers, kept));
    Slot<std::byte> turns[2];
    turns[0] = turns[1] = all ? Slot<std::byte>() : plan.Reserve<std::byte>(largest);
    if (kept.blocks == KeptBlocks::kTwoInTurn) turns[1] = plan.Reserve<std::byte>(largest);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const Slot<std::byte> slot = all ? plan.Reserve<std::byte>(BytesOf(blocks_[i], kept)) : turns[i % 2];
      if (slots != nullptr) slots->push_back(slot);
    }
    return plan;
  }
  std::vector<KeptNumbers> blocks_;
  size_t panel_ = 1;
};

class KeyValueCache {
 public:
  KeyValueCache() = default;
  KeyValueCache(const KeyValuePlan& plan, const KeptPositions& kept, const kernels::Memory& memory = {})
      : arena_(plan.PlanOf(kept, &slots_), memory, ArenaUse::kInPart),
        kept_(kept),
        room_(plan.RoomFor(kept.positions)) {
    for (const KeptNumbers& numbers : plan.blocks_)
      variances_at_.push_back(room_ * numbers.keys_and_values * kernels::KeptElementBytes(kept.type));
  }
  // Of a block. Valid as long as the cache lives, for any number of threads that take turns.
  kernels::KeptHeads keys_and_values(size_t index) const {
    return {.data = arena_[slots_[index]], .room = room_, .type = kept_.type};
  }
  // The same by rows, where the table keeps them so.
  float* rows(size_t index) const { return static_cast<float*>(keys_and_values(index).data); }
  float* variances(size_t index) const {
    return reinterpret_cast<float*>(arena_[slots_[index]] + variances_at_[index]);
  }
  bool one_at_a_time() const { return kept_.blocks == KeptBlocks::kInTurn; }
  size_t positions() const { return kept_.positions; }  // that there is room for
  kernels::KeptType type() const { return kept_.type; }

 private:
  std::vector<Slot<std::byte>> slots_;  // before the arena, which is made of them
  Arena arena_;
  KeptPositions kept_;
  size_t room_ = 0;
  std::vector<size_t> variances_at_;  // of each block, in bytes
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_KEY_VALUE_CACHE_H_
