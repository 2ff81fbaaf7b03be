// The best items after each of several histories, in one call and on several threads.
//
//   WISP_ASSIGN_OR_RETURN(auto session, Session::Open("model.wisp"));
//   WISP_ASSIGN_OR_RETURN(auto batch, BatchRecommender::Create(*session, {.num_threads = 2}));
//   std::vector<Recommendation> best(histories.size() * 10);
//   std::vector<size_t> found(histories.size());
//   // those of history i from best[10 * i] on
//   WISP_RETURN_IF_ERROR(batch->Recommend(histories, {.count = 10}, best, found));
//
// What comes out is what Session::Recommend gives for each of them, bit for bit: the session's weights are read,
// nothing of its state. The session itself answers for histories of which the model knows no item. A thread encodes its
// histories one by one and multiplies the output table by many of them at once, a tile of items at a time: the table is
// read once for all of them, and no history's scores of all items are ever kept.
//
// Of a session on a device, histories pass together there (device_batch.h), and the calling thread waits.
//
// Not thread-safe: one call at a time. Allocates nothing in Recommend.
#ifndef WISP_RUNTIME_INFERENCE_BATCH_RECOMMENDER_H_
#define WISP_RUNTIME_INFERENCE_BATCH_RECOMMENDER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core/threads.h"
#include "runtime/inference/device_batch.h"
#include "runtime/inference/session.h"

namespace wisp {

struct BatchOptions {
  size_t num_threads = 1;  // at most kMaxThreads; 0: DefaultThreads(). On a device one, whatever is said
  // Histories that a thread multiplies by at once, or that pass together on a device: 1 to 1024. More of them take more
  // memory.
  size_t rows = 32;
  Executor executor = {};  // an app's own threads (threads.h)
};

class BatchRecommender {
 public:
  // What it holds beside its session, exact but for small objects; packed_weights is 0. Allocates none of it.
  static Result<InferenceMemory> PlanMemory(const Architecture& architecture, const BatchOptions& options,
                                            Backend backend = Backend::kSimd,
                                            kernels::KeptType kept = kernels::KeptType::kFloat);

  // Of a session on this device.
  static Result<InferenceMemory> PlanMemory(const Architecture& architecture, const BatchOptions& options,
                                            const kernels::Device& device);

  // The session must outlive what is returned. kInvalidArgument for options out of range; kUnsupported with XNNPACK,
  // whose packed weights are for one thread; kIo where a device has no room.
  static Result<std::unique_ptr<BatchRecommender>> Create(Session& session, const BatchOptions& options);
  BatchRecommender(const BatchRecommender&) = delete;
  BatchRecommender& operator=(const BatchRecommender&) = delete;

  // Any number of histories, as Session::Recommend takes them; `options` are of all of them. Those of history i are
  // assigned from best[i * options.count] on, best first, and their number, which may be smaller, to found[i].
  // kInvalidArgument names the first history that is wrong; then nothing was assigned. kInvalidData as
  // Session::Recommend, which is found out last, as kIo: a device that has failed.
  Status Recommend(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                   std::span<Recommendation> best, std::span<size_t> found);

  InferenceMemory memory() const;
  size_t num_threads() const { return workers_.size(); }

 private:
  // One thread's buffers. A row's taken items are bits, so many words of them.
  struct Share {
    Buffers buffers;
    KeyValueCache cache;
    AlignedArray<float> hidden, scores;  // [rows, D], [rows, kHeadTile]
    AlignedArray<uint64_t> taken;        // [rows, words]
    std::vector<TopK> tops;
    std::vector<int32_t> window;  // of a history with untrained items, what is read of it
  };
  struct Call {
    std::span<const std::span<const int32_t>> histories;
    const RecommendOptions* options;
    Recommendation* best;
    size_t* found;
    size_t rows;  // of a piece of work
  };

  BatchRecommender(Session& session, const BatchOptions& options);
  bool is_host() const { return session_.graph().device().memory.is_host(); }
  Status Check(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
               std::span<Recommendation> best, std::span<size_t> found) const;
  void MarkTakenByAll(const RecommendOptions& options);
  Status RecommendOnHost(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                         std::span<Recommendation> best, std::span<size_t> found);
  // Anew, of histories of untrained items alone.
  Status RecommendToNewcomers(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                              std::span<Recommendation> best, std::span<size_t> found);
  void Work(size_t worker);
  void RecommendSome(Share& share, size_t first, size_t rows);

  Session& session_;
  std::unique_ptr<DeviceBatch> on_device_;  // null on the host; where there is one, no share has anything
  size_t rows_, words_;
  Workers workers_;
  std::vector<Share> shares_;
  AlignedArray<uint64_t> taken_by_all_;  // [words]
  Call call_ = {};
  std::atomic<size_t> next_ = 0;  // the first history that nobody has taken up
  std::atomic<bool> all_finite_ = true;
  std::function<void(size_t)> work_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_BATCH_RECOMMENDER_H_
