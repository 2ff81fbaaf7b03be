// DP-SGD record gradients: norm, clip factor, clipped sum (Phantom Clipping: docs/algorithms.md, section 2).
//
// For each record it takes the factors of one backward pass, computes ||g_i||, and adds c_i g_i to a GradientSum. Every
// trained parameter is handled in one of two ways:
//
//   formed   dW = dy^T x is written to scratch, and its norm is taken there.
//   Gram     ||dW||^2 = <x x^T, dy dy^T>, without any memory of the weight's size. Once c_i is known, the product is
//            formed in tiles. A tied table adds 2 <g_in, g_out>, from the columns of dZ of the record's own items.
//
// Both agree up to rounding (tested). On a CPU, one record at a time passes through a core's cache, and the clipped
// gradient must be formed anyway to be added. So forming costs no extra product; the Gram way saves scratch of the
// table's size. `kAutomatic` forms unless a worker's scratch would exceed `max_formed_bytes`.
//
// A parameter that is used twice gets two factors. Formed gradients add up. The Gram way has a cross term for the tied
// table only; any other such record is dropped, like one that is not finite.
//
// With ClipRule::None() every factor is 1 and no norm is computed. For ordinary training see sum_gradients.h.
//
//   PhantomGradients gradients(graph parameters ..., sum);
//   gradients.BeginRecord(worker, record.inputs);
//   graph.Backward(context, record, gradients);
//   RecordOutcome outcome = gradients.FinishRecord(replay);
#ifndef WISP_RUNTIME_METHODS_PHANTOM_PHANTOM_GRADIENTS_H_
#define WISP_RUNTIME_METHODS_PHANTOM_PHANTOM_GRADIENTS_H_

#include <span>
#include <vector>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/clipping.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/gradients/record_gradients.h"
#include "runtime/gradients/row_gradient.h"
#include "runtime/layers/factors.h"
#include "runtime/train/method_options.h"

namespace wisp {

struct PhantomOptions {
  ClipRule clip = ClipRule::None();
  NormForm form = NormForm::kAutomatic;        // kIntegers is treated as kAutomatic
  size_t max_formed_bytes = size_t{64} << 20;  // for each worker
};

class PhantomGradients : public RecordGradients {
 public:
  // `head_parameter` is the table that gets Outer blocks; it is tied if it also gets Rows. What Setup refers to, `sum`
  // and `ops` must outlive this object. One object for each worker.
  struct Setup {
    const std::vector<ParameterSpec>& parameters;
    const TrainedSet& trained;  // the sum covers these parameters
    size_t head_parameter;
    size_t max_rows;  // positions of the longest record
    size_t worker;
    bool norms_head_rows = false;  // the head's factors have a RowNorm, so they are formed whatever the options say
  };
  PhantomGradients(const kernels::Device& device, const Setup& setup, const PhantomOptions& options, GradientSum& sum);

  void BeginRecord(std::span<const int32_t> input_ids) override;
  bool Wants(size_t parameter) const override { return entries_[parameter].way != Way::kUntrained; }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  RecordOutcome FinishRecord(HeadReplay& replay) override;

  size_t scratch_bytes() const override;
  // Returns scratch_bytes() of an object with these arguments, without making it. Allocates nothing.
  static size_t PlanBytes(const kernels::OpTable& ops, const Setup& setup, const PhantomOptions& options);

 private:
  enum class Way { kUntrained, kFormed, kGram, kRows };
  struct Entry {
    Way way = Way::kUntrained;
    size_t offset = 0;     // formed parameters: offset in scratch_
    size_t rows_slot = 0;  // parameters with Rows: index in row_gradients_
    size_t seen = 0;       // rows, or entries of a vector, that this record's factors have covered so far
    OuterFactor factor{};  // Gram way: kept until the record is finished
  };

  // The sizes of the buffers, in floats, and the parameters whose rows are gathered.
  struct Plan {
    std::vector<Entry> entries;
    std::vector<size_t> row_widths;  // D of each entry of row_gradients_
    size_t scratch = 0, block = 0, packed = 0, square = 0, cross = 0;
  };
  static Plan PlanWays(const kernels::OpTable& ops, const Setup& setup, const PhantomOptions& options);
  void Gram(const float* a, size_t ld, size_t rows, size_t width, float* out, kernels::Store store);
  void AddGram(const OuterFactor& factor);
  void GatherInputColumns(const OuterFactor& factor);
  double TableCross(const RowsFactor& factor);
  double Accumulate(HeadReplay& replay, float factor, int32_t sign);
  void AccumulateGramBlock(const OuterFactor& factor);
  double SquaredNorm();

  const kernels::OpTable* ops_;
  const std::vector<ParameterSpec>* parameters_;
  const TrainedSet* trained_;
  ClipRule clip_;
  GradientSum* sum_;
  size_t head_, worker_, max_rows_, d_;
  std::vector<Entry> entries_;
  std::vector<RowGradient> row_gradients_;
  AlignedArray<float> scratch_;                       // formed gradients
  AlignedArray<float> block_;                         // Gram: one tile of dW
  AlignedArray<float> packed_;                        // Gram: packed operand of x x^T
  AlignedArray<float> gram_x_, gram_dy_, head_gram_;  // [R, R]; head_gram_ sums over the head's blocks
  AlignedArray<float> columns_, cross_;               // columns of dZ for the record's items [R, R]; columns^T h [R, D]
  std::span<const int32_t> input_ids_;
  double gram_squares_ = 0, cross_squares_ = 0;
  bool used_twice_ = false;    // a Gram parameter got two factors, whose cross term is not computed here
  OuterFactor head_factor_{};  // the last block of the head; all its blocks share x
  bool head_seen_ = false;

  // While the head's factors are replayed:
  bool replaying_ = false;
  float replay_factor_ = 0;
  int32_t replay_sign_ = 1;
  double replay_squares_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_PHANTOM_PHANTOM_GRADIENTS_H_
