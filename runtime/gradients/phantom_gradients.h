// DP-SGD's record gradients: norm, clip factor, clipped sum (Phantom Clipping: docs/algorithms.md, section 2).
//
// For each record it takes the factors of one backward pass, finds ||g_i||, and adds c_i g_i to a GradientSum. Every
// trained parameter goes one of two ways:
//
//   formed   dW = dy^T x is written to a scratch and its norm taken there;
//   Gram     ||dW||^2 = <x x^T, dy dy^T>, nothing of the weight's size exists; the product comes after c_i is known,
//            in tiles. A tied table adds 2 <g_in, g_out> from the columns of dZ that the record's own items name.
//
// Both agree to rounding (tested). On a CPU, where one record at a time streams through a core's cache and the clipped
// gradient has to be formed anyway to be added, the formed way costs no extra product; the Gram way saves the scratch
// of the size of the table. So `kAutomatic` forms until the scratch of a worker would pass `max_formed_bytes`.
//
// A parameter that is used twice gets two factors. Formed gradients add up. The Gram way has no cross term but the tied
// table's: such a record is dropped, as one that is not finite.
//
// With ClipRule::None() every factor is 1 and no norm is taken. (Ordinary training: sum_gradients.h.)
//
//   PhantomGradients gradients(graph parameters ..., sum);
//   gradients.BeginRecord(worker, record.inputs);
//   graph.Backward(context, record, gradients);
//   RecordOutcome outcome = gradients.FinishRecord(replay);
#ifndef WISP_RUNTIME_GRADIENTS_PHANTOM_GRADIENTS_H_
#define WISP_RUNTIME_GRADIENTS_PHANTOM_GRADIENTS_H_

#include <span>
#include <vector>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/clipping.h"
#include "runtime/gradients/gradient_sum.h"
#include "runtime/gradients/record_gradients.h"
#include "runtime/gradients/row_gradient.h"
#include "runtime/layers/factors.h"

namespace wisp {

// kIntegers: of IntegerGradients (integer_gradients.h), and here as kAutomatic.
enum class NormForm { kAutomatic, kFormed, kGram, kIntegers };

struct PhantomOptions {
  ClipRule clip = ClipRule::None();
  NormForm form = NormForm::kAutomatic;
  size_t max_formed_bytes = size_t{64} << 20;  // per worker
};

class PhantomGradients : public RecordGradients {
 public:
  // `head_parameter` is the table that receives Outer blocks; tied when it also receives Rows. What
  // Setup names, `sum` and `ops` must outlive this object. One object per worker.
  struct Setup {
    const std::vector<ParameterSpec>& parameters;
    const TrainedSet& trained;  // the sum spans these
    size_t head_parameter;
    size_t max_rows;  // positions of the longest record
    size_t worker;
    bool norms_head_rows = false;  // the head's factors have a RowNorm, and are formed whatever the options say
  };
  PhantomGradients(const kernels::Device& device, const Setup& setup, const PhantomOptions& options, GradientSum& sum);

  void BeginRecord(std::span<const int32_t> input_ids) override;
  bool Wants(size_t parameter) const override { return entries_[parameter].way != Way::kUntrained; }
  void Outer(const OuterFactor& factor) override;
  void Rows(const RowsFactor& factor) override;
  void Vector(const VectorFactor& factor) override;
  RecordOutcome FinishRecord(HeadReplay& replay) override;

  size_t scratch_bytes() const override;
  // What scratch_bytes of such an object will be; allocates none of it.
  static size_t PlanBytes(const kernels::OpTable& ops, const Setup& setup, const PhantomOptions& options);

 private:
  enum class Way { kUntrained, kFormed, kGram, kRows };
  struct Entry {
    Way way = Way::kUntrained;
    size_t offset = 0;     // of a formed parameter in scratch_
    size_t rows_slot = 0;  // of a parameter with Rows, in row_gradients_
    size_t seen = 0;       // rows, or numbers of a vector, that this record's factors have named so far
    OuterFactor factor{};  // Gram: kept until the record is finished
  };

  // The sizes of what an object holds, in floats, and the parameters whose rows are gathered.
  struct Plan {
    std::vector<Entry> entries;
    std::vector<size_t> row_widths;  // D of each of row_gradients_
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
  AlignedArray<float> gram_x_, gram_dy_, head_gram_;  // [R, R]; head_gram_ adds up over the head's blocks
  AlignedArray<float> columns_, cross_;               // dZ's columns of the record's items [R, R]; columns^T h [R, D]
  std::span<const int32_t> input_ids_;
  double gram_squares_ = 0, cross_squares_ = 0;
  bool used_twice_ = false;    // a parameter of the Gram way got two factors, whose product nothing here takes
  OuterFactor head_factor_{};  // of the last head block: x is the same for all blocks
  bool head_seen_ = false;

  // While the head is replayed:
  bool replaying_ = false;
  float replay_factor_ = 0;
  int32_t replay_sign_ = 1;
  double replay_squares_ = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_GRADIENTS_PHANTOM_GRADIENTS_H_
