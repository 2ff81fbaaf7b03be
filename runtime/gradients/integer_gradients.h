// DP-SGD's record gradients as integers that are multiplied, never formed one by one: for wide weights, short records.
//
// A record's factors dy and x of a weight become integers A and B with the record's clip factor in them
// (docs/algorithms.md, "Exact sums without forming records' gradients"). The record adds A^T B, in steps of the sum's
// grid. Its norm follows from products of its own rows: in float before it is clipped, in integers before anything is
// added. What is added of all records that pass together is one product a weight. Rows of tables and vectors are
// rounded to the grid as ever.
//
//   IntegerGradients gradients(device, setup, clip, sum);
//   gradients.TakeOptions(options_B);  gradients.BeginRecords(batch);
//   graph.Backward(context, batch, gradients);
//   std::span<const RecordOutcome> outcomes = gradients.FinishRecords();
//
// What a record adds depends on nothing but its own factors and its seed: not on the records that pass with it.
#ifndef WISP_RUNTIME_GRADIENTS_INTEGER_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_INTEGER_GRADIENTS_H_

#include <span>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/gradients/record_gradients.h"
#include "runtime/gradients/row_gradient.h"

namespace wisp {

class IntegerGradients final : public BatchGradients {
 public:
  struct Setup {
    const std::vector<ParameterSpec>& parameters;
    const TrainedSet& trained;     // the sum spans these
    size_t max_records, max_rows;  // that pass together
  };
  // How often a record above its bound is shrunk and rounded again before it is dropped, and by how much more than
  // it was above.
  static constexpr int kMostTries = 3;
  static constexpr double kShrink = 1 - 0x1p-10;

  // In host memory. No parameter may get two factors: records of which one does are dropped. `device`, `sum` and what
  // Setup names must outlive this object. One object per worker.
  IntegerGradients(const kernels::Device& device, const Setup& setup, const ClipRule& clip, GridGradientSum& sum);

  void TakeOptions(const kernels::RecordOptions* options_B) override { options_B_ = options_B; }
  void BeginRecords(Batch records) override;
  bool Wants(size_t parameter) const override { return trained_->contains(parameter); }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  std::span<const RecordOutcome> FinishRecords() override;

  size_t scratch_bytes() const override;
  // What scratch_bytes of such an object will be; allocates none of it.
  static size_t PlanBytes(const Setup& setup);

 private:
  // A factor of all records, and the integers made of it.
  struct Product {
    OuterFactor factor;
    int16_t *a_RN, *b_RK;
    int32_t *largest_a_R, *largest_b_R;
    double *dy_squares_R, *x_squares_R;
  };
  struct Sizes {
    size_t integers = 0, numbers = 0, scratch = 0, products = 0, rows = 0, vectors = 0, widest_table = 0;
  };
  static Sizes SizesOf(const Setup& setup);

  double SquaredNorm(size_t b);
  double Quantise(size_t b, double factor);
  double AddRest(size_t b, float factor, int32_t sign);
  void Bound(size_t b);

  const kernels::OpTable* ops_;
  const std::vector<ParameterSpec>* parameters_;
  const TrainedSet* trained_;
  ClipRule clip_;
  GridGradientSum* sum_;
  Sizes sizes_;
  AlignedArray<int16_t> integers_;
  AlignedArray<int32_t> largest_;
  AlignedArray<double> squares_;  // of rows of factors
  AlignedArray<int32_t> scratch_;
  AlignedArray<float> scale_R_, other_scale_R_;
  AlignedArray<uint32_t> seed_R_, other_seed_R_;
  AlignedArray<int64_t> squares_R_;  // of rows of integers
  std::vector<Product> products_;
  std::vector<RowsFactor> rows_;
  std::vector<VectorFactor> vectors_;
  std::vector<size_t> seen_;  // by parameter: rows, or numbers of a vector, that factors have named
  RowGradient row_gradient_;
  std::vector<RecordOutcome> outcomes_;
  const kernels::RecordOptions* options_B_ = nullptr;
  size_t num_records_ = 0, integers_used_ = 0, rows_used_ = 0;
  bool refused_ = false;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_INTEGER_GRADIENTS_H_
