// The head of a graph once more for the record that was just run: what gradient methods ask for (record_gradients.h).
#ifndef WISP_RUNTIME_TRAIN_GRAPH_REPLAY_H_
#define WISP_RUNTIME_TRAIN_GRAPH_REPLAY_H_

#include "runtime/gradients/record_gradients.h"
#include "runtime/layers/graph.h"

namespace wisp {

// Of a Graph, or of a Recommender or Classifier. All of them must outlive this object; the context is as Forward and
// Backward left it.
template <class AnyGraph>
class GraphReplay final : public HeadReplay {
 public:
  GraphReplay(const AnyGraph& graph, const RecordContext& context, const Record& record)
      : graph_(graph), context_(context), record_(record) {}
  void Replay(FactorSink& sink) override { graph_.ReplayHead(context_, record_, sink); }

 private:
  const AnyGraph& graph_;
  const RecordContext& context_;
  const Record& record_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_GRAPH_REPLAY_H_
