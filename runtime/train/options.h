// The options of a training run, as data. Its privacy cost follows from them: privacy_plan.h.
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
#include "runtime/layers/graph.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/method_options.h"
#include "runtime/train/optimizer.h"

namespace wisp {

enum class Method { kOrdinary, kPhantom, kRgp, kFest, kAdaFest, kAdaFestPlus, kDpFp };
// Names used in recipes and on the command line. DP-FP has commands of its own.
inline constexpr std::pair<const char*, Method> kMethodNames[] = {
    {"ordinary", Method::kOrdinary}, {"phantom", Method::kPhantom}, {"rgp", Method::kRgp},
    {"fest", Method::kFest},         {"adafest", Method::kAdaFest}, {"adafest+", Method::kAdaFestPlus}};
const char* GetName(Method method);
// True for methods whose trained rows of the item table are chosen before the first step: FEST, AdaFEST+.
bool NamesRows(Method method);
bool IsAdaptive(Method method);  // selects rows of the item table at every step: AdaFEST, AdaFEST+
bool IsSparse(Method method);    // trains only some rows of the item table: FEST and the adaptive methods
// Lists the names of methods for a sentence: "fest, adafest and adafest+" with IsSparse.
std::string ListMethods(bool (*listed)(Method), const char* before_last = " and ");

// kPoisson: every record enters every step independently. kShuffled: every record once an epoch, in a new order each
// time; not under DP. The next two cut a run into epochs of as many steps as B goes into N, and give each record a step
// of the epoch, independently of the others. kAllocation: anew for each epoch, which amplifies privacy about as much as
// kPoisson, and no record is left out. kCyclic: once for the whole run, which amplifies nothing; for correlated noise.
enum class Sampling { kPoisson, kShuffled, kAllocation, kCyclic };
// Names used in recipes and in a model's provenance.
inline constexpr std::pair<const char*, Sampling> kSamplingNames[] = {{"poisson", Sampling::kPoisson},
                                                                      {"shuffled", Sampling::kShuffled},
                                                                      {"allocation", Sampling::kAllocation},
                                                                      {"cyclic", Sampling::kCyclic}};
const char* GetName(Sampling sampling);
// The loss of a record: the mean over its positions (the only choice under DP), or their sum, so that a step averages
// over all positions of the batch.
enum class LossWeighting { kRecordMean, kPositionMean };

// How the noise multiplier changes during a run. kLearningRate: with the inverse root of the learning rate, which
// leaves the least noise in the weights at equal cost; the multiplier is that of the steps with the highest rate.
enum class NoiseSchedule { kConstant, kLearningRate };

// The options that make a run private. The caller creates them and owns the ledger.
struct PrivateTraining {
  double noise_multiplier = 0;  // of the gradients' sum, in clipping norms
  NoiseSchedule noise_schedule = NoiseSchedule::kConstant;
  // The share of a step's noise that the next step takes back (DP-lambda-CGD), 0 <= lambda < 1. Above 0 only with
  // kCyclic: for phantom training of all weights, where a run passes every record a few times.
  double noise_lambda = 0;
  double clipping_norm = 1;
  ClipKind clipping = ClipKind::kAutomatic;
  NormForm norm_form = NormForm::kAutomatic;
  privacy::Ledger* ledger = nullptr;  // must outlive the trainer; required
  std::string run;                    // names the run in the ledger; unique, or its cost is added to its namesake's
  uint32_t steps_per_charge = 1;      // steps charged at a time; what was charged is spent, used or not
  std::optional<uint64_t> reproducible_seed;  // set: noise repeats and there is NO guarantee
};

// The parameters that a run trains, of those that its method can train. kBlocks: all but tables (items or tokens,
// positions, types, outputs). kHead: the pooler and the head of classes.
enum class TrainedPart { kAll, kBlocks, kHead };

struct TrainingOptions {
  Method method = Method::kOrdinary;
  Sampling sampling = Sampling::kShuffled;  // kDpFp always samples by Poisson, whatever this says
  LossWeighting loss = LossWeighting::kRecordMean;
  uint64_t num_steps = 0;
  // Records of a step. With Poisson sampling it is the expected number B, and q = B / N.
  uint32_t expected_batch = 256;
  // N in q = B / N: a public constant of the run, never counted from private data. Private methods require it; 0 means
  // "as many as there are" otherwise.
  uint32_t num_records_public = 0;
  OptimizerOptions optimizer;
  DropoutRates dropout;
  ReAttentionOptions re_attention;  // read when the architecture has it and the method is private
  ItemFeatureOptions item_features;
  float ema_decay = 0;  // 0: no weight averaging
  // HashClasses of the labels' meaning; 0: no classifier; a checkpoint resumes only if it is equal
  uint64_t classes_hash = 0;
  // ModelFile::content_hash() of the start model, 0: none. A checkpoint resumes only with the same one.
  uint64_t base_model_hash = 0;
  // On the host: where the parameters in front of all trained ones lie in the base's file. Beside an adapter that is
  // all of the base; if blocks train, it is the base's tables. The run reads them there as they are stored and holds no
  // copy. The weights that it starts from and ends with then begin at FirstHeld. Must outlive the run. Empty: the run
  // holds all parameters.
  std::span<const StoredTensor> base = {};
  uint64_t seed = 1;  // shuffling, dropout and (unless private and secure) sampling
  // The number of workers, which decides the bits. 0: DefaultThreads(); 1 creates no thread.
  size_t num_threads = 0;
  // Records pass a worker together as long as their padded rows are at most this many. More rows take more memory and
  // change no bit. 0: 256 if the matrices take more than 1 MB, else one record at a time; for texts that are
  // classified, up to 32 records that have 256 rows together; on a device, as many records as have gradients of 32 MB
  // together.
  size_t rows_at_once = 0;
  // Keeps only the input of each block in a record's forward pass, and computes the block again in the backward pass:
  // less memory, more time (docs/memory.md). Records then pass one by one, and their gradients are formed (NormForm),
  // which is the only reason for different bits. On the host, without Re-Attention.
  bool recompute_blocks = false;
  // If nothing below a classifier's pooler trains, the pooled vector of each record (the model's width) is kept,
  // provided that all of them take at most this many bytes; else it is computed in each step. With last_blocks, what
  // enters the first of these blocks is kept up to this many bytes, and the rest is computed in each step. No bit
  // depends on it. A device keeps nothing.
  size_t cache_at_most = size_t{256} << 20;
  // where the run's records pass; weights, sums and moments lie in its memory
  kernels::Device device = kernels::BestOps();
  Executor executor;        // the app's own threads; if given, no thread is created here
  PrivateTraining privacy;  // read when method is private
  RgpOptions rgp;           // read when method is kRgp
  SparseOptions sparse;     // read when method is kFest, kAdaFest or kAdaFestPlus
  DpFpOptions dp_fp;        // read when method is kDpFp
  TrainedPart trained_part = TrainedPart::kAll;
  // For classifiers with kBlocks on the host: above 0, only this many of the last blocks train, with what stands above
  // them, or an adapter beside these blocks. All that stands below is frozen and drops nothing.
  uint32_t last_blocks = 0;
  // The number of positions to which the caller has cut all records; 0: the model's max_length. On the host, a longer
  // record would not fit the buffers.
  uint32_t cut_to = 0;
  // Sampled softmax: this many items stand for all non-targets. They are sampled anew each step from all items, without
  // looking at the data. 0: the full softmax.
  uint32_t num_negatives = 0;
};

// True if the run has a guarantee, provided that its noise does not repeat: every method but ordinary training and
// DpFpMode::kPaper.
bool IsPrivate(const TrainingOptions& options);
bool IsPaper(const TrainingOptions& options);  // DP-FP in the mode DpFpMode::kPaper
// ReleasesHead: the run makes releases for a head of classes. HasGradients: gradients move weights.
bool ReleasesHead(const TrainingOptions& options);
bool HasGradients(const TrainingOptions& options);

// The positions of the longest record that a run accepts; `cut_to` as in TrainingOptions.
uint32_t LongestRecord(const Architecture& architecture, uint32_t cut_to);

// The offset of the weights that a run holds in the flat layout of all parameters (ListParameters). Those in `base`
// come before it.
size_t FirstHeld(const std::vector<ParameterSpec>& parameters, const TrainingOptions& options);
// The places of all parameters of a run: those in `base`, and then `held`, the weights that the run holds.
std::vector<StoredTensor> LocateTensors(const std::vector<ParameterSpec>& parameters,
                                        std::span<const StoredTensor> base, const float* held);
// The number of a base's parameters that a run with these options can read where they are stored: the limit of
// TrainingOptions::base.
size_t NumReadable(const Architecture& architecture, const TrainingOptions& options);

// The options of the run's graph. Its memory follows from the architecture and the options, never from the data.
GraphOptions GraphFor(const Architecture& architecture, const TrainingOptions& options);

// Every option that decides what the next step computes, as text, against which a checkpoint is checked. `num_records`
// is left out if it is a private run's secret. Words and order are fixed by older checkpoints.
std::string RunIdentity(const TrainingOptions& options, size_t num_records, bool re_attention);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_OPTIONS_H_
