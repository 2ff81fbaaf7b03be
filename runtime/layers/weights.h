// The weights as layers see them: parameters where they lie, and packed copies of what is multiplied by.
//
// Weights are packed once per step (training) or once per load (inference) and shared by all records and workers.
// The head's table is packed in tiles of kHeadTile items, each tile on its own, so that a tile can be used alone; or,
// when it is stored as halves and only scored, not at all.
#ifndef WISP_RUNTIME_LAYERS_WEIGHTS_H_
#define WISP_RUNTIME_LAYERS_WEIGHTS_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/core/architecture.h"
#include "runtime/core/arena.h"
#include "runtime/core/stored_tensor.h"
#include "runtime/layers/constants.h"

namespace wisp {

// Items per tile of the output table: 200 x 256 logits and 256 x 64 weights lie in a 2 MB L2 together with the rest.
inline constexpr size_t kHeadTile = 256;

// What is added to the mean square of a row before it is divided by its root, for rows that are zero: a cosine head.
inline constexpr float kUnitEpsilon = 1e-8f;

// Where parameters are read: in one flat buffer laid out by ParametersOf, or each where its file has it. Nothing is
// owned.
class ParameterSource {
 public:
  ParameterSource(const float* flat) : flat_(flat) {}
  explicit ParameterSource(std::span<const StoredTensor> tensors) : tensors_(tensors.data()) {}

  // One of the three is there. A parameter that trains is floats; one that does not may be halves or panels.
  const float* floats(size_t parameter, const ParameterSpec& p) const {
    return tensors_ != nullptr ? tensors_[parameter].floats : flat_ + p.offset;
  }
  const kernels::Half* halves(size_t parameter) const {
    return tensors_ != nullptr ? tensors_[parameter].halves : nullptr;
  }
  kernels::PanelMatrix panels(size_t parameter) const {
    return tensors_ != nullptr ? tensors_[parameter].panels : kernels::PanelMatrix();
  }

 private:
  const float* flat_ = nullptr;
  const StoredTensor* tensors_ = nullptr;
};

// Rows of a stacked query-key-value matrix before those of the keys; 0 for every other parameter. The rows from there
// on are packed on their own: their product may go to a key/value cache, and Re-Attention asks for their squares alone.
size_t FirstKeyRow(const Architecture& architecture, const ParameterSpec& parameter);
// Re-Attention: of how many rows from there on the squares are asked for. Nobody reads the variances of the last
// block's values.
size_t SquaredRows(const Architecture& architecture, const ParameterSpec& parameter);

// Whether the head's table is packed, tile by tile, or not at all: sampled softmax, where nothing loops over the
// catalogue, or halves and panels, which are scored where they lie and in training widened tile by tile.
enum class HeadPacking { kTiles, kNone };

// What is best for scoring: halves are packed only where that makes them smaller (over 8-bit integers), panels only
// where the rows are made of unit length.
HeadPacking HeadPackingFor(const kernels::OpTable& ops, const Architecture& architecture,
                           const ParameterSource& source);

// Room in a worker's buffers for some rows of a matrix as floats, and for the same packed (widened.h).
struct WidenedRoom {
  Slot<float> rows, packed;
};

// Where each packed matrix lies; made once per architecture and op table.
class PackPlan {
 public:
  PackPlan() = default;
  // A graph without a next-item head has no tiles, whatever `head` says.
  // `keeps_unit_rows`: the unit rows of a cosine head's table are kept, for a backward pass.
  // `stored`: of each parameter or the first of them. Matrices that are panels there are multiplied where they lie, not
  // packed.
  [[gnu::cold]] PackPlan(const kernels::OpTable& ops, const Architecture& architecture,
                         HeadPacking head = HeadPacking::kTiles, bool keeps_unit_rows = false,
                         std::span<const StoredTensor> stored = {});

  size_t size() const { return size_; }                                         // floats
  size_t offset(size_t parameter) const { return matrices_[parameter].first; }  // of a matrix, or of the head's tile 0
  size_t keys_offset(size_t parameter) const { return matrices_[parameter].keys; }  // of the rows from FirstKeyRow on
  size_t first_key_row(size_t parameter) const { return matrices_[parameter].first_key_row; }
  bool is_in_place(size_t parameter) const { return matrices_[parameter].in_place; }
  size_t tile_stride() const { return tile_stride_; }  // floats between packed head tiles
  HeadPacking head_packing() const { return head_; }
  // Of a graph for training: where rows of what is not floats are widened. None in inference.
  const std::optional<WidenedRoom>& widened() const { return widened_; }
  void WidenIn(const WidenedRoom& room) { widened_ = room; }
  // What does not change with the weights, and where it begins.
  const Constants& constants() const { return constants_; }
  size_t constants_offset() const { return constants_offset_; }
  // A cosine head: rows of unit length are gain * row * rstd, an RMS norm with Constants::unit_gain.
  size_t unit_rows_offset() const { return unit_rows_; }                                 // [M, D], where they are kept
  size_t unit_rstd_offset() const { return unit_rows_ + AlignedSize(unit_rows_size_); }  // [M]
  // Re-Attention: the squares of a matrix's entries from FirstKeyRow on, packed; SquaredRows of them.
  size_t squared_offset(size_t parameter) const { return matrices_[parameter].squared; }
  // None without Re-Attention.
  std::optional<size_t> item_variance_parameter() const { return item_variance_; }
  std::optional<size_t> parameter_variance_parameter() const { return parameter_variance_; }

  // Gives back what packing made beside the buffer (OpTable::release_packed); once, when `packed` is done with.
  void Release(const kernels::OpTable& ops, float* packed) const;

  // A share of the work, one for each of as many threads: `part` of `num_parts`, of the parameters that have changed.
  struct Share {
    size_t part, num_parts;
    std::span<const uint8_t> changed;  // of each parameter whether it has; empty: all
  };
  // `memory`: where source and packed lie.
  void Pack(const kernels::OpTable& ops, const kernels::Memory& memory, const ParameterSource& source, float* packed,
            const Share& share) const;

 private:
  struct Matrix {
    size_t first = 0, keys = 0, squared = 0, first_key_row = 0, squared_rows = 0;
    bool in_place = false;
  };
  bool IsPacked(size_t parameter) const {
    return parameters_[parameter].shape == ParameterShape::kMatrix && !matrices_[parameter].in_place;
  }
  void PackMatrix(const kernels::OpTable& ops, const ParameterSource& source, float* packed, size_t parameter) const;
  void PackSquares(const kernels::OpTable& ops, const float* w_NK, float* packed, size_t parameter) const;
  struct TableRows {
    const float* w;  // the first of them
    size_t first, n;
  };
  const float* UnitRows(const kernels::OpTable& ops, const TableRows& rows, float* packed,
                        std::vector<float>& unit) const;
  void PackHeadTile(const kernels::OpTable& ops, const kernels::Memory& memory, const ParameterSource& source,
                    float* packed, size_t first) const;
  size_t num_tiles() const;

  std::vector<ParameterSpec> parameters_;
  std::vector<Matrix> matrices_;  // of each parameter
  size_t size_ = 0, tile_stride_ = 0;
  std::optional<size_t> head_parameter_;
  HeadPacking head_ = HeadPacking::kNone;
  std::optional<WidenedRoom> widened_;
  std::optional<size_t> item_variance_, parameter_variance_;
  Constants constants_;
  size_t constants_offset_ = 0, width_ = 0;
  size_t unit_rows_ = 0, unit_rows_size_ = 0;  // the size is 0 where they are not kept
};

// A view for layers. Nothing is owned; what it points to must outlive the calls.
struct Weights {
  const kernels::OpTable* ops;
  const PackPlan* plan;
  const std::vector<ParameterSpec>* parameters;
  ParameterSource source;
  const float* packed;
  const float* variance_P = nullptr;  // Re-Attention: of each parameter, in the host's memory

  const float* at(size_t parameter) const { return source.floats(parameter, (*parameters)[parameter]); }
  const kernels::Half* halves_at(size_t parameter) const { return source.halves(parameter); }
  // Where products read it as it is stored; null data where it is packed.
  kernels::PanelMatrix panels_at(size_t parameter) const {
    return plan->is_in_place(parameter) ? source.panels(parameter) : kernels::PanelMatrix();
  }
  const float* at(const std::optional<size_t>& parameter) const { return parameter ? at(*parameter) : nullptr; }
  const float* packed_at(size_t parameter) const { return packed + plan->offset(parameter); }
  const float* packed_keys_at(size_t parameter) const { return packed + plan->keys_offset(parameter); }
  // Re-Attention: variance of each entry of a parameter (0 of one that is absent), of each entry of an item's row;
  // packed squares of a matrix.
  float variance(const std::optional<size_t>& parameter) const { return parameter ? variance_P[*parameter] : 0.0f; }
  const float* item_variances() const { return at(*plan->item_variance_parameter()); }
  const float* constants() const { return packed + plan->constants_offset(); }
  const float* rotary_cos(size_t block) const { return constants() + plan->constants().rotary_cos(block); }
  const float* rotary_sin(size_t block) const { return constants() + plan->constants().rotary_sin(block); }
  // Null where attention has none.
  const float* slopes(size_t block) const {
    return plan->constants().has_slopes(block) ? constants() + plan->constants().slopes(block) : nullptr;
  }
  // Null where the head is none of cosines, and no encoder with results of unit length.
  const float* unit_gain() const {
    return plan->constants().has_gains() ? constants() + plan->constants().unit_gain() : nullptr;
  }
  const float* head_gain() const {
    return plan->constants().has_gains() ? constants() + plan->constants().head_gain() : nullptr;
  }
  const float* unit_rows() const { return packed + plan->unit_rows_offset(); }
  const float* unit_rstd() const { return packed + plan->unit_rstd_offset(); }
  const float* packed_squares_at(size_t parameter) const { return packed + plan->squared_offset(parameter); }
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_WEIGHTS_H_
