// Next-item head: logits = h E^T + b over all items, softmax, cross-entropy. It works in tiles of items.
//
// On the host the exponentials of the logits are kept between the two sweeps if those of all records in the pass fit
// kStoredLogitsBytes. A device has larger tiles; if one holds all items, the first sweep leaves the gradients in place
// of the logits. Otherwise the second sweep computes each tile again, so the head's memory does not grow with the
// catalogue. Then, with several records, emitted data is overwritten: a sink must take each factor before the next
// comes (BatchGradients).
//
//   head.Forward(context, h, targets, loss_B);
//   head.Backward(context, h, targets, dh, sink);      // emits one Outer block per tile
//   // emits the same blocks again, for sinks that first need the norm
//   head.Replay(context, h, targets, sink);
#ifndef WISP_RUNTIME_LAYERS_NEXT_ITEM_HEAD_H_
#define WISP_RUNTIME_LAYERS_NEXT_ITEM_HEAD_H_

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

// Above this size a record's logits are computed twice instead of kept (200 x 3,416 floats are 2.7 MB). Keeping them
// saves a quarter of the head's arithmetic. Larger logits no longer stay in the last-level cache of a small device.
inline constexpr size_t kStoredLogitsBytes = size_t{4} << 20;

// Floats of a row's kept logits: whole tiles.
inline size_t CountRowLogits(size_t num_items) { return (num_items + kHeadTile - 1) / kHeadTile * kHeadTile; }

class NextItemHead {
 public:
  NextItemHead(const Architecture& architecture, const std::vector<ParameterSpec>& parameters, BufferPlan& plan);

  // loss_B: for each record, the sum over its rows of target_weight * cross-entropy(targets[r]). Rows with target < 0
  // do not count. h [rows, D]. Saves what Backward needs.
  void Forward(const RecordContext& context, const float* h, const int32_t* targets, double* loss_B) const;

  // dh [rows, D] is assigned.
  void Backward(const RecordContext& context, const float* h, const int32_t* targets, float* dh,
                FactorSink& sink) const;

  // After Backward: emits the Outer and Vector factors once more.
  void Replay(const RecordContext& context, const float* h, const int32_t* targets, FactorSink& sink) const;

  // scores [num_items] of one hidden state h [D], bias included, computed by the context's threads. Needs no buffers.
  // If the table is not packed it must be float16 or panels.
  void Score(const RecordContext& context, const float* h, float* scores) const;

  // Scores [rows, num_items] of `rows` hidden states h [rows, D], with the bits of Score. Reads the table once for all
  // rows.
  void ScoreTogether(const RecordContext& context, const float* h, size_t rows, float* scores) const;

  // Scores `rows` hidden states h [rows, D] for one tile: items from tile * kHeadTile on. scores [rows, n]; n is
  // kHeadTile, or what is left in the last tile. A row's scores have the same bits whatever the other rows are.
  void ScoreTile(const Weights& weights, const float* h, size_t rows, size_t tile, float* scores) const;

  // Scores all items for `rows` hidden states [rows, num_items], with the same bits. For op tables that have
  // score_tiles, as on a device.
  void ScoreRows(const Weights& weights, const float* h, size_t rows, float* scores) const;

  // The parameter that the Outer blocks belong to.
  size_t table() const { return table_; }

 private:
  struct Tile {
    size_t index, first, n;
  };
  template <class F>
  void ForEachTile(F&& f) const;
  // Items [first, end) of some rows: whole tiles, except for the last.
  struct Items {
    size_t first, end;
  };
  void ScoreItems(const Weights& weights, const float* h, size_t rows, Items items, float* scores) const;
  void ScoreInPlace(const Weights& weights, const float* h, size_t rows, const Tile& items, float* scores,
                    size_t ldy) const;
  float* TileLogits(const RecordContext& context, const Tile& tile) const;
  float* TileMax(const RecordContext& context, const Tile& tile) const;
  // Computes z [rows, n], the logits of a tile.
  void ComputeLogits(const RecordContext& context, const Tile& tile, const float* h, float* z) const;
  const float* PackedTile(const Weights& weights, const Tile& tile) const;
  // Computes z from packed rows of the tile; rows of z are `ldz` apart.
  void Multiply(const Weights& weights, const float* packed, const Tile& tile, const float* h, size_t rows, float* z,
                size_t ldz) const;
  void Emit(const RecordContext& context, const Tile& tile, const float* h, const float* dz, FactorSink& sink) const;
  // Scores some items from whole packed tiles on: scores [rows, items.n].
  void ScoreRows(const Weights& weights, const float* h, size_t rows, const Tile& items, float* scores) const;
  // True if Forward leaves the gradients in place of the logits.
  bool FormsAtOnce() const { return stored_ && !is_host_; }
  // The table rows that multiply the gradients of logits; and the norm that the table's own gradient passes, in a
  // cosine head.
  const float* BackwardRows(const RecordContext& context, const Tile& tile) const;
  RowNorm GetRowNorm(const Weights& weights, const Tile& tile) const;
  const float* Bias(const Weights& weights, size_t first) const;

  size_t table_, d_, num_items_, max_rows_, max_records_;
  size_t tile_;  // items of a tile
  std::optional<size_t> bias_;
  bool is_host_, stored_;
  bool keeps_dbias_;  // keeps the bias gradient of all tiles
  // Logits of one tile, or of all tiles. If of all: exp(logit - tile_max) after Forward on the host, the gradient after
  // Backward, and on a device after Forward.
  Slot<float> logits_;
  Slot<float> tile_max_;  // [tiles, max_rows] each row's largest logit up to a tile, if all are kept
  Slot<float> max_, sum_, lse_, target_logit_, weight_, dbias_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_NEXT_ITEM_HEAD_H_
