// The best items after each of several histories, on a device: they pass together, the output table is multiplied by
// all of them in one product, and the best alone cross to the host. What BatchRecommender does where its session is on
// one.
#ifndef WISP_RUNTIME_INFERENCE_DEVICE_BATCH_H_
#define WISP_RUNTIME_INFERENCE_DEVICE_BATCH_H_

#include <span>
#include <vector>

#include "runtime/inference/session.h"

namespace wisp {

class DeviceBatch {
 public:
  // Histories that pass together: `wanted`, or fewer where their scores would take more than kMostScoreBytes.
  static constexpr size_t kMostScoreBytes = size_t{64} << 20;
  static size_t RowsOf(const Architecture& architecture, size_t wanted);
  // What one for so many takes.
  [[gnu::cold]] static InferenceMemory PlanMemory(const Architecture& architecture, const kernels::Device& device,
                                                  size_t rows);

  // The session must outlive it. std::bad_alloc where there is no room.
  [[gnu::cold]] DeviceBatch(const Session& session, size_t rows);

  // As BatchRecommender::Recommend, of a request that was checked. kIo where the device has failed: nothing of what was
  // assigned holds then.
  Status Recommend(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                   Recommendation* best, size_t* found);

 private:
  void MarkTaken(size_t row, std::span<const int32_t> history, const RecommendOptions& options);
  // Of at most rows_ histories; all_finite as of TopK.
  Status RecommendSome(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                       Recommendation* best, size_t* found, bool& all_finite);
  // More than a device chooses among: by the host, from all scores.
  void ChooseOnHost(size_t row, std::span<Recommendation> best, size_t& found, bool& all_finite);

  const Session& session_;
  size_t rows_;
  Recommender graph_;
  Buffers buffers_;
  KeyValueCache cache_;
  DeviceTop top_;
  std::vector<Record> records_;
  std::vector<std::vector<int32_t>> windows_;  // of histories with untrained items, what is read of them
  std::vector<float> scores_;                  // of one history, where the host chooses
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_DEVICE_BATCH_H_
