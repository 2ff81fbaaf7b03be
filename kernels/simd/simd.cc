// The list of op tables: the reference and one table per instruction set that this processor has.
//
// The list is built once, at first use, in static storage. Thread-safe; no allocation. Other files have the ops.
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/simd/fill.h"
#include "kernels/simd/processor.h"
#include "hwy/targets.h"

namespace wisp::kernels {
namespace {

static_assert(!kAlwaysVectors || ((HWY_TARGETS) & (HWY_NEON | HWY_WASM)) != 0, "these vectors must be compiled");

constexpr size_t kMaxTables = 8;

struct Tables {
  std::array<OpTable, kMaxTables> simd;
  std::array<const OpTable*, kMaxTables + 1> all;  // the reference, then fastest first
  size_t num_all;

  Tables() : num_all(0) {
    all[num_all++] = &ReferenceOps();
    // A lower bit is a better target.
    for (int64_t left = ProcessorTargets(); left != 0 && num_all <= kMaxTables; left &= left - 1) {
      const int64_t target = left & -left;
      OpTable& table = simd[num_all - 1];
      table = BuildTable(target, ReferenceOps());
      all[num_all++] = &table;
    }
  }
};

const Tables& AllTables() {
  static const Tables tables;
  return tables;
}

}  // namespace

OpTable BuildTable(int64_t target, const OpTable& start) {
  OpTable table = start;
  table.score_tiles = nullptr;  // for weights that the reference has packed
  table.name = hwy::TargetName(target);
  FillGemm(target, table);
  FillSoftmax(target, table);
  FillNorm(target, table);
  FillRotary(target, table);
  FillActivation(target, table);
  FillElementwise(target, table);
  FillVariance(target, table);
  FillExpDouble(target, table);
  FillEmbedding(target, table);
  FillHalf(target, table);
  FillReduce(target, table);
  FillIntegers(target, table);
  FillOptimizer(target, table);
  FillCachedKeys(target, table);
  FillAttention(target, table);  // last, because it uses the other entries
  FillAttentionBackward(target, table);
  return table;
}

const OpTable& BestOps() {
  const Tables& tables = AllTables();
  return *tables.all[tables.num_all > 1 ? 1 : 0];
}

std::span<const OpTable* const> AllOps() {
  const Tables& tables = AllTables();
  return {tables.all.data(), tables.num_all};
}

const OpTable* FindOps(std::string_view name) {
  for (const OpTable* ops : AllOps()) {
    if (name == ops->name) return ops;
  }
  return nullptr;
}

}  // namespace wisp::kernels
