// What a training run is asked to do, as data. What it costs follows from it: privacy_plan.h.
#ifndef WISP_RUNTIME_TRAIN_OPTIONS_H_
#define WISP_RUNTIME_TRAIN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "runtime/core/threads.h"
#include "runtime/gradients/clipping.h"
#include "runtime/gradients/phantom_gradients.h"
#include "runtime/gradients/rgp_carriers.h"
#include "runtime/layers/graph.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/noise_variance.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/sparse_options.h"

namespace wisp {

enum class Method { kOrdinary, kPhantom, kRgp, kFest, kAdaFest, kAdaFestPlus, kDpFp };
// As recipes and the program write those that train by gradients alone.
inline constexpr std::pair<const char*, Method> kMethodNames[] = {
    {"ordinary", Method::kOrdinary}, {"phantom", Method::kPhantom}, {"rgp", Method::kRgp},
    {"fest", Method::kFest},         {"adafest", Method::kAdaFest}, {"adafest+", Method::kAdaFestPlus}};
const char* NameOf(Method method);
// The rows of the item table that train are chosen before the first step: FEST, AdaFEST+.
bool NamesRows(Method method);
bool IsAdaptive(Method method);  // selects rows of the item table step by step: AdaFEST, AdaFEST+
bool IsSparse(Method method);    // only some rows of the item table are trained: FEST and the adaptive ones

enum class Sampling { kPoisson, kShuffled };
// What a record's loss is: the mean over its positions (the only choice under DP), or their sum, so that a step
// averages over all positions of the batch.
enum class LossWeighting { kRecordMean, kPositionMean };

// Everything that makes a run private. Created by the caller, who owns the ledger.
struct PrivateTraining {
  double noise_multiplier = 0;  // of the gradients
  double clipping_norm = 1;
  ClipKind clipping = ClipKind::kAutomatic;
  NormForm norm_form = NormForm::kAutomatic;
  privacy::Ledger* ledger = nullptr;  // must outlive the trainer; required
  std::string run;                    // names the run in the ledger; unique, or its cost is added to its namesake's
  // Whose records the run reads; another than kAll: of a ledger that divides them, and the job takes those alone.
  privacy::RecordPart part = privacy::RecordPart::kAll;
  uint32_t steps_per_charge = 1;              // steps charged at a time; what was charged is spent, used or not
  std::optional<uint64_t> reproducible_seed;  // set: noise repeats and there is NO guarantee
};

// DP-FP of a head of classes (docs/algorithms.md, section 6, with its errata): a noised forward pass, in three modes.
//
//   kAggregate  (default) everything below the head is frozen. Each of a step's m micro-batches, a Poisson draw with
//               p = B / (m N), releases one noised [num_classes, D] matrix (head_releases.h), and the head is made of
//               the releases. Labels are protected. One mechanism: Poisson-subsampled Gaussian, q = p, m releases a
//               step.
//   kClipped    the same for the head; after it everything below takes one step along the clipped and noised record
//               gradients of a draw of its own, q = B / N, as PrivateTraining says. Both mechanisms are charged.
//   kPaper      as the paper prints it: every record's representation is clipped and noised, the optimizer moves
//               everything. For comparison. It has NO guarantee (WhyPaperHasNoGuarantee says why), so it takes no
//               ledger, has no mechanisms and no epsilon, and is never chosen by default.
//
// The head reads clip(h) in the private modes, at inference too: that is what it was fitted to, and clipping one's own
// input is no access to the data. In kPaper inference neither clips nor noises, as printed.
enum class DpFpMode { kAggregate, kClipped, kPaper };

struct DpFpOptions {
  DpFpMode mode = DpFpMode::kAggregate;
  uint32_t micro_batches = 32;      // m
  double clipping_norm = 1;         // C: of a representation
  double noise_multiplier = 0;      // of a release; kPaper: sigma / C of a record's representation
  double release_decay = 1;         // as HeadReleaseOptions
  double effective_dimensions = 1;  // likewise
  std::vector<double> class_prior;  // likewise
};

// Which parameters a run trains, of those that can be. kBlocks: all but tables (items or tokens, positions, types,
// outputs). kHead: the pooler and the head of classes.
enum class TrainedPart { kAll, kBlocks, kHead };

struct TrainingOptions {
  Method method = Method::kOrdinary;
  Sampling sampling = Sampling::kShuffled;  // kDpFp: kPoisson, whatever stands here
  LossWeighting loss = LossWeighting::kRecordMean;
  uint64_t num_steps = 0;
  // Records; with Poisson sampling the expectation, q = expected_batch / num_records.
  uint32_t expected_batch = 256;
  // N in q = B / N: a public constant of the run, never counted from private data. Private methods require it; 0 means
  // "as many as there are" otherwise.
  uint32_t num_records_public = 0;
  OptimizerOptions optimizer;
  DropoutRates dropout;
  ReAttentionOptions re_attention;  // read when the architecture has it and the method is private
  float ema_decay = 0;              // 0: no weight averaging
  uint64_t classes_hash = 0;        // of what labels mean (HashOfClasses), 0: no classifier; as base_model_hash
  // ModelFile::content_hash() of the start, 0: none; a checkpoint is gone on with from the same only.
  uint64_t base_model_hash = 0;
  // On the host: where the parameters that stand before all that trains lie, in the file of the base: all of it beside
  // an adapter, its tables where blocks train. The run reads them there, as they are stored, and holds none of them:
  // the weights that it starts from and ends with begin at FirstHeld. Must outlive the run. Empty: it holds all.
  std::span<const StoredTensor> base = {};
  uint64_t seed = 1;  // shuffling, dropout and (unless private and secure) sampling
  // 0: DefaultThreads(). Workers, whose number decides the bits; 1 creates no thread.
  size_t num_threads = 0;
  // Records pass a worker together while the longest would have so many rows: more take more memory, and no bit
  // changes. 0: 256 where the matrices take more than 1 MB, else one record; of texts that are classified up to 32 that
  // have 256 rows together; on a device as many records as have gradients of 32 MB together.
  size_t rows_at_once = 0;
  // Of each block its input alone is kept in a record's forward pass, and the block is computed again in the backward
  // pass: less memory, more time (docs/memory.md). Records pass one by one, and their gradients are formed (NormForm).
  // On the host, without Re-Attention. No bit changes but by that form.
  bool recompute_blocks = false;
  // Where nothing below a classifier's pooler trains, what is pooled of each record is kept, a vector of the model's
  // width, if all of them take no more bytes than this; else it is computed in each step. No bit depends on it. On a
  // device nothing is kept.
  size_t cache_at_most = size_t{256} << 20;
  kernels::Device device = kernels::BestOps();  // where the run's records pass; its weights, sums and moments lie there
  Executor executor;                            // the app's own threads; when given, none are created here
  PrivateTraining privacy;                      // read when method is private
  RgpOptions rgp;                               // read when method is kRgp
  SparseOptions sparse;                         // read when method is kFest, kAdaFest or kAdaFestPlus
  DpFpOptions dp_fp;                            // read when method is kDpFp
  TrainedPart trained_part = TrainedPart::kAll;
  // What records were cut to by whoever made them; 0: to nothing but the model's max_length. On the host there is room
  // for no longer ones.
  uint32_t cut_to = 0;
  // Sampled softmax: this many items, drawn anew each step from all of them without looking at the data, stand for all
  // others. 0: the full softmax.
  uint32_t num_negatives = 0;
};

// Whether the run has a guarantee, if its noise does not repeat: every method but ordinary training and DP-FP as its
// paper prints it.
bool IsPrivate(const TrainingOptions& options);
bool IsPaper(const TrainingOptions& options);  // DP-FP as its paper prints it
// Whether there are releases for a head of classes; whether gradients move weights.
bool ReleasesHead(const TrainingOptions& options);
bool HasGradients(const TrainingOptions& options);

// Positions of the longest record that a run takes which cuts records to so many, 0 for none.
uint32_t LongestRecord(const Architecture& architecture, uint32_t cut_to);

// Where the weights that a run holds begin in the flat layout of all (ParametersOf): behind those of `base`.
size_t FirstHeld(const std::vector<ParameterSpec>& parameters, const TrainingOptions& options);
// Where all of a run's parameters lie: `base`, and behind it `held`, the weights that the run holds.
std::vector<StoredTensor> TensorsOf(const std::vector<ParameterSpec>& parameters, std::span<const StoredTensor> base,
                                    const float* held);
// How many parameters of a base a run of these can read where they are stored: TrainingOptions::base at most.
size_t NumReadable(const Architecture& architecture, const TrainingOptions& options);

// What the run's graph is made with. Its room follows from the architecture and the options, never from the data.
GraphOptions GraphOf(const Architecture& architecture, const TrainingOptions& options);

// Every option that decides what the next step computes, as text: what a checkpoint is held against. `num_records` is
// left out where it is a private run's secret. Words and order are those of older checkpoints.
std::string RunIdentity(const TrainingOptions& options, size_t num_records, bool re_attention);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_OPTIONS_H_
