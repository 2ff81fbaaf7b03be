// A low-rank adapter beside a product (AdapterSpec): y += s (x A^T) B^T, forward and backward.
#ifndef WISP_RUNTIME_LAYERS_ADAPTER_H_
#define WISP_RUNTIME_LAYERS_ADAPTER_H_

#include <span>
#include <vector>

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

// The indices of an adapter's parameters, and its scale s.
struct AdapterParameters {
  size_t down, up;
  float scale;
};

class Adapter {
 public:
  // `first_key_row` is FirstKeyRow of the matrix that is adapted.
  [[gnu::cold]] Adapter(const std::vector<ParameterSpec>& parameters, const AdapterParameters& which,
                        size_t first_key_row, BufferPlan& plan);

  // Computes s x A^T for `rows` rows of x. Call it before the products below. Backward reads the result.
  void Down(const RecordContext& context, const float* x, size_t rows) const;
  // Add (s x A^T) B^T to the outputs: to those before the first key row, and to those from it on. Rows of y are `ldy`
  // apart. UpQueries computes only `rows`; y points to the first of them.
  void UpQueries(const RecordContext& context, float* y, size_t ldy, const RowRange& rows) const;
  void UpKeys(const RecordContext& context, float* y, size_t ldy, size_t rows) const;
  // Emits the factors of both matrices and adds to dx. x and dy must stay unchanged until the record is finished.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, FactorSink& sink) const;

 private:
  AdapterParameters which_;
  size_t n_, k_, rank_, first_key_row_;
  Slot<float> down_, ddown_;
};

// Merges the adapter into the weights. Returns weights for WithoutAdapter(architecture), which give the same scores up
// to rounding.
std::vector<float> MergedWeights(const Architecture& architecture, std::span<const float> weights);

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_ADAPTER_H_
