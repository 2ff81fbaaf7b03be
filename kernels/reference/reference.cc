// The reference as a table: the specification, in float.
#include "kernels/reference/reference.h"

namespace wisp::kernels {
namespace {

size_t PackedSize(size_t n, size_t k) { return n * k; }
size_t NoScratch(size_t, size_t, size_t) { return 0; }

}  // namespace

const OpTable& ReferenceOps() {
  static constexpr OpTable kTable = {
      .name = "reference",
      .packed_size = PackedSize,
      .pack_weights = reference::PackWeights<float>,
      .linear_forward = reference::LinearForward<float>,
      .linear_backward_input = reference::LinearBackwardInput<float>,
      .linear_backward_weight = reference::LinearBackwardWeight<float>,
      .column_sum = reference::ColumnSum<float>,
      .layer_norm_forward = reference::LayerNormForward<float>,
      .layer_norm_backward = reference::LayerNormBackward<float>,
      .attention_scratch_size = NoScratch,
      .attention_forward = reference::AttentionForward<float>,
      .attention_backward = reference::AttentionBackward<float>,
      .activation_forward = reference::ActivationForward<float>,
      .activation_backward = reference::ActivationBackward<float>,
      .scale = reference::Scale<float>,
      .apply_keep = reference::ApplyKeep<float>,
      .linear_variance = reference::LinearVariance<float>,
      .layer_norm_variance = reference::LayerNormVariance<float>,
      .activation_variance = reference::ActivationVariance<float>,
      .embed_forward = reference::EmbedForward<float>,
      .scatter_add = reference::ScatterAdd<float>,
      .softmax_stats = reference::SoftmaxStats<float>,
      .cross_entropy_gradient = reference::CrossEntropyGradient<float>,
      .dot = reference::Dot,
      .sum_squares = reference::SumSquares,
      .accumulate_on_grid = reference::AccumulateOnGrid,
      .exp_double = reference::ExpDouble,
      .adam = reference::Adam<float>,
      .sgd = reference::Sgd<float>,
      .release_packed = nullptr,
  };
  return kTable;
}

}  // namespace wisp::kernels
