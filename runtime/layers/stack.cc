#include "runtime/layers/stack.h"

namespace wisp {

Stack::Stack(const Architecture& a, const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters,
             size_t normed_rows, BufferPlan& plan)
    : d_(a.width), variance_(a, plan) {
  const auto num_blocks = static_cast<uint32_t>(a.blocks.size());
  const auto plan_blocks = [&](BufferPlan& into) {
    std::vector<Block> blocks;
    blocks.reserve(num_blocks);
    for (uint32_t b = 0; b < num_blocks; ++b) {
      into.BeginBlock();
      blocks.emplace_back(a, ops, parameters, b, variance_, into);
    }
    return blocks;
  };
  BufferPlan sizes(plan.use, plan.max_record_rows, plan.max_records);
  plan_blocks(sizes);
  plan.ReserveTurns(sizes.largest_turn());
  blocks_ = plan_blocks(plan);
  const size_t size = plan.max_rows() * a.width;
  for (uint32_t b = 0; b <= num_blocks; ++b) {
    // In inference the stream goes to and fro between two.
    const bool reuses = plan.use == GraphUse::kInference && b >= 2;
    states_.push_back(reuses ? states_[b - 2] : plan.forward.Reserve<float>(size));
    dstates_.push_back(plan.backward.Reserve<float>(size));
  }
  if (!a.final_norm_epsilon) return;
  final_norm_.emplace(parameters,
                      NormParameters{.gain = RequireParameter(parameters, ParameterRole::kFinalNormGain),
                                     .bias = RequireParameter(parameters, ParameterRole::kFinalNormBias),
                                     .epsilon = *a.final_norm_epsilon},
                      normed_rows, plan);
  normed_ = plan.forward.Reserve<float>(normed_rows * a.width);
  dnormed_ = plan.backward.Reserve<float>(normed_rows * a.width);
}

const float* Stack::Forward(RecordContext& context, size_t wanted) const {
  context.wanted = 0;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (b + 1 == blocks_.size()) context.wanted = wanted;
    blocks_[b].Forward(context, context.forward(states_[b]), context.forward(states_[b + 1]));
  }
  const float* last = context.forward(states_.back());
  if (!blocks_.empty()) return last;
  context.wanted = wanted;
  return last + (context.rows() - context.wanted_rows()) * d_;
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

void Stack::Backward(const RecordContext& context, FactorSink& sink) const {
  for (size_t b = blocks_.size(); b-- > 0;) {
    blocks_[b].Backward(context, context.forward(states_[b]), context.backward(dstates_[b + 1]),
                        context.backward(dstates_[b]), sink);
  }
}

}  // namespace wisp
