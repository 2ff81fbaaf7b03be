#include "runtime/layers/recommender.h"

#include <algorithm>

namespace wisp {

Recommender::Recommender(const Architecture& a, const kernels::OpTable& ops, size_t num_negatives, GraphUse use,
                         HeadPacking head)
    : GraphBase(a, ops, use, num_negatives > 0 ? HeadPacking::kNone : head),
      embedding_(a, parameters_, plan_),
      stack_(a, ops, parameters_, a.max_length, plan_),
      head_(a, parameters_, plan_),
      sampled_head_(a, parameters_, num_negatives, plan_),
      sampled_(num_negatives > 0),
      weights_(plan_.backward.Reserve<float>(a.max_length)) {}

const float* Recommender::Encode(RecordContext& context, std::span<const int32_t> inputs, size_t wanted) const {
  context.rows = inputs.size();
  context.wanted = 0;
  context.first_valid = static_cast<size_t>(
      std::find_if(inputs.begin(), inputs.end(), [](int32_t id) { return id >= 0; }) - inputs.begin());
  embedding_.Forward(context, inputs.data(), stack_.input(context));
  if (float* variance = stack_.input_variance(context)) embedding_.Variance(context, inputs.data(), variance);
  const float* last = stack_.Forward(context, wanted);
  return stack_.Norm(context.Tail(), last);
}

double Recommender::Forward(RecordContext& context, const Record& record) const {
  const float* h = Encode(context, record.inputs, /*wanted=*/0);
  float* weights = context.backward(weights_);
  std::fill_n(weights, record.inputs.size(), context.target_weight);
  if (sampled_) return sampled_head_.Forward(context, h, record.targets.data(), weights);
  return head_.Forward(context, h, record.targets.data(), weights);
}

void Recommender::Backward(const RecordContext& context, const Record& record, FactorSink& sink) const {
  const float* h = stack_.normed(context);
  float* dh = stack_.dnormed(context);
  sampled_ ? sampled_head_.Backward(context, h, record.targets.data(), dh, sink)
           : head_.Backward(context, h, record.targets.data(), dh, sink);
  stack_.NormBackward(context, sink);
  stack_.Backward(context, sink);
  embedding_.Backward(context, record.inputs.data(), stack_.dinput(context), sink);
}

void Recommender::ReplayHead(const RecordContext& context, const Record& record, FactorSink& sink) const {
  head_.Replay(context, stack_.normed(context), record.targets.data(), sink);
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
