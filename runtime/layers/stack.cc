#include "runtime/layers/stack.h"

#include <algorithm>

namespace wisp {
namespace {

// The cost of one block, as the mean over all blocks.
RowCost ComputeCost(const Architecture& a) {
  RowCost cost{.causal = a.attend == Attend::kCausal};
  for (const BlockSpec& block : a.blocks) {
    const AttentionSpec& s = block.attention;
    const double queries = s.queries_width(), keys = s.keys_width();
    cost.row += a.width * (2 * (queries + keys) + block.feed_forward.in_rows() + block.feed_forward.inner_width);
    if (block.residual == Residual::kGated) cost.row += 2.0 * a.width * a.width;
    cost.key += 2 * queries + kExponentialAdds * s.num_heads;
    // The kernel assumes that the last query stands at the last key. With slopes and full attention, a part would have
    // keys after its last query. So such a sequence is not split.
    if (s.slope > 0 && !cost.causal) return {};
  }
  const auto blocks = static_cast<double>(std::max<size_t>(1, a.blocks.size()));
  cost.row /= blocks;
  cost.key /= blocks;
  return cost;
}

}  // namespace

Stack::Stack(const Architecture& a, const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters,
             size_t normed_rows, BufferPlan& plan)
    : d_(a.width), cost_(ComputeCost(a)), recomputes_(plan.recomputes), variance_(a, plan) {
  const auto num_blocks = static_cast<uint32_t>(a.blocks.size());
  const auto plan_blocks = [&](BufferPlan& into) {
    std::vector<Block> blocks;
    blocks.reserve(num_blocks);
    for (uint32_t b = 0; b < num_blocks; ++b) {
      into.BeginBlock();
      blocks.emplace_back(a, ops, parameters, b, variance_, into);
      into.EndBlock();
    }
    return blocks;
  };
  BufferPlan sizes(plan.use, plan.max_record_rows, plan.max_records, plan.max_rows(), plan.is_host);
  sizes.recomputes = plan.recomputes;
  plan_blocks(sizes);
  plan.ReserveTurns(sizes);
  blocks_ = plan_blocks(plan);
  parameters_.resize(num_blocks);
  for (std::vector<size_t>& own : parameters_) own.reserve(parameters.size() / num_blocks);
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (IsBlockRole(parameters[p].role)) parameters_[parameters[p].block].push_back(p);
  }
  const size_t size = plan.max_rows() * a.width;
  for (std::vector<Slot<float>>* slots : {&states_, &dstates_}) slots->reserve(num_blocks + 1);
  for (uint32_t b = 0; b <= num_blocks; ++b) {
    // In inference the stream alternates between two buffers.
    const bool reuses = plan.use == GraphUse::kInference && b >= 2;
    states_.push_back(reuses ? states_[b - 2] : plan.forward.Reserve<float>(size));
    // With recomputed blocks no factor is kept, and a gradient is not read again once it has passed down a block.
    dstates_.push_back(plan.recomputes && b >= 2 ? dstates_[b - 2] : plan.backward.Reserve<float>(size));
  }
  if (!a.final_norm_epsilon) return;
  final_norm_.emplace(parameters,
                      NormParameters{.gain = RequireParameter(parameters, ParameterRole::kFinalNormGain),
                                     .bias = FindParameter(parameters, ParameterRole::kFinalNormBias),
                                     .epsilon = *a.final_norm_epsilon},
                      normed_rows, plan);
  normed_ = plan.forward.Reserve<float>(normed_rows * a.width);
  dnormed_ = plan.backward.Reserve<float>(normed_rows * a.width);
}

// The second half of a block reads keys and values of all rows, so each half is a separate step. The second half of a
// block and the first half of the next work on the same rows and share a step. All parts share one stream.
const float* Stack::Run(RecordContext& context, const Embedding& embedding, const int32_t* ids, size_t wanted,
                        size_t end) const {
  context.wanted = 0;
  const RowParts parts(context, cost_);
  const size_t num_blocks = blocks_.size(), begin = context.below_RD != nullptr ? context.first_block : 0;
  if (context.below_RD != nullptr) {
    context.ops().scale({.x = context.below_RD,
                         .y = context.forward(states_[begin]),
                         .n = context.rows() * d_,
                         .a = 1.0f,
                         .store = kernels::Store::kAssign});
  }
  for (size_t b = begin; b <= end; ++b) {
    const bool is_below = b == begin && context.below_RD != nullptr;
    if (b == num_blocks) context.wanted = wanted;
    float* x = context.forward(states_[b]);
    const float* before = b > 0 ? context.forward(states_[b - 1]) : nullptr;
    const size_t not_wanted = context.rows() - context.wanted_rows();
    parts.ForEach(context, [&](const RecordContext& part, size_t first) {
      float* of_part = x + (std::max(first, not_wanted) - not_wanted) * d_;
      if (b > 0 && !is_below) blocks_[b - 1].Finish(part, before + first * d_, of_part);
      if (b == 0 && !is_below) embedding.Forward(part, ids + first, of_part);
      if (b == 0 && variance_.on) embedding.Variance(part, ids + first, part.forward(variance_.stream));
      if (b == end) return;
      const size_t last = first + part.rows();
      const size_t skipped = b + 1 == num_blocks && wanted > 0 ? context.rows() - wanted : 0;
      blocks_[b].Begin(part, of_part, last - std::max(first, std::min(skipped, last)));
    });
  }
  return context.forward(states_[end]) + (num_blocks == 0 ? (context.rows() - context.wanted_rows()) * d_ : 0);
}

const float* Stack::Norm(const RecordContext& context, const float* x) const {
  if (!final_norm_) return x;
  float* normed = context.forward(normed_);
  final_norm_->Forward(context, x, normed);
  return normed;
}

void Stack::NormBackward(const RecordContext& context, const float* x, float* dx, FactorSink& sink) const {
  if (!final_norm_) return;
  final_norm_->Backward(context, x, context.backward(dnormed_), dx, kernels::Store::kAssign, sink);
}

bool Stack::Wanted(size_t block, const FactorSink& sink) const {
  return std::any_of(parameters_[block].begin(), parameters_[block].end(), [&](size_t p) { return sink.Wants(p); });
}

// Computes the bits that Forward computed, dropout masks included: a mask follows from the record and the site.
void Stack::ComputeAgain(const RecordContext& context, size_t b) const {
  const float* x = context.forward(states_[b]);
  blocks_[b].Begin(context, x, context.rows());
  blocks_[b].Finish(context, x, context.forward(states_[b + 1]));
}

void Stack::Backward(const RecordContext& context, const Embedding& embedding, const int32_t* ids,
                     FactorSink& sink) const {
  const bool of_embedding = embedding.Wanted(sink);
  size_t lowest = 0;
  while (!of_embedding && lowest < blocks_.size() && !Wanted(lowest, sink)) ++lowest;
  for (size_t b = blocks_.size(); b-- > lowest;) {
    const float* x = context.forward(states_[b]);
    // The last block's activations are still there.
    if (recomputes_ && b + 1 < blocks_.size()) ComputeAgain(context, b);
    blocks_[b].Backward(context, x, context.backward(dstates_[b + 1]), context.backward(dstates_[b]), sink);
    if (recomputes_) sink.EndKept();
  }
  if (of_embedding) embedding.Backward(context, ids, context.backward(dstates_.front()), sink);
}

}  // namespace wisp
