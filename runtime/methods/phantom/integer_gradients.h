// DP-SGD record gradients by products of integers, without forming any record's gradient: for wide weights, short
// records.
//
// A record's factors dy and x of a weight become integers A and B that include the record's clip factor
// (docs/algorithms.md, "Exact sums without forming records' gradients"). The record adds A^T B, in steps of the sum's
// grid. Its norm follows from products of its own rows: in float before clipping, in integers before anything is added.
// One product for each weight adds all records that pass together. Table rows and vectors are rounded to the grid as in
// the other methods.
//
//   IntegerGradients gradients(device, setup, clip, sum);
//   gradients.TakeOptions(options_B);  gradients.BeginRecords(batch);
//   graph.Backward(context, batch, gradients);
//   std::span<const RecordOutcome> outcomes = gradients.FinishRecords();
//
// A record's contribution depends only on its own factors and seed, not on the records that pass with it.
#ifndef WISP_RUNTIME_METHODS_PHANTOM_INTEGER_GRADIENTS_H_
#define WISP_RUNTIME_METHODS_PHANTOM_INTEGER_GRADIENTS_H_

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
    const TrainedSet& trained;     // the sum covers these parameters
    size_t max_records, max_rows;  // of one pass
  };
  // How often a record above its bound is shrunk and rounded again before it is dropped. Each try shrinks it more than
  // the excess requires.
  static constexpr int kMostTries = 3;
  static constexpr double kShrink = 1 - 0x1p-10;

  // Works in host memory. A record that gives a parameter two factors is dropped. `device`, `sum` and what Setup refers
  // to must outlive this object. One object for each worker.
  IntegerGradients(const kernels::Device& device, const Setup& setup, const ClipRule& clip, GridGradientSum& sum);

  void TakeOptions(const kernels::RecordOptions* options_B) override { options_B_ = options_B; }
  void BeginRecords(Batch records) override;
  bool Wants(size_t parameter) const override { return trained_->contains(parameter); }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  std::span<const RecordOutcome> FinishRecords() override;

  size_t scratch_bytes() const override;
  // Returns scratch_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const Setup& setup);

 private:
  // A factor of all records, and the integers that its floats are rounded to.
  struct Product {
    OuterFactor factor;
    int16_t *a_RN, *b_RK;
    int32_t *largest_a_R, *largest_b_R;
    double *dy_squares_R, *x_squares_R;
  };
  struct Sizes {
    size_t integers = 0, numbers = 0, scratch = 0, products = 0, rows = 0, vectors = 0, widest_table = 0;
  };
  static Sizes ComputeSizes(const Setup& setup);

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
  AlignedArray<double> squares_;  // of the factors' rows
  AlignedArray<int32_t> scratch_;
  AlignedArray<float> scale_R_, other_scale_R_;
  AlignedArray<uint32_t> seed_R_, other_seed_R_;
  AlignedArray<int64_t> squares_R_;  // of the integers' rows
  std::vector<Product> products_;
  std::vector<RowsFactor> rows_;
  std::vector<VectorFactor> vectors_;
  std::vector<size_t> seen_;  // for each parameter: rows, or entries of a vector, that factors have covered
  RowGradient row_gradient_;
  std::vector<RecordOutcome> outcomes_;
  const kernels::RecordOptions* options_B_ = nullptr;
  size_t num_records_ = 0, integers_used_ = 0, rows_used_ = 0;
  bool refused_ = false;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_PHANTOM_INTEGER_GRADIENTS_H_
