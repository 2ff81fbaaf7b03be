// y = x W^T + b, forward and backward. The bias b is optional.
#ifndef WISP_RUNTIME_LAYERS_LINEAR_H_
#define WISP_RUNTIME_LAYERS_LINEAR_H_

#include <optional>

#include "runtime/layers/adapter.h"
#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

// The indices of a linear layer's parameters.
struct LinearParameters {
  size_t weight;
  std::optional<size_t> bias;
  std::optional<AdapterParameters> adapter;
};
LinearParameters FindLinear(const Architecture& architecture, const std::vector<ParameterSpec>& parameters,
                            ParameterRole weight, ParameterRole bias, uint32_t block = 0);

class Linear {
 public:
  // `first_key_row` is FirstKeyRow of the weight.
  [[gnu::cold]] Linear(const std::vector<ParameterSpec>& parameters, const LinearParameters& which, BufferPlan& plan,
                       size_t first_key_row = 0);

  // y [rows, n] from x [rows, k], both dense. `rows` may be fewer than the record has.
  void Forward(const RecordContext& context, const float* x, float* y, size_t rows) const;

  // The two parts of a stacked matrix: the queries, and the outputs from the first key row on. Rows of y are `ldy`
  // apart. Call Prepare first; both parts use the x that it was given.
  void Prepare(const RecordContext& context, const float* x, size_t rows) const;
  struct Output {
    float* y;
    size_t ldy;
  };
  // Computes only `rows` of x and y.
  void ForwardQueries(const RecordContext& context, const float* x, const Output& out, const RowRange& rows) const;
  void ForwardKeys(const RecordContext& context, const float* x, const Output& out, size_t rows) const;

  // Emits the factors of weight and bias; dx [rows, k] is assigned or added to, as `store` says. x and dy must stay
  // unchanged until the record is finished.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                FactorSink& sink) const;

  // Re-Attention: var_y [rows, n], the variance of the first `n` outputs from the first key row on. x is the mean of
  // the input, var_x its variance. n = 0: all outputs.
  void Variance(const RecordContext& context, const float* x, const float* var_x, float* var_y, size_t n = 0) const;

 private:
  // The rows of W that one product y <- x W^T + b uses: all, the queries' or the keys'. `packed` is where they are
  // packed.
  struct Part {
    const float* packed;
    size_t first, n;
  };
  void Multiply(const RecordContext& context, const Part& part, const float* x, const Output& out, size_t rows) const;
  void MultiplyDequantised(const RecordContext& context, const Part& part, const float* x, const Output& out,
                           size_t rows) const;
  void BackwardInput(const RecordContext& context, const float* dy, float* dx, kernels::Store store) const;

  LinearParameters which_;
  std::optional<Adapter> adapter_;
  size_t n_, k_, first_key_row_;
  Slot<float> dbias_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_LINEAR_H_
