#include "runtime/layers/graph.h"

#include "runtime/layers/classifier.h"
#include "runtime/layers/recommender.h"

namespace wisp {
namespace {

template <class Kind>
class GraphOf final : public Graph {
 public:
  template <class... Arguments>
  explicit GraphOf(Arguments&&... arguments) : Graph(graph_), graph_(std::forward<Arguments>(arguments)...) {}

  double Forward(RecordContext& context, const Record& record) const override {
    return graph_.Forward(context, record);
  }
  void Backward(const RecordContext& context, const Record& record, FactorSink& sink) const override {
    graph_.Backward(context, record, sink);
  }
  void ReplayHead(const RecordContext& context, const Record& record, FactorSink& sink) const override {
    graph_.ReplayHead(context, record, sink);
  }
  const float* Represent(RecordContext& context, std::span<const int32_t> inputs) const override {
    return graph_.Represent(context, inputs);
  }
  size_t head_parameter() const override { return graph_.head_parameter(); }

 private:
  Kind graph_;
};

}  // namespace

std::unique_ptr<Graph> MakeGraph(const Architecture& a, const kernels::OpTable& ops, size_t num_negatives) {
  if (a.head.kind == HeadKind::kClasses) return std::make_unique<GraphOf<Classifier>>(a, ops);
  return std::make_unique<GraphOf<Recommender>>(a, ops, num_negatives);
}

}  // namespace wisp
