// The reference as a table: the specification, in float.
#include "kernels/reference/panels.h"
#include "kernels/reference/reference.h"

namespace wisp::kernels {
namespace {

size_t PackedSize(size_t n, size_t k) { return n * k; }
size_t NoScratch(AttentionPass, size_t, size_t) { return 0; }
size_t NoScratchOfTopK(size_t, size_t, size_t) { return 0; }

}  // namespace

const OpTable& ReferenceOps() {
  static constexpr OpTable kTable = {
      .name = "reference",
      .packed_size = PackedSize,
      .pack_weights = reference::PackWeights<float>,
      .linear_forward = reference::LinearForward<float>,
      .linear_backward_input = reference::LinearBackwardInput<float>,
      .linear_backward_weight = ForTraining(reference::LinearBackwardWeight<float>),
      .column_sum = ForTraining(reference::ColumnSum<float>),
      .layer_norm_forward = reference::LayerNormForward<float>,
      .layer_norm_backward = ForTraining(reference::LayerNormBackward<float>),
      .rms_norm_forward = reference::RmsNormForward<float>,
      .rms_norm_backward = ForTraining(reference::RmsNormBackward<float>),
      .rotary = reference::Rotary<float>,
      .attention_scratch_size = NoScratch,
      .attention_forward = reference::AttentionForward<float>,
      .attention_backward = ForTraining(reference::AttentionBackward<float>),
      .kept_panel = 1,
      .keep_keys = reference::KeepKeys,
      .attend_kept = reference::AttendKept,
      .activation_forward = reference::ActivationForward<float>,
      .activation_backward = ForTraining(reference::ActivationBackward<float>),
      .gated_activation_forward = reference::GatedActivationForward<float>,
      .gated_activation_backward = ForTraining(reference::GatedActivationBackward<float>),
      .map = reference::Map<float>,
      .scale = reference::Scale<float>,
      .clear = ForTraining(reference::Clear),
      .apply_keep = reference::ApplyKeep<float>,
      .draw_keep = ForTraining(reference::DrawKeep),
      .linear_variance = reference::LinearVariance<float>,
      .layer_norm_variance = reference::LayerNormVariance<float>,
      .activation_variance = reference::ActivationVariance<float>,
      .embed_forward = reference::EmbedForward<float>,
      .embed_half = reference::EmbedHalf,
      .embed_variance = reference::EmbedVariance<float>,
      .position_ids = ForTraining(reference::PositionIds),
      .scatter_add = ForTraining(reference::ScatterAdd<float>),
      .copy_rows = ForTraining(reference::CopyRows<float>),
      .gather_columns = ForTraining(reference::GatherColumns<float>),
      .scale_half = reference::ScaleHalf,
      .multiply_half = reference::MultiplyHalf,
      .multiply_panels = reference::MultiplyPanels,
      .embed_panels = reference::EmbedPanels,
      .softmax_start = ForTraining(reference::SoftmaxStart<float>),
      .softmax_stats = ForTraining(reference::SoftmaxStats<float>),
      .cross_entropy_loss = ForTraining(reference::CrossEntropyLoss<float>),
      .cross_entropy_gradient = ForTraining(reference::CrossEntropyGradient<float>),
      .target_logits = ForTraining(reference::TargetLogits<float>),
      .target_gradient = ForTraining(reference::TargetGradient<float>),
      .class_cross_entropy = ForTraining(reference::ClassCrossEntropy<float>),
      .clip_rows = reference::ClipRows<float>,
      .clip_rows_backward = ForTraining(reference::ClipRowsBackward<float>),
      .mean_rows = reference::MeanRows<float>,
      .mean_rows_backward = ForTraining(reference::MeanRowsBackward<float>),
      .dot = ForTraining(reference::Dot),
      .dot_rows = ForTraining(reference::DotRows),
      .sum_squares = ForTraining(reference::SumSquares),
      .accumulate_on_grid = ForTraining(reference::AccumulateOnGrid),
      .exp_double = ForTraining(reference::ExpDouble),
      .adam = ForTraining(reference::Adam<float>),
      .sgd = ForTraining(reference::Sgd<float>),
      .score_tiles = ForTraining(reference::ScoreTiles<float>),
      .top_k_scratch_size = ForTraining(NoScratchOfTopK),
      .top_k = ForTraining(reference::TopK),
      .record_weight_gradients = ForTraining(reference::RecordWeightGradients<float>),
      .record_scatter_add = ForTraining(reference::RecordScatterAdd<float>),
      .add_rows = ForTraining(reference::AddRows<float>),
      .squares_of_rows = ForTraining(reference::SquaresOfRows),
      .accumulate_rows_on_grid = ForTraining(reference::AccumulateRowsOnGrid),
      .accumulate_slots_on_grid = ForTraining(reference::AccumulateSlotsOnGrid),
      .quantise_rows = ForTraining(reference::QuantiseRows),
      .outer_squares = ForTraining(reference::OuterSquares),
      .integer_outer_squares = ForTraining(reference::IntegerOuterSquares),
      .accumulate_outer = ForTraining(reference::AccumulateOuter),
      .noised_sum = ForTraining(reference::NoisedSum),
      .add_squared_moves = ForTraining(reference::AddSquaredMoves),
      .release_packed = nullptr,
  };
  return kTable;
}

}  // namespace wisp::kernels
