#include "runtime/layers/graph.h"

#include <algorithm>
#include <type_traits>

#include "runtime/layers/classifier.h"
#include "runtime/layers/recommender.h"
#include "runtime/layers/two_tower.h"

namespace wisp {
namespace {

template <class Kind>
class GraphFor final : public Graph {
 public:
  template <class... Arguments>
  explicit GraphFor(Arguments&&... arguments) : Graph(graph_), graph_(std::forward<Arguments>(arguments)...) {}

  void Forward(RecordContext& context, Batch batch, double* loss_B) const override {
    graph_.Forward(context, batch, loss_B);
  }
  void Backward(const RecordContext& context, Batch batch, FactorSink& sink) const override {
    graph_.Backward(context, batch, sink);
  }
  void ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const override {
    graph_.ReplayHead(context, batch, sink);
  }
  void Represent(RecordContext& context, Batch batch, float* h_BD) const override {
    graph_.Represent(context, batch, h_BD);
  }
  void Pool([[maybe_unused]] RecordContext& context, [[maybe_unused]] Batch batch,
            [[maybe_unused]] float* e_BD) const override {
    if constexpr (std::is_same_v<Kind, Classifier>) graph_.Pool(context, batch, e_BD);
  }
  void PassBelow([[maybe_unused]] RecordContext& context, [[maybe_unused]] Batch batch, [[maybe_unused]] size_t block,
                 [[maybe_unused]] float* x_RD) const override {
    if constexpr (std::is_same_v<Kind, Classifier>) graph_.PassBelow(context, batch, block, x_RD);
  }
  size_t head_parameter() const override { return graph_.head_parameter(); }
  void Derive([[maybe_unused]] std::span<float> weights, [[maybe_unused]] size_t part,
              [[maybe_unused]] size_t num_parts) const override {
    if constexpr (std::is_same_v<Kind, TwoTower>) graph_.Derive(weights, part, num_parts);
  }

 private:
  Kind graph_;
};

}  // namespace

size_t CountRecords(const Architecture& a, size_t num_negatives, size_t rows) {
  if (a.head.kind == HeadKind::kNextItem && num_negatives == 0)
    rows = std::min(rows, kStoredLogitsBytes / (CountRowLogits(a.num_items) * sizeof(float)));
  return std::clamp<size_t>(rows / a.max_length, 1, kMostAtOnce);
}

std::unique_ptr<Graph> MakeGraph(const Architecture& a, const kernels::Device& device, const GraphOptions& options) {
  if (a.head.kind == HeadKind::kClasses) return std::make_unique<GraphFor<Classifier>>(a, device, options);
  if (a.item_features > 0) return std::make_unique<GraphFor<TwoTower>>(a, device, options);
  return std::make_unique<GraphFor<Recommender>>(a, device, options);
}

}  // namespace wisp
