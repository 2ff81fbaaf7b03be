// The weights as layers see them: parameters in their place, and packed copies of the matrices that are multiplied.
//
// Weights are packed once per step (training) or once per load (inference); all records and workers share them. The
// head's table is packed in tiles of kHeadTile items. Each tile is packed by itself, so that it can be used alone. A
// float16 table that is only scored is not packed.
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
// A device computes this many items of a head at once: packed tiles side by side. A launch costs it more than the
// memory, of 16 KB for a row.
inline constexpr size_t kDeviceHeadTile = 16 * kHeadTile;

// A cosine head adds this to the mean square of a row before the square root, for rows that are zero.
inline constexpr float kUnitEpsilon = 1e-8f;

// Where to read parameters: from one flat buffer laid out by ListParameters, or each where its file has it. Owns
// nothing.
class ParameterSource {
 public:
  ParameterSource(const float* flat) : flat_(flat) {}
  explicit ParameterSource(std::span<const StoredTensor> tensors) : tensors_(tensors.data()) {}

  // Each parameter has one of three forms. A trained parameter is float32; others may be float16 or panels.
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

// Rows of a stacked query-key-value matrix before the first key; 0 for every other parameter. Rows from there on are
// packed separately: their product may go to a key/value cache, and Re-Attention needs the squares of these rows only.
size_t FirstKeyRow(const Architecture& architecture, const ParameterSpec& parameter);
// Re-Attention: the number of rows from FirstKeyRow on whose squares are needed. Those of the last block's values are
// not: nobody reads their variances.
size_t SquaredRows(const Architecture& architecture, const ParameterSpec& parameter);

// kTiles: the head's table is packed tile by tile. kNone: it is not packed, either because a sampled softmax never
// loops over the catalogue, or because it is float16 or panels: scored directly, and converted to float32 tile by tile
// in training.
enum class HeadPacking { kTiles, kNone };

// The faster packing for scoring. Float16 is packed only where packing makes it smaller (to 8-bit integers). Panels are
// packed only if rows must have unit length.
HeadPacking HeadPackingFor(const kernels::OpTable& ops, const Architecture& architecture,
                           const ParameterSource& source);

// Workspace in a worker's buffers for some rows of a matrix as floats, and for these rows packed (dequantised.h).
struct DequantisedSpace {
  Slot<float> rows, packed;
};

// The offset of each packed matrix. Made once for an architecture and an op table.
class PackPlan {
 public:
  PackPlan() = default;
  // `head` is ignored if the graph has no next-item head. `keeps_unit_rows`: keep the unit rows of a cosine head's
  // table, for a backward pass. `stored` has all parameters or the first of them; matrices that are panels there are
  // multiplied directly, not packed.
  [[gnu::cold]] PackPlan(const kernels::OpTable& ops, const Architecture& architecture,
                         HeadPacking head = HeadPacking::kTiles, bool keeps_unit_rows = false,
                         std::span<const StoredTensor> stored = {});

  size_t size() const { return size_; }                                         // in floats
  size_t offset(size_t parameter) const { return matrices_[parameter].first; }  // of a matrix, or of tile 0 of the head
  size_t keys_offset(size_t parameter) const { return matrices_[parameter].keys; }  // of the rows from FirstKeyRow on
  size_t first_key_row(size_t parameter) const { return matrices_[parameter].first_key_row; }
  bool is_in_place(size_t parameter) const { return matrices_[parameter].in_place; }
  size_t tile_stride() const { return tile_stride_; }  // floats between packed head tiles
  HeadPacking head_packing() const { return head_; }
  // Training only: workspace to convert rows to float32. nullopt in inference.
  const std::optional<DequantisedSpace>& dequantised() const { return dequantised_; }
  void WidenIn(const DequantisedSpace& room) { dequantised_ = room; }
  // The values that do not depend on the weights, and their offset.
  const Constants& constants() const { return constants_; }
  size_t constants_offset() const { return constants_offset_; }
  // A cosine head: unit rows are gain * row * rstd, an RMS norm with Constants::unit_gain.
  size_t unit_rows_offset() const { return unit_rows_; }                                 // [M, D], if they are kept
  size_t unit_rstd_offset() const { return unit_rows_ + AlignedSize(unit_rows_size_); }  // [M]
  // Re-Attention: the squares of a matrix's entries from FirstKeyRow on, packed; SquaredRows of them.
  size_t squared_offset(size_t parameter) const { return matrices_[parameter].squared; }
  // nullopt without Re-Attention.
  std::optional<size_t> item_variance_parameter() const { return item_variance_; }
  std::optional<size_t> parameter_variance_parameter() const { return parameter_variance_; }

  // Releases what packing allocated beside the buffer (OpTable::release_packed). Call it once, when `packed` is no
  // longer used.
  void Release(const kernels::OpTable& ops, float* packed) const;

  // One thread's share of packing: `part` of `num_parts`, limited to the parameters that have changed.
  struct Share {
    size_t part, num_parts;
    std::span<const uint8_t> changed;  // for each parameter, true if it has changed; empty: all have
  };
  // `memory` holds source and packed.
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
    const float* w;  // the first row
    size_t first, n;
  };
  const float* UnitRows(const kernels::OpTable& ops, const TableRows& rows, float* packed,
                        std::vector<float>& unit) const;
  void PackHeadTile(const kernels::OpTable& ops, const kernels::Memory& memory, const ParameterSource& source,
                    float* packed, size_t first) const;
  size_t num_tiles() const;

  std::vector<ParameterSpec> parameters_;
  std::vector<Matrix> matrices_;  // one for each parameter
  size_t size_ = 0, tile_stride_ = 0;
  std::optional<size_t> head_parameter_;
  HeadPacking head_ = HeadPacking::kNone;
  std::optional<DequantisedSpace> dequantised_;
  std::optional<size_t> item_variance_, parameter_variance_;
  Constants constants_;
  size_t constants_offset_ = 0, width_ = 0;
  size_t unit_rows_ = 0, unit_rows_size_ = 0;  // the size is 0 if they are not kept
};

// The view of weights that layers use. Owns nothing; its memory must outlive the calls.
struct Weights {
  const kernels::OpTable* ops;
  const PackPlan* plan;
  const std::vector<ParameterSpec>* parameters;
  ParameterSource source;
  const float* packed;
  const float* variance_P = nullptr;  // Re-Attention: the variance of each parameter, in host memory

  const float* at(size_t parameter) const { return source.floats(parameter, (*parameters)[parameter]); }
  const kernels::Half* halves_at(size_t parameter) const { return source.halves(parameter); }
  // The matrix as it is stored, for products that read it directly; null data if it is packed.
  kernels::PanelMatrix panels_at(size_t parameter) const {
    return plan->is_in_place(parameter) ? source.panels(parameter) : kernels::PanelMatrix();
  }
  const float* at(const std::optional<size_t>& parameter) const { return parameter ? at(*parameter) : nullptr; }
  const float* packed_at(size_t parameter) const { return packed + plan->offset(parameter); }
  const float* packed_keys_at(size_t parameter) const { return packed + plan->keys_offset(parameter); }
  // Re-Attention: the variance of each entry of a parameter (0 if it is absent); of each entry of an item's row; and
  // the packed squares of a matrix.
  float variance(const std::optional<size_t>& parameter) const { return parameter ? variance_P[*parameter] : 0.0f; }
  const float* item_variances() const { return at(*plan->item_variance_parameter()); }
  const float* constants() const { return packed + plan->constants_offset(); }
  const float* rotary_cos(size_t block) const { return constants() + plan->constants().rotary_cos(block); }
  const float* rotary_sin(size_t block) const { return constants() + plan->constants().rotary_sin(block); }
  // Null if the block's attention has no slopes.
  const float* slopes(size_t block) const {
    return plan->constants().has_slopes(block) ? constants() + plan->constants().slopes(block) : nullptr;
  }
  // Null unless the head is a cosine head or the encoder's results have unit length.
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
