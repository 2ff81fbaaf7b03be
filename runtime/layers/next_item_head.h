// Next-item head: logits = h E^T + b over all items, softmax, cross-entropy; walked in tiles of kHeadTile items.
//
// On the host the logits of the records that pass at once, or rather their exponentials, are kept between the two
// sweeps when they fit kStoredLogitsBytes. Else, and on a device, each tile is computed again in the second sweep, so
// the memory of the head does not grow with the catalogue. Of several records it then keeps nothing that it emits: a
// sink must take each factor before the next comes (BatchGradients).
//
//   head.Forward(context, h, targets, loss_B);
//   head.Backward(context, h, targets, dh, sink);      // emits one Outer block per tile
//   // emits the same blocks again, for sinks that need the norm first
//   head.Replay(context, h, targets, sink);
#ifndef WISP_RUNTIME_LAYERS_NEXT_ITEM_HEAD_H_
#define WISP_RUNTIME_LAYERS_NEXT_ITEM_HEAD_H_

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

// Above this a record's logits are computed twice instead of kept (200 x 3,416 floats are 2.7 MB). Keeping them saves
// a quarter of the head's arithmetic; past this size they no longer come from the last-level cache of a small device.
inline constexpr size_t kStoredLogitsBytes = size_t{4} << 20;

// Of a row that keeps them: whole tiles.
inline size_t LogitsOfRow(size_t num_items) { return (num_items + kHeadTile - 1) / kHeadTile * kHeadTile; }

class NextItemHead {
 public:
  NextItemHead(const Architecture& architecture, const std::vector<ParameterSpec>& parameters, BufferPlan& plan);

  // loss_B: of each record the sum over its rows of its target_weight * cross-entropy(targets[r]); rows with target < 0
  // do not count. h [rows, D]. Saves what Backward needs.
  void Forward(const RecordContext& context, const float* h, const int32_t* targets, double* loss_B) const;

  // dh [rows, D] is assigned.
  void Backward(const RecordContext& context, const float* h, const int32_t* targets, float* dh,
                FactorSink& sink) const;

  // After Backward: emits the Outer and Vector factors once more.
  void Replay(const RecordContext& context, const float* h, const int32_t* targets, FactorSink& sink) const;

  // scores [num_items] of one hidden state h [D], bias included, on the context's threads. Needs no buffers. A table
  // that is not packed must be of halves.
  void Score(const RecordContext& context, const float* h, float* scores) const;

  // All items' scores of `rows` hidden states h [rows, D]: scores [rows, num_items], the same bits. The table is read
  // once for all of them.
  void ScoreTogether(const RecordContext& context, const float* h, size_t rows, float* scores) const;

  // The same of `rows` hidden states h [rows, D], for the items of one tile, those from tile * kHeadTile on: scores
  // [rows, n], with n kHeadTile or, in the last tile, what is left. A row's scores are the same, bit for bit, whatever
  // stands in the others.
  void ScoreTile(const Weights& weights, const float* h, size_t rows, size_t tile, float* scores) const;

  // All items' scores of `rows` hidden states at once [rows, num_items], the same bits again. Where the table of ops
  // has score_tiles: a device.
  void ScoreRows(const Weights& weights, const float* h, size_t rows, float* scores) const;

  // The parameter that the Outer blocks belong to.
  size_t table() const { return table_; }

 private:
  struct Tile {
    size_t index, first, n;
  };
  template <class F>
  void ForEachTile(F&& f) const;
  // Of items [first, end), whole tiles of them but for the last, of each of some rows.
  struct Items {
    size_t first, end;
  };
  void ScoreItems(const Weights& weights, const float* h, size_t rows, Items items, float* scores) const;
  void ScoreInPlace(const Weights& weights, const float* h, size_t rows, const Tile& items, float* scores,
                    size_t ldy) const;
  float* TileLogits(const RecordContext& context, const Tile& tile) const;
  float* TileMax(const RecordContext& context, const Tile& tile) const;
  // z [rows, n] of a tile.
  void ComputeLogits(const RecordContext& context, const Tile& tile, const float* h, float* z) const;
  const float* PackedTile(const Weights& weights, const Tile& tile) const;
  // The same with the tile's rows packed; rows of z are `ldz` apart.
  void Multiply(const Weights& weights, const float* packed, const Tile& tile, const float* h, size_t rows, float* z,
                size_t ldz) const;
  void Emit(const RecordContext& context, const Tile& tile, const float* h, const float* dz, FactorSink& sink) const;
  // The rows by which gradients of logits are multiplied, and what the table's own gradient passes: a cosine head's.
  const float* BackwardRows(const RecordContext& context, const Tile& tile) const;
  RowNorm RowNormOf(const Weights& weights, const Tile& tile) const;
  const float* Bias(const Weights& weights, size_t first) const;

  size_t table_, d_, num_items_, max_rows_, max_records_;
  std::optional<size_t> bias_;
  bool is_host_, stored_;
  bool keeps_dbias_;  // of all tiles
  // Of one tile, or all of them: then exp(logit - tile_max) after Forward, and the gradient after Backward.
  Slot<float> logits_;
  Slot<float> tile_max_;  // [tiles, max_rows] each row's largest logit up to a tile, where they are kept
  Slot<float> max_, sum_, lse_, target_logit_, weight_, dbias_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_NEXT_ITEM_HEAD_H_
