// The reference as a table: the specification, in float.
#include "kernels/reference/panels.h"
#include "kernels/reference/reference.h"

namespace wisp::kernels {
namespace {

size_t PackedSize(size_t n, size_t k) { return n * k; }
size_t NoScratch(AttentionPass, size_t, size_t) { return 0; }
size_t NoTopKScratch(size_t, size_t, size_t) { return 0; }

// For an op that every vector table replaces or lacks. Beside vector tables nobody calls it, so it is null there.
template <bool kBesideVectors, class Function>
constexpr Function* Replaced(Function* op) {
  return kBesideVectors ? nullptr : op;
}

template <bool kBesideVectors, class Function>
constexpr Function* ReplacedForTraining(Function* op) {
  return Replaced<kBesideVectors>(ForTraining(op));
}

template <bool kBesideVectors>
constexpr OpTable ReferenceTable() {
  return {
      .name = "reference",
      .packed_size = Replaced<kBesideVectors>(PackedSize),
      .pack_weights = Replaced<kBesideVectors>(reference::PackWeights<float>),
      .linear_forward = Replaced<kBesideVectors>(reference::LinearForward<float>),
      .linear_backward_input = Replaced<kBesideVectors>(reference::LinearBackwardInput<float>),
      .linear_backward_weight = ReplacedForTraining<kBesideVectors>(reference::LinearBackwardWeight<float>),
      .column_sum = ReplacedForTraining<kBesideVectors>(reference::ColumnSum<float>),
      .layer_norm_forward = Replaced<kBesideVectors>(reference::LayerNormForward<float>),
      .layer_norm_backward = ReplacedForTraining<kBesideVectors>(reference::LayerNormBackward<float>),
      .rms_norm_forward = Replaced<kBesideVectors>(reference::RmsNormForward<float>),
      .rms_norm_backward = ReplacedForTraining<kBesideVectors>(reference::RmsNormBackward<float>),
      .rotary = Replaced<kBesideVectors>(reference::Rotary<float>),
      .attention_scratch_size = Replaced<kBesideVectors>(NoScratch),
      .attention_forward = Replaced<kBesideVectors>(reference::AttentionForward<float>),
      .attention_backward = ReplacedForTraining<kBesideVectors>(reference::AttentionBackward<float>),
      .cached_panel = 1,
      .keep_keys = Replaced<kBesideVectors>(reference::KeepKeys),
      .attend_cached = Replaced<kBesideVectors>(reference::AttendCached),
      .activation_forward = Replaced<kBesideVectors>(reference::ActivationForward<float>),
      .activation_backward = ReplacedForTraining<kBesideVectors>(reference::ActivationBackward<float>),
      .gated_activation_forward = Replaced<kBesideVectors>(reference::GatedActivationForward<float>),
      .gated_activation_backward = ReplacedForTraining<kBesideVectors>(reference::GatedActivationBackward<float>),
      .map = reference::Map<float>,
      .scale = Replaced<kBesideVectors>(reference::Scale<float>),
      .clear = ForTraining(reference::Clear),
      .apply_keep = Replaced<kBesideVectors>(reference::ApplyKeep<float>),
      .draw_keep = ForTraining(reference::DrawKeep),
      .linear_variance = Replaced<kBesideVectors>(reference::LinearVariance<float>),
      .layer_norm_variance = Replaced<kBesideVectors>(reference::LayerNormVariance<float>),
      .activation_variance = Replaced<kBesideVectors>(reference::ActivationVariance<float>),
      .embed_forward = Replaced<kBesideVectors>(reference::EmbedForward<float>),
      .embed_half = Replaced<kBesideVectors>(reference::EmbedHalf),
      .embed_variance = reference::EmbedVariance<float>,
      .position_ids = ForTraining(reference::PositionIds),
      .scatter_add = ReplacedForTraining<kBesideVectors>(reference::ScatterAdd<float>),
      .copy_rows = ForTraining(reference::CopyRows<float>),
      .gather_columns = ForTraining(reference::GatherColumns<float>),
      .scale_half = Replaced<kBesideVectors>(reference::ScaleHalf),
      .multiply_half = Replaced<kBesideVectors>(reference::MultiplyHalf),
      .multiply_panels = reference::MultiplyPanels,
      .embed_panels = Replaced<kBesideVectors>(reference::EmbedPanels),
      .softmax_start = ForTraining(reference::SoftmaxStart<float>),
      .softmax_stats = ReplacedForTraining<kBesideVectors>(reference::SoftmaxStats<float>),
      .cross_entropy_loss = ForTraining(reference::CrossEntropyLoss<float>),
      .cross_entropy_gradient = ReplacedForTraining<kBesideVectors>(reference::CrossEntropyGradient<float>),
      .softmax_gradient = ForTraining(reference::SoftmaxGradient<float>),
      .target_logits = ReplacedForTraining<kBesideVectors>(reference::TargetLogits<float>),
      .target_gradient = ReplacedForTraining<kBesideVectors>(reference::TargetGradient<float>),
      .class_cross_entropy = ForTraining(reference::ClassCrossEntropy<float>),
      .clip_rows = reference::ClipRows<float>,
      .clip_rows_backward = ForTraining(reference::ClipRowsBackward<float>),
      .mean_rows = reference::MeanRows<float>,
      .mean_rows_backward = ForTraining(reference::MeanRowsBackward<float>),
      .dot = ReplacedForTraining<kBesideVectors>(reference::Dot),
      .dot_rows = ReplacedForTraining<kBesideVectors>(reference::DotRows),
      .sum_squares = ReplacedForTraining<kBesideVectors>(reference::SumSquares),
      .accumulate_on_grid = ForTraining(reference::AccumulateOnGrid),
      .exp_double = ForTraining(reference::ExpDouble),
      .adam = ReplacedForTraining<kBesideVectors>(reference::Adam<float>),
      .sgd = ReplacedForTraining<kBesideVectors>(reference::Sgd<float>),
      .score_tiles = ReplacedForTraining<kBesideVectors>(reference::ScoreTiles<float>),
      .top_k_scratch_size = ForTraining(NoTopKScratch),
      .top_k = ForTraining(reference::TopK),
      .record_weight_gradients = ForTraining(reference::RecordWeightGradients<float>),
      .record_scatter_add = ForTraining(reference::RecordScatterAdd<float>),
      .add_rows = ForTraining(reference::AddRows<float>),
      .squares_of_rows = ForTraining(reference::SquaresOfRows),
      .accumulate_rows_on_grid = ForTraining(reference::AccumulateRowsOnGrid),
      .accumulate_slots_on_grid = ForTraining(reference::AccumulateSlotsOnGrid),
      .quantise_rows = ReplacedForTraining<kBesideVectors>(reference::QuantiseRows),
      .outer_squares = ReplacedForTraining<kBesideVectors>(reference::OuterSquares),
      .integer_outer_squares = ReplacedForTraining<kBesideVectors>(reference::IntegerOuterSquares),
      .accumulate_outer = ReplacedForTraining<kBesideVectors>(reference::AccumulateOuter),
      .noised_sum = ForTraining(reference::NoisedSum),
      .add_squared_moves = ForTraining(reference::AddSquaredMoves),
      .release_packed = nullptr,
  };
}

}  // namespace

const OpTable& ReferenceOps() {
  static constexpr OpTable kTable = ReferenceTable<kAlwaysVectors>();
  return kTable;
}

const OpTable& ReferenceBesideVectors() {
  static constexpr OpTable kTable = ReferenceTable<true>();
  return kTable;
}

}  // namespace wisp::kernels
