// Input embedding: scale * table[item] + position + type; then a norm, if there is one; then dropout.
#ifndef WISP_RUNTIME_LAYERS_EMBEDDING_H_
#define WISP_RUNTIME_LAYERS_EMBEDDING_H_

#include <optional>

#include "runtime/layers/context.h"
#include "runtime/layers/dropout.h"
#include "runtime/layers/factors.h"
#include "runtime/layers/norm.h"

namespace wisp {

class Embedding {
 public:
  Embedding(const Architecture& architecture, const std::vector<ParameterSpec>& parameters, BufferPlan& plan);

  // y [rows, D] for ids [rows]; an id < 0 is padding.
  void Forward(const RecordContext& context, const int32_t* ids, float* y) const;

  // True if the sink wants a factor of this layer.
  bool Wanted(const FactorSink& sink) const;
  // Takes dy [rows, D]. Emits Rows for the item table, positions and types, and the norm's factors. ids and dy must
  // stay valid until the record is finished.
  void Backward(const RecordContext& context, const int32_t* ids, const float* dy, FactorSink& sink) const;

  // Re-Attention: var_y [rows, D], one value for all entries of a row: scale^2 * the item's variance + the position
  // table's. 0 for padding.
  void Variance(const RecordContext& context, const int32_t* ids, float* var_y) const;

 private:
  // The row of the position table for position 0 of a record with `rows` rows.
  size_t FirstPosition(size_t rows) const { return align_ == PositionAlignment::kEnd ? max_length_ - rows : 0; }

  const int32_t* PositionIds(const RecordContext& context, const int32_t* ids) const;
  void LookUpTogether(const RecordContext& context, const int32_t* ids, float* y) const;
  void LookUpEach(const RecordContext& context, const int32_t* ids, bool halves, float* y) const;
  void AddTypes(const RecordContext& context, float* y) const;
  // The gradient before the norm, computed from that after it.
  const float* NormBackward(const RecordContext& context, const float* dy, FactorSink& sink) const;

  size_t table_;
  std::optional<size_t> positions_, types_;
  size_t d_, max_length_;
  float scale_;
  PositionAlignment align_;
  Dropout dropout_;
  Slot<float> dx_;
  std::optional<NormLayer> norm_;
  Slot<float> sum_, dsum_;  // input of the norm, and its gradient
  Slot<float> of_types_;    // [rows, D], the rows of the type table
  bool position_ids_is_forward_;
  Slot<int32_t> position_ids_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_EMBEDDING_H_
