// The options that belong to one method of training each, as data.
#ifndef WISP_RUNTIME_TRAIN_METHOD_OPTIONS_H_
#define WISP_RUNTIME_TRAIN_METHOD_OPTIONS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace wisp {

// How a record's gradient norm is computed. kFormed, kGram: methods/phantom/phantom_gradients.h, which kAutomatic
// chooses from. kIntegers: methods/phantom/integer_gradients.h.
enum class NormForm { kAutomatic, kFormed, kGram, kIntegers };

// How RGP trains a group of parameters.
enum class RgpTrain {
  kFrozen,     // not trained
  kProjected,  // matrices and tables are released through carriers
  kFull,       // all coordinates are released
};

struct RgpOptions {
  uint32_t rank = 4;
  uint32_t power_iterations = 1;
  uint32_t warmup_steps = 0;  // T_warm: up to this step the carriers follow W, then W - W_0 (the change by training)
  RgpTrain item_tables = RgpTrain::kProjected;  // item_embedding, output_embedding
  RgpTrain positions = RgpTrain::kProjected;
  RgpTrain matrices = RgpTrain::kProjected;
  RgpTrain vectors = RgpTrain::kFull;  // kFrozen or kFull
};

// Methods that release rows of the item table: DP-FEST, DP-AdaFEST and DP-AdaFEST+ (docs/algorithms.md, section 5).
struct SparseOptions {
  // DP-FEST and DP-AdaFEST+: the only rows that train, ascending, chosen from public figures or from a release that was
  // charged (LargestRows of PrivatePopularity's histogram). Read only while the trainer is constructed.
  std::span<const int32_t> rows = {};
  // DP-AdaFEST's contribution map. Its noise is `map_noise_ratio` times the gradient's (sigma1 / sigma2).
  double map_clipping_norm = 1;
  double map_threshold = 5;
  double map_noise_ratio = 1;
};

// DP-FP of a head of classes (docs/algorithms.md, section 6, with its errata): a noised forward pass, in three modes.
//
//   kAggregate  (default) everything below the head is frozen. Each of a step's m micro-batches, a Poisson draw with
//               p = B / (m N), releases one noised [num_classes, D] matrix (methods/dp_fp/head_releases.h), and the
//               head is made of the releases. Labels are protected. One mechanism: Poisson-subsampled Gaussian, q = p,
//               m releases a step.
//   kClipped    kAggregate for the head. After that, everything below the head takes one step along the clipped and
//               noised record gradients of a draw of its own, q = B / N, as in PrivateTraining. Both mechanisms are
//               charged.
//   kPaper      as the paper has it: every record's representation is clipped and noised, the optimizer moves
//               everything. For comparison. It has NO guarantee (ExplainPaperMode says why), so it takes no
//               ledger, has no mechanisms and no epsilon, and is never chosen by default.
//
// In the private modes the head reads clip(h), at inference too: it was fitted to that, and clipping one's own input
// does not access the data. In kPaper, inference neither clips nor adds noise, as in the paper.
enum class DpFpMode { kAggregate, kClipped, kPaper };

struct DpFpOptions {
  DpFpMode mode = DpFpMode::kAggregate;
  uint32_t micro_batches = 32;  // m
  double clipping_norm = 1;     // C, the norm of a representation
  double noise_multiplier = 0;  // per release; kPaper: sigma / C of a record's representation
  double release_decay = 1;     // HeadReleaseOptions has the next three too
  double effective_dimensions = 1;
  std::vector<double> class_prior;
};

// Public numbers of the items, along which rows of item tables move besides their own steps: items that share a feature
// learn from each other's gradients (Optimizer::UpdateAlong). Reads released gradients only, so nothing is charged. For
// Adam, ordinary or phantom, of all weights, with a softmax over all items, on the host.
struct ItemFeatureOptions {
  // [num_items, count], a row for each item. Must outlive the trainer. Empty: rows move by their own steps only.
  std::span<const float> values = {};
  uint32_t count = 0;
  float rate = 1;  // of the learning rate
};

struct ReAttentionOptions {
  enum class Source {
    kOptimizer,  // estimated from the optimizer's moments (methods/re_attention/noise_variance.h)
    kPrinted,    // the paper's constant; needs item_frequencies
  } source = Source::kOptimizer;
  double scale = 1;  // factor on the deviations: 10 multiplies the variance by 100
  // kPrinted: the probability that a record contains each item, public or released under DP. Read only while the
  // trainer is constructed.
  std::span<const float> item_frequencies = {};
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_METHOD_OPTIONS_H_
