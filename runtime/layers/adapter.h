// A low-rank adapter beside a product (AdapterSpec): y += s (x A^T) B^T, forward and backward.
#ifndef WISP_RUNTIME_LAYERS_ADAPTER_H_
#define WISP_RUNTIME_LAYERS_ADAPTER_H_

#include <span>
#include <vector>

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

// Indices of parameters, and s.
struct AdapterParameters {
  size_t down, up;
  float scale;
};

class Adapter {
 public:
  // `first_key_row`: FirstKeyRow of the matrix that it stands beside.
  [[gnu::cold]] Adapter(const std::vector<ParameterSpec>& parameters, const AdapterParameters& which,
                        size_t first_key_row, BufferPlan& plan);

  // s x A^T of `rows` rows of x: before the products below, and kept for Backward.
  void Down(const RecordContext& context, const float* x, size_t rows) const;
  // Adds to the outputs before the first key row, and from it on; rows of y are `ldy` apart.
  // Of queries, `rows` alone, the first of which is y's.
  void UpQueries(const RecordContext& context, float* y, size_t ldy, const RowRange& rows) const;
  void UpKeys(const RecordContext& context, float* y, size_t ldy, size_t rows) const;
  // Emits the factors of both matrices and adds to dx. x and dy must stay as they are until the record is finished.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, FactorSink& sink) const;

 private:
  AdapterParameters which_;
  size_t n_, k_, rank_, first_key_row_;
  Slot<float> down_, ddown_;
};

// The weights of WithoutAdapter(architecture) with the adapter added to them, from those of both: what scores the same
// without it, to rounding.
std::vector<float> MergedWeights(const Architecture& architecture, std::span<const float> weights);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_ADAPTER_H_
