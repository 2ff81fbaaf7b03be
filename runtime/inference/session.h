// A loaded model ready to score: maps the file, packs once, keeps one set of buffers. The recommender's inference side.
//
//   WISP_ASSIGN_OR_RETURN(auto session, Session::Open("model.wisp"));
//   WISP_ASSIGN_OR_RETURN(auto top, session->Recommend(history, {.count = 10}));
//
// A session remembers keys and values of the last history: one that begins alike (the same and a new event) costs only
// what is new. That holds up to max_length items, for models with positions counted from the start; otherwise all is
// computed again.
//
// A session with several threads shares the positions of one history among them, where there is enough to do for each:
// the same scores, bit for bit. Its threads are of use where one answer is waited for. Several histories at once, a
// thread for each: batch_recommender.h.
//
// On a device (SessionOptions::device) weights, keys, values and scores lie in its memory. Ids go in and the best come
// out, no more, by as few launches as the device allows (Memory::gather). Scores differ from the processor's in
// rounding. After a failure of the device every call is an error.
//
// Not thread-safe: one session per thread, or one lock. Allocates nothing in Recommend beyond what it returns.
#ifndef WISP_RUNTIME_INFERENCE_SESSION_H_
#define WISP_RUNTIME_INFERENCE_SESSION_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/served_list.h"
#include "runtime/inference/device_top.h"
#include "runtime/inference/device_weights.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/layers/recommender.h"
#include "runtime/model/history_window.h"
#include "runtime/model/model_file.h"

namespace wisp {

enum class Backend {
  kSimd,     // our own kernels, the fastest set that the processor has
  kXnnpack,  // linear layers through XNNPACK; kUnsupported where the build has none
  kInt8,     // linear layers over 8-bit integers: faster, a quarter of the bytes, scores a little off
};

struct SessionOptions {
  Backend backend = Backend::kSimd;
  // For one history, the caller's among them: at most kMaxThreads, of which Team::kMaxTasks are used; 0:
  // DefaultThreads(). Those that a session creates sleep while it has nothing to do.
  size_t num_threads = 1;
  Executor executor = {};  // an app's own threads (threads.h), asked some times for each block
  // Keys and values of the past. Halves take half the room and are read in less time; scores are slightly off. Not on a
  // device, and not of a model with Re-Attention.
  kernels::KeptType kept = kernels::KeptType::kFloat;
  // Where it computes (OpenDevice). Another than the processor takes kSimd, in whose place its own kernels stand, and
  // one thread.
  kernels::Device device = kernels::BestOps();
};

// kUnsupported: a backend is the processor's, and a device of this name was asked for.
Status BackendOnDevice(const char* device);

// The ops of a backend; kUnsupported where this build or this processor has none. Xnnpack's are for one thread.
Result<const kernels::OpTable*> OpsOf(Backend backend);

// What a session holds beside the mapped file, whose weights are read where they lie. Exact, but for the layers
// themselves: less than 1 KB for each tensor of the model; and for what XNNPACK keeps of its own.
struct InferenceMemory {
  size_t activations = 0;  // of one history, keys and values of all of it among them; and of each thread
  // Matrices, and an output table that is not multiplied by where it lies, in the order in which products read them.
  size_t packed_weights = 0;
  size_t scores = 0;  // of every item, with what is excluded and the last history
  // On a device: those of the file that are copied there. Where it shares the host's memory a plan takes the driver to
  // share what it can; should it not, all of them are copied.
  size_t weights = 0;
  size_t on_device = 0;  // of all these, in the device's memory
  // Beside all these, from the first history of none on (session_newcomer.cc): what is popular, and while that is found
  // out the states that it is read from. Less where the file has counts as its bias.
  size_t newcomer = 0;
  size_t total() const { return activations + packed_weights + scores + weights; }
};

class Session {
 public:
  // What a session of this model will hold, or of one with this architecture and tables of floats. Allocates none of it
  // and reads no weights.
  static Result<InferenceMemory> PlanMemory(const ModelFile& file, Backend backend = Backend::kSimd,
                                            size_t num_threads = 1);
  static Result<InferenceMemory> PlanMemory(const Architecture& architecture, Backend backend = Backend::kSimd,
                                            size_t num_threads = 1);

  // Of a session with these options, on a device too. That there is room is another question, which Create answers.
  static Result<InferenceMemory> PlanMemory(const ModelFile& file, const SessionOptions& options);

  // 8-bit weights are always verified: a weight that is no number would become one among them. kInvalidArgument for too
  // many threads; kUnsupported for several with XNNPACK, whose packed weights are for one, and for what a device does
  // not do; kIo where the device has failed or has no room: then nothing is left there.
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

  // The best items after `history` (item ids, oldest first; what is read of them: HistoryWindow), best first, ties by
  // smaller id. Items that the model withholds (ModelFile::withheld) are never among them. Fewer than `count` when not
  // that many are left. kInvalidData where the score of an item that might be recommended is no finite number: damaged
  // weights, which a file that was opened with Verify::kStructure may have. kIo where the device has failed.
  Result<std::vector<Recommendation>> Recommend(std::span<const int32_t> history, const RecommendOptions& options);

  // Scores of all items [num_items], withheld ones too. Of an empty history, or one of untrained items alone, a
  // newcomer's: what is popular, as the model knows it. Those are the output bias where that is made of counts; else
  // the mean of the scores after one item, over at most 256 items, which the first such call finds and the session
  // keeps.
  Status Score(std::span<const int32_t> history, std::span<float> scores);

  const ModelFile& file() const { return file_; }
  const Architecture& architecture() const { return graph_.architecture(); }
  // What is run, and with what: for as long as the session lives, and for any number of threads that bring their own
  // buffers.
  const Recommender& graph() const { return graph_; }
  const Weights& weights() const { return weights_.view(); }
  // kInvalidArgument: a sentence about the first item that the model does not have.
  Status CheckItems(const char* what, std::span<const int32_t> items) const;
  // kInvalidData, in a sentence about this model's scores.
  Status NotFinite() const;
  // What this session holds: what PlanMemory said.
  InferenceMemory memory() const;
  size_t planned_bytes() const { return memory().total(); }
  kernels::KeptType kept() const { return cache_.type(); }
  size_t num_threads() const { return helpers_ == nullptr ? 1 : helpers_->team.size(); }

 private:
  Session(ModelFile file, const kernels::Device& device, size_t num_threads, const SessionOptions& options);
  static Result<InferenceMemory> PlanOf(const Architecture& architecture, std::span<const StoredTensor> tensors,
                                        const SessionOptions& options);
  static InferenceMemory MemoryOf(const Recommender& graph, std::span<const StoredTensor> tensors, size_t num_threads,
                                  kernels::KeptType kept);
  // Scores of a newcomer, found once (session_newcomer.cc).
  Status FindPopular();
  bool is_host() const { return graph_.device().memory.is_host(); }
  size_t ItemsKept(std::span<const int32_t> window) const;
  // What is read of a history, until the next call.
  std::span<const int32_t> WindowOf(std::span<const int32_t> history) {
    return HistoryWindow(history, file_.untrained(), graph_.architecture().max_length, window_);
  }
  // Scores of all items after what is read of a history, to where ops write them.
  void ScoreTo(std::span<const int32_t> window, float* scores);
  Status ScoreOnDevice(std::span<const int32_t> window, std::span<float> scores);
  // On a device: what was asked for has run, and holds.
  Status Arrived();
  // The items in top_'s list of what is not offered.
  void MarkTaken(std::span<const int32_t> history, const RecommendOptions& options);
  Result<std::vector<Recommendation>> RecommendOnDevice(std::span<const int32_t> history,
                                                        const RecommendOptions& options, size_t count);

  ModelFile file_;
  Recommender graph_;
  Buffers buffers_;
  KeyValueCache cache_;
  std::unique_ptr<Helpers> helpers_;        // null with one thread
  std::unique_ptr<DeviceWeights> tensors_;  // of a device; null on the host
  PackedWeights weights_;
  std::vector<int32_t> encoded_;  // the items whose keys and values are in cache_, in their order
  std::vector<int32_t> window_;   // of a history with untrained items, what is read of it
  std::vector<float> scores_;
  ServedList list_;
  std::vector<float> popular_;      // scores of a newcomer; empty until they are asked for
  std::unique_ptr<DeviceTop> top_;  // of a device; null on the host
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_SESSION_H_
