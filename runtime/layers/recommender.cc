#include "runtime/layers/recommender.h"

#include <algorithm>

namespace wisp {

Recommender::Recommender(const Architecture& a, const kernels::OpTable& ops, size_t num_negatives, GraphUse use,
                         HeadPacking head)
    : architecture_(a),
      ops_(&ops),
      parameters_(ParametersOf(a)),
      pack_plan_(ops, a, num_negatives > 0 ? HeadPacking::kNone : head),
      plan_(use),
      variance_(a, plan_),
      embedding_(a, parameters_, plan_),
      head_(a, parameters_, plan_),
      sampled_head_(a, parameters_, num_negatives, plan_),
      sampled_(num_negatives > 0) {
  const size_t size = size_t{a.max_length} * a.width;
  for (size_t b = 0; b < a.num_blocks; ++b) {
    plan_.BeginBlock();
    blocks_.emplace_back(a, ops, parameters_, b, variance_, plan_);
  }
  if (a.norm == NormPlacement::kPre)
    final_norm_.emplace_back(parameters_, "final_norm", a.norm_epsilon, a.max_length, plan_);
  for (size_t b = 0; b <= a.num_blocks; ++b) {
    // In inference the stream goes to and fro between two.
    const bool reuses = plan_.use == GraphUse::kInference && b >= 2;
    states_.push_back(reuses ? states_[b - 2] : plan_.forward.Reserve<float>(size));
    dstates_.push_back(plan_.backward.Reserve<float>(size));
  }
  hidden_ = plan_.forward.Reserve<float>(size);
  dhidden_ = plan_.backward.Reserve<float>(size);
  weights_ = plan_.backward.Reserve<float>(a.max_length);
}

Buffers Recommender::AllocateForTraining() const { return {Arena(plan_.forward), Arena(plan_.backward)}; }
Buffers Recommender::AllocateForInference() const { return {Arena(plan_.forward), Arena()}; }

const float* Recommender::Encode(RecordContext& context, std::span<const int32_t> inputs, size_t wanted) const {
  context.rows = inputs.size();
  context.wanted = 0;
  context.first_valid = static_cast<size_t>(
      std::find_if(inputs.begin(), inputs.end(), [](int32_t id) { return id >= 0; }) - inputs.begin());
  embedding_.Forward(context, inputs.data(), context.forward(states_[0]));
  if (variance_.on) embedding_.Variance(context, inputs.data(), context.forward(variance_.stream));
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (b + 1 == blocks_.size()) context.wanted = wanted;
    blocks_[b].Forward(context, context.forward(states_[b]), context.forward(states_[b + 1]));
  }
  const float* last = context.forward(states_.back());
  if (blocks_.empty()) {
    context.wanted = wanted;
    last += (context.rows - context.wanted_rows()) * architecture_.width;
  }
  if (final_norm_.empty()) return last;
  final_norm_[0].Forward(context.Tail(), last, context.forward(hidden_));
  return context.forward(hidden_);
}

double Recommender::Forward(RecordContext& context, const Record& record, float position_weight) const {
  const float* h = Encode(context, record.inputs, /*wanted=*/0);
  float* weights = context.backward(weights_);
  std::fill_n(weights, record.inputs.size(), position_weight);
  if (sampled_) return sampled_head_.Forward(context, h, record.targets.data(), weights);
  return head_.Forward(context, h, record.targets.data(), weights);
}

void Recommender::Backward(const RecordContext& context, const Record& record, FactorSink& sink) const {
  const bool normed = !final_norm_.empty();
  const float* h = normed ? context.forward(hidden_) : context.forward(states_.back());
  float* dlast = context.backward(dstates_.back());
  float* dh = normed ? context.backward(dhidden_) : dlast;
  sampled_ ? sampled_head_.Backward(context, h, record.targets.data(), dh, sink)
           : head_.Backward(context, h, record.targets.data(), dh, sink);
  if (normed)
    final_norm_[0].Backward(context, context.forward(states_.back()), dh, dlast, kernels::Store::kAssign, sink);
  for (size_t b = blocks_.size(); b-- > 0;) {
    blocks_[b].Backward(context, context.forward(states_[b]), context.backward(dstates_[b + 1]),
                        context.backward(dstates_[b]), sink);
  }
  embedding_.Backward(context, record.inputs.data(), context.backward(dstates_[0]), sink);
}

void Recommender::ReplayHead(const RecordContext& context, const Record& record, FactorSink& sink) const {
  const float* h = final_norm_.empty() ? context.forward(states_.back()) : context.forward(hidden_);
  head_.Replay(context, h, record.targets.data(), sink);
}

bool Recommender::KeepsKeys(size_t before, size_t now) const {
  if (architecture_.attend != Attend::kCausal) return false;
  return before == now || architecture_.positions == PositionAlignment::kStart;
}

const float* Recommender::Represent(RecordContext& context, std::span<const int32_t> history) const {
  return Encode(context, history.subspan(context.past), /*wanted=*/1);
}

void Recommender::Score(RecordContext& context, std::span<const int32_t> history, float* scores) const {
  head_.Score(context.weights, Represent(context, history), scores);
}

}  // namespace wisp
