// The best items after each of several histories, in one call and on several threads.
//
//   WISP_ASSIGN_OR_RETURN(auto session, Session::Open("model.wisp"));
//   WISP_ASSIGN_OR_RETURN(auto batch, BatchRecommender::Create(*session, {.num_threads = 2}));
//   std::vector<Recommendation> best(histories.size() * 10);
//   std::vector<size_t> found(histories.size());
//   // the items for history i begin at best[10 * i]
//   WISP_RETURN_IF_ERROR(batch->Recommend(histories, {.count = 10}, best, found));
//
// The result for each history has the bits of Session::Recommend. The session's weights are read, but not its state.
// The session itself answers for histories of which the model knows no item. Each thread encodes its histories one by
// one, then multiplies the output table by many of them, one tile of items at a time. So the table is read once for all
// of them, and no history's scores of all items are ever stored.
//
// If the session is on a device, histories pass together there, and the calling thread waits
// (runtime/device/device_batch.h).
// Not thread-safe: one call at a time. Recommend allocates nothing.
#ifndef WISP_RUNTIME_INFERENCE_BATCH_RECOMMENDER_H_
#define WISP_RUNTIME_INFERENCE_BATCH_RECOMMENDER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/inference/session.h"

namespace wisp {

struct BatchOptions {
  size_t num_threads = 1;  // at most kMaxThreads; 0: DefaultThreads(). On a device always one
  // Histories that a thread multiplies together, or that pass together on a device: 1 to 1024. More take more memory.
  size_t rows = 32;
  Executor executor = {};  // the app's own threads (threads.h)
};

class BatchRecommender {
 public:
  // Memory that it holds beside its session, exact except for small objects; packed_weights is 0. Allocates nothing.
  static Result<InferenceMemory> PlanMemory(const Architecture& architecture, const BatchOptions& options,
                                            Backend backend = Backend::kSimd,
                                            kernels::CacheType kept = kernels::CacheType::kFloat);

  // Plans the memory for a session on this device.
  static Result<InferenceMemory> PlanMemory(const Architecture& architecture, const BatchOptions& options,
                                            const kernels::Device& device);

  // The session must outlive the result. kInvalidArgument: an option is out of range. kUnsupported: the session uses
  // XNNPACK, whose packed weights only one thread may use. kIo: a device has too little memory.
  static Result<std::unique_ptr<BatchRecommender>> Create(Session& session, const BatchOptions& options);
  BatchRecommender(const BatchRecommender&) = delete;
  BatchRecommender& operator=(const BatchRecommender&) = delete;

  // Takes any number of histories, each as for Session::Recommend; `options` apply to all. The items for history i are
  // written from best[i * options.count] on, best first. found[i] is their number, which may be smaller than the count.
  // kInvalidArgument names the first invalid history; nothing was written. kInvalidData, as in Session::Recommend, and
  // kIo (a device has failed) are detected at the end.
  Status Recommend(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                   std::span<Recommendation> best, std::span<size_t> found);

  InferenceMemory memory() const;
  size_t num_threads() const { return workers_.size(); }

 private:
  // The buffers of one thread. Taken items are bits: `words` words for each row.
  struct Share {
    Buffers buffers;
    KeyValueCache cache;
    AlignedArray<float> hidden, scores;  // [rows, D], [rows, kHeadTile]
    AlignedArray<uint64_t> taken;        // [rows, words]
    std::vector<TopK> tops;
    std::vector<int32_t> window;  // for a history with untrained items: the part that is read
  };
  struct Call {
    std::span<const std::span<const int32_t>> histories;
    const RecommendOptions* options;
    Recommendation* best;
    size_t* found;
    size_t rows;  // rows of one piece of work
  };

  BatchRecommender(Session& session, const BatchOptions& options);
  bool is_host() const { return session_.graph().device().memory.is_host(); }
  Status Check(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
               std::span<Recommendation> best, std::span<size_t> found) const;
  void MarkTakenByAll(const RecommendOptions& options);
  Status RecommendOnHost(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                         std::span<Recommendation> best, std::span<size_t> found);
  // Answers again, one by one, for histories of untrained items only, and on a device for those with successions.
  Status RecommendAlone(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                        std::span<Recommendation> best, std::span<size_t> found);
  void Work(size_t worker);
  void RecommendSome(Share& share, size_t first, size_t rows);

  Session& session_;
  std::unique_ptr<DeviceBatch> on_device_;  // null on the host; if it exists, the shares are empty
  size_t rows_, words_;
  Workers workers_;
  std::vector<Share> shares_;
  AlignedArray<uint64_t> taken_by_all_;  // [words]
  Call call_ = {};
  std::atomic<size_t> next_ = 0;  // the first history that no thread has taken
  std::atomic<bool> all_finite_ = true;
  std::function<void(size_t)> work_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_BATCH_RECOMMENDER_H_
