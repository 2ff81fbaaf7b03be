// A loaded recommender, ready to score. It maps the file, packs weights once, and keeps one set of buffers.
//
//   WISP_ASSIGN_OR_RETURN(auto session, Session::Open("model.wisp"));
//   WISP_ASSIGN_OR_RETURN(auto top, session->Recommend(history, {.count = 10}));
//
// A session caches keys and values of the last history. A history that begins like it, such as the same one with a new
// event, costs only its new items. This holds up to max_length items, for models that count positions from the start;
// otherwise everything is computed again.
//
// A session with several threads shares the positions of one history among them, if each has enough work; scores have
// the same bits. This helps when one answer is waited for. For several histories at once, with one thread each, use
// batch_recommender.h.
//
// On a device (SessionOptions::device), weights, keys, values and scores lie in its memory. Only ids go in and the best
// items come out, with as few launches as the device allows (Memory::gather). Scores differ from the processor's by
// rounding. After the device fails, every call returns an error.
//
// Not thread-safe: use one session for each thread, or a lock. Recommend allocates only its result.
#ifndef WISP_RUNTIME_INFERENCE_SESSION_H_
#define WISP_RUNTIME_INFERENCE_SESSION_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/served_list.h"
#include "runtime/inference/device_wing.h"
#include "runtime/layers/model_view.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/model/history_window.h"
#include "runtime/model/model_file.h"

namespace wisp {

enum class Backend {
  kSimd,     // our own kernels, the fastest set that the processor supports
  kXnnpack,  // linear layers by XNNPACK; kUnsupported if the build lacks it
  kInt8,     // linear layers with 8-bit integers: faster, a quarter of the bytes, scores slightly off
};

// This recommends after one history at a time: the session's device, or the processor if it is faster at that. A large
// GPU may take longer for one event than the processor, and is faster for many histories together.
enum class OneHistory { kOnDevice, kWhereFaster };

struct SessionOptions {
  Backend backend = Backend::kSimd;
  // Threads for one history, the caller's included: at most kMaxThreads, of which Team::kMaxTasks are used. 0:
  // DefaultThreads(). The session's own threads sleep while it has nothing to do.
  size_t num_threads = 1;
  Executor executor = {};  // the app's own threads (threads.h), asked several times for each block
  // The type of cached keys and values. Float16 takes half the memory and is faster to read; scores are slightly off.
  // Not on a device, and not for models with Re-Attention.
  kernels::CacheType kept = kernels::CacheType::kFloat;
  // The device that computes (OpenDevice). Any device but the processor requires kSimd, which then means the device's
  // own kernels, and uses one thread.
  kernels::Device device = kernels::BestOps();
  // kWhereFaster: Create measures both (IsFasterForOne), and Recommend and Score run where it took less time, so their
  // scores may differ by rounding from one session to the next. The processor then uses num_threads.
  OneHistory one_history = OneHistory::kOnDevice;
};

// kUnsupported: a backend of the processor was asked for on a device of this name.
Status BackendOnDevice(const char* device);

// The ops of a backend. kUnsupported: this build or this processor lacks it. Only one thread may use XNNPACK's ops.
Result<const kernels::OpTable*> GetOps(Backend backend);

// Memory of a session beside the mapped file, whose weights are read in place. Exact except for two things: layer
// objects, less than 1 KB for each tensor of the model; and memory that XNNPACK allocates.
struct InferenceMemory {
  size_t activations = 0;  // of one history, its key/value cache included; and of each thread
  // Matrices in the order in which products read them, and the output table if it is not multiplied in place.
  size_t packed_weights = 0;
  size_t scores = 0;  // scores of every item, the excluded items, and the last history
  // On a device: weights that are copied there. If the device shares the host's memory, a plan assumes that the driver
  // shares all it can. If it does not, all weights are copied.
  size_t weights = 0;
  size_t on_device = 0;  // the part of all these that is in the device's memory
  // Allocated at the first history without a known item (session_cold_start.cc): the popularity of items, and states to
  // compute it from. A file that has counts as its bias needs no states.
  size_t cold_start = 0;
  size_t total() const { return activations + packed_weights + scores + weights; }
};

class Session {
 public:
  // Memory that a session of this model will hold; or of one with this architecture and float32 tables. Allocates
  // nothing and reads no weights.
  static Result<InferenceMemory> PlanMemory(const ModelFile& file, Backend backend = Backend::kSimd,
                                            size_t num_threads = 1);
  static Result<InferenceMemory> PlanMemory(const Architecture& architecture, Backend backend = Backend::kSimd,
                                            size_t num_threads = 1);

  // For a session with these options, also on a device. It does not check that enough memory is available; Create does.
  // With OneHistory::kWhereFaster it counts both, and a session whose device is faster holds less.
  static Result<InferenceMemory> PlanMemory(const ModelFile& file, const SessionOptions& options);

  // 8-bit weights are always verified, because NaN would silently become an 8-bit number. kInvalidArgument: too many
  // threads. kUnsupported: several threads with XNNPACK, whose packed weights only one may use; or something that the
  // device cannot do. kIo: the device has failed or has too little memory; nothing is left there.
  static Result<std::unique_ptr<Session>> Open(const std::string& path, const SessionOptions& options,
                                               Verify verify = Verify::kStructure);
  static Result<std::unique_ptr<Session>> Open(const std::string& path, Backend backend = Backend::kSimd,
                                               Verify verify = Verify::kStructure) {
    return Open(path, SessionOptions{.backend = backend}, verify);
  }
  static Result<std::unique_ptr<Session>> Create(ModelFile file, const SessionOptions& options);
  static Result<std::unique_ptr<Session>> Create(ModelFile file, Backend backend = Backend::kSimd) {
    return Create(std::move(file), SessionOptions{.backend = backend});
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns the best items after `history` (item ids, oldest first; HistoryWindow says which are read), best first,
  // ties by smaller id. Items that the model withholds (ModelLists::withheld) are never among them. There are fewer
  // than `count` if not enough items are left. kInvalidData: the score of an item that might be recommended is not
  // finite, because weights are damaged; Verify::kStructure does not detect that. kIo: the device has failed.
  Result<std::vector<Recommendation>> Recommend(std::span<const int32_t> history, const RecommendOptions& options);

  // Writes scores of all items [num_items], withheld ones included. A history that is empty or has only untrained items
  // is a cold start: the scores are then the items' popularity, as the model knows it. This is the output bias if it
  // was made of counts. Otherwise it is the mean of the scores after one item, over at most 256 items; the first such
  // call computes it and the session keeps it.
  Status Score(std::span<const int32_t> history, std::span<float> scores);

  // Writes the hidden state after `history` [width], by which items are scored. kInvalidArgument: it has none, as it is
  // a cold start.
  Status Represent(std::span<const int32_t> history, std::span<float> state);

  const ModelFile& file() const { return file_; }
  const Architecture& architecture() const { return graph_->architecture(); }
  // The model and its weights. They live as long as the session; any number of threads may use them with their own
  // buffers.
  const ModelView& graph() const { return *graph_; }
  const Weights& weights() const { return weights_.view(); }
  // kInvalidArgument: the message is about the first item that the model does not have.
  Status CheckItems(const char* what, std::span<const int32_t> items) const;
  // Makes the kInvalidData error for scores of this model that are not finite.
  Status NotFinite() const;
  // The memory that this session holds: what PlanMemory predicted.
  InferenceMemory memory() const;
  size_t planned_bytes() const { return memory().total(); }
  kernels::CacheType kept() const { return cache_.type(); }
  // True if Recommend and Score run on graph().device().
  bool one_history_on_device() const { return on_host_ == nullptr; }
  size_t num_threads() const { return helpers_ == nullptr ? 1 : helpers_->team.size(); }

 private:
  Session(ModelFile file, const kernels::Device& device, size_t num_threads, const SessionOptions& options);
  static Result<InferenceMemory> GetPlan(const Architecture& architecture, std::span<const StoredTensor> tensors,
                                         const SessionOptions& options);
  static InferenceMemory CountMemory(const ModelView& graph, std::span<const StoredTensor> tensors, size_t num_threads,
                                     kernels::CacheType kept);
  Status ChooseForOneHistory(const SessionOptions& options);
  // Computes the scores for users without history, once (session_cold_start.cc).
  Status FindPopular();
  bool is_host() const { return graph_->device().memory.is_host(); }
  size_t ItemsKept(std::span<const int32_t> window) const;
  // The part of a history that the model reads. Valid until the next call.
  std::span<const int32_t> GetWindow(std::span<const int32_t> history) {
    return HistoryWindow(history, file_.untrained(), graph_->architecture().max_length, window_);
  }
  // Scores all items after a window of a history. `scores` is where ops write.
  void ScoreTo(std::span<const int32_t> window, float* scores);
  Status ScoreOnDevice(std::span<const int32_t> window, std::span<float> scores);
  // On a device: waits until all submitted work has run, and checks that it succeeded.
  Status Arrived();
  Result<std::vector<Recommendation>> RecommendOnDevice(std::span<const int32_t> history,
                                                        const RecommendOptions& options, size_t count);

  ModelFile file_;
  std::unique_ptr<const ModelView> graph_;
  Buffers buffers_;
  KeyValueCache cache_;
  std::unique_ptr<Helpers> helpers_;        // null with one thread
  std::unique_ptr<DeviceWeights> tensors_;  // null on the host
  PackedWeights weights_;
  std::vector<int32_t> encoded_;  // items whose keys and values are in cache_, in order
  std::vector<int32_t> window_;   // for a history with untrained items: the part that is read
  std::vector<float> scores_;
  ServedList list_;
  std::vector<float> popular_;               // scores for users without history; empty until first needed
  std::unique_ptr<DeviceScores> on_device_;  // null on the host
  std::unique_ptr<Session> on_host_;         // takes Recommend and Score; null if this session does
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_SESSION_H_
