// A recommender of two towers. One maps a history to a state: the recommender's blocks. The other maps an item's public
// features to its row: E = X V, with features X [M, F] that never change and a trained matrix V [F, D]. The score is
// the product of state and row. So an item that nobody chose yet is known by its features, and a catalogue changes
// without training.
//
// E is stored beside X and V. So whoever only scores runs an ordinary recommender and never reads X. Training computes
// E again whenever V has changed (Derive).
//
// Gradients: a history's loss depends on V through E alone, and dE is a sum of outer products. Those of the head are
// dZ^T H, of the input scale * (rows of dX at the items). So dV = X^T dE is one Outer factor of a record:
//
//   dV = [dZ X; scale X[inputs]]^T [H; dX]      twice as many rows as the record has
//
// No gradient of E is formed, and every gradient method takes the factor as that of any other matrix.
#ifndef WISP_RUNTIME_LAYERS_TWO_TOWER_H_
#define WISP_RUNTIME_LAYERS_TWO_TOWER_H_

#include "runtime/layers/recommender.h"

namespace wisp {

// For training, on the host, with a softmax over all items.
class TwoTower final : public Recommender {
 public:
  [[gnu::cold]] TwoTower(const Architecture& architecture, const kernels::Device& device, const GraphOptions& options);

  // See Graph; Forward is the recommender's.
  void Backward(const RecordContext& context, Batch batch, FactorSink& sink) const;
  void ReplayHead(const RecordContext& context, Batch batch, FactorSink& sink) const;
  size_t head_parameter() const { return tower_; }
  void Derive(std::span<float> weights, size_t part, size_t num_parts) const;

 private:
  class Sink;
  // The records of the tower's factor: each has twice its rows, those of the head first.
  Segments FactorRecords(const RecordContext& context) const;
  void Emit(const RecordContext& context, FactorSink& sink) const;

  size_t tower_, features_, table_;
  Slot<float> dy_, x_;    // the tower's factor: [2 rows, F] and [2 rows, D]
  Slot<uint32_t> begin_;  // FactorRecords of several records
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_TWO_TOWER_H_
