// Input embedding: scale * table[item] + position + type, a norm where there is one, then dropout.
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

  // ids [rows], < 0 for padding -> y [rows, D].
  void Forward(const RecordContext& context, const int32_t* ids, float* y) const;

  // Whether the sink wants a factor of it.
  bool Wanted(const FactorSink& sink) const;
  // dy [rows, D]; emits Rows for the table, for positions and types, and the norm's. ids and dy must outlive the
  // record.
  void Backward(const RecordContext& context, const int32_t* ids, const float* dy, FactorSink& sink) const;

  // Re-Attention: var_y [rows, D], the same in all of a row: scale^2 * the item's + the positions' variance; 0 for
  // padding.
  void Variance(const RecordContext& context, const int32_t* ids, float* var_y) const;

 private:
  // The row of the position table that belongs to position 0 of a record of so many.
  size_t FirstPosition(size_t rows) const { return align_ == PositionAlignment::kEnd ? max_length_ - rows : 0; }

  const int32_t* PositionIds(const RecordContext& context, const int32_t* ids) const;
  void LookUpTogether(const RecordContext& context, const int32_t* ids, float* y) const;
  void LookUpEach(const RecordContext& context, const int32_t* ids, bool halves, float* y) const;
  void AddTypes(const RecordContext& context, float* y) const;
  // The gradient before the norm, from that behind it.
  const float* NormBackward(const RecordContext& context, const float* dy, FactorSink& sink) const;

  size_t table_;
  std::optional<size_t> positions_, types_;
  size_t d_, max_length_;
  float scale_;
  PositionAlignment align_;
  Dropout dropout_;
  Slot<float> dx_;
  std::optional<NormLayer> norm_;
  Slot<float> sum_, dsum_;  // before the norm
  Slot<float> of_types_;    // [rows, D]
  bool position_ids_is_forward_;
  Slot<int32_t> position_ids_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_EMBEDDING_H_
