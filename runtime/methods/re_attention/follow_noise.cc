// Re-Attention's part in a step: after each change of the weights, the variances that its noise has left in them.
#include "runtime/methods/re_attention/noise_variance.h"
#include "runtime/train/method_table.h"

namespace wisp {

const bool kHasReAttention = true;

namespace {

class FollowNoise final : public UpdateObserver {
 public:
  FollowNoise(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o,
              std::span<const int32_t> fixed_rows)
      : variance_(graph.architecture(), trained, o.re_attention,
                  GradientNoise(o) * o.privacy.clipping_norm / o.expected_batch) {
    if (!fixed_rows.empty()) variance_.KeepItems(fixed_rows);
  }

  void Start(HeldWeights& weights) override {
    weights.ChangeOnHost([this](std::span<float> flat) { variance_.Initialise(flat); });
  }

  void Follow(StepContext& context, const Optimizer& optimizer, std::optional<ItemRows> item_rows) override {
    const NoiseVariance::Step step{optimizer, context.rate, context.step, item_rows};
    context.ForParts([&](size_t w) { variance_.Add(step, w, context.num_callers, context.weights.current()); });
    // Variances have no gradient, so the averaged weights take the newest ones.
    for (const ParameterSpec& p : context.graph.parameters()) {
      if (p.role == ParameterRole::kItemVariance || p.role == ParameterRole::kParameterVariance)
        context.weights.AverageIsCurrent(p);
    }
  }

  size_t size_bytes() const override { return variance_.size_bytes(); }

 private:
  NoiseVariance variance_;
};

}  // namespace

bool FollowsUpdates(const Architecture& a, const TrainingOptions& o) {
  return IsPrivate(o) && HasGradients(o) && a.re_attention == ReAttention::kOn;
}

std::unique_ptr<UpdateObserver> MakeUpdateObserver(const Graph& graph, const TrainedSet& trained,
                                                   const TrainingOptions& o, std::span<const int32_t> fixed_rows) {
  if (!FollowsUpdates(graph.architecture(), o)) return nullptr;
  return std::make_unique<FollowNoise>(graph, trained, o, fixed_rows);
}

size_t PlanUpdateObserver(const Architecture& a, const TrainingOptions& o) {
  return FollowsUpdates(a, o) ? NoiseVariance::PlanBytes(a, o.re_attention) : 0;
}

Status CheckUpdateObserver(const Architecture& a, const TrainingOptions& o) {
  return a.re_attention == ReAttention::kOn ? Validate(o.re_attention, a) : OkStatus();
}

}  // namespace wisp
