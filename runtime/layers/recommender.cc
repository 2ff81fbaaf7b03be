#include "runtime/layers/recommender.h"

#include <algorithm>

namespace wisp {

Recommender::Recommender(const Architecture& a, const kernels::Device& device, const GraphOptions& options)
    : GraphBase(a, device, options),
      embedding_(a, parameters_, plan_),
      stack_(a, ops(), parameters_, plan_.max_rows(), plan_),
      head_(a, parameters_, plan_),
      sampled_head_(a, parameters_, options.num_negatives, plan_),
      sampled_(options.num_negatives > 0) {}

const float* Recommender::Encode(RecordContext& context, const int32_t* inputs, size_t wanted) const {
  const float* last = stack_.Forward(context, embedding_, inputs, wanted);
  return stack_.Norm(context.Tail(), last);
}

void Recommender::Forward(RecordContext& context, Batch batch, double* loss_B) const {
  Enter(context, batch);
  const float* h = Encode(context, Inputs(context, batch), /*wanted=*/0);
  const int32_t* targets = Targets(context, batch);
  sampled_ ? sampled_head_.Forward(context, h, targets, loss_B) : head_.Forward(context, h, targets, loss_B);
}

void Recommender::Backward(const RecordContext& context, Batch batch, FactorSink& sink) const {
  const float* h = stack_.normed(context);
  float* dh = stack_.dnormed(context);
  const int32_t* targets = Targets(context, batch);
  sampled_ ? sampled_head_.Backward(context, h, targets, dh, sink) : head_.Backward(context, h, targets, dh, sink);
  stack_.NormBackward(context, sink);
  stack_.Backward(context, sink);
  embedding_.Backward(context, Inputs(context, batch), stack_.dinput(context), sink);
}

void Recommender::ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const {
  head_.Replay(context, stack_.normed(context), Targets(context, batch), sink);
}

bool Recommender::KeepsKeys(size_t before, size_t now) const {
  if (architecture_.attend != Attend::kCausal) return false;
  return before == now || architecture_.positions == PositionAlignment::kStart;
}

const float* Recommender::Represent(RecordContext& context, std::span<const int32_t> history) const {
  const std::span<const int32_t> inputs = history.subspan(context.past);
  EnterOne(context, inputs);
  return Encode(context, inputs.data(), /*wanted=*/1);
}

void Recommender::Represent(RecordContext& context, Batch batch, float* h_BD) const {
  for (const Record& record : batch) {
    std::copy_n(Represent(context, record.inputs), architecture_.width, h_BD);
    h_BD += architecture_.width;
  }
}

void Recommender::Score(RecordContext& context, std::span<const int32_t> history, float* scores) const {
  head_.Score(context, Represent(context, history), scores);
}

}  // namespace wisp
