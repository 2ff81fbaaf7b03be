#include "runtime/layers/graph.h"

#include "runtime/layers/classifier.h"
#include "runtime/layers/recommender.h"

namespace wisp {

std::unique_ptr<Graph> MakeGraph(const Architecture& a, const kernels::OpTable& ops, size_t num_negatives) {
  if (a.head.kind == HeadKind::kClasses) return std::make_unique<Classifier>(a, ops);
  return std::make_unique<Recommender>(a, ops, num_negatives);
}

}  // namespace wisp
