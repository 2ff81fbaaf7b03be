// Finds the oldest model file format whose readers understand an architecture (schema/README.md).
#include <algorithm>

#include "runtime/core/architecture.h"

namespace wisp {
namespace {

// Resets every switch that format 7 added.
Architecture WithoutFormat7(Architecture a) {
  a.token_types = {};
  a.embedding_norm_epsilon.reset();
  a.head.pooling = Pooling::kFirst;
  a.head.pooler = Pooler::kTanh;
  a.head.unit_length = false;
  if (a.head.kind == HeadKind::kEmbedding) a.head.kind = HeadKind::kNextItem;
  if (a.adapter) a.adapter->has_head = false;
  for (BlockSpec& b : a.blocks) {
    if (b.biases == Biases::kQkv) b.biases = Biases::kAll;
  }
  return a;
}

// True if a switch that format 9 added is set.
bool HasFormat9(const Architecture& a) {
  const auto has_window = [](const BlockSpec& b) { return b.attention.window > 0; };
  return a.head.pooler == Pooler::kRelu || std::any_of(a.blocks.begin(), a.blocks.end(), has_window);
}

bool FitsFormat4(const Architecture& architecture) {
  Architecture a = architecture;
  a.position_table = PositionTable::kLearned;
  a.final_norm_kind = NormKind::kLayer;
  a.head.temperature = 0;
  for (BlockSpec& b : a.blocks) {
    if (b.feed_forward.activation > ActivationKind::kGelu) return false;
    b.norm_kind = NormKind::kLayer;
    b.residual = Residual::kPlain;
    b.biases = Biases::kAll;
    b.attention.num_kv_heads = b.attention.num_heads;
    b.attention.rotary = {};
    b.feed_forward.gated = false;
  }
  return a == architecture;
}

}  // namespace

uint32_t FormatOfSwitches(const Architecture& architecture) {
  if (HasFormat9(architecture)) return 9;
  if (WithoutFormat7(architecture) != architecture) return 7;
  return FitsFormat4(architecture) ? 4 : 5;
}

}  // namespace wisp
