// Finds the best items after each of several histories on a device. Histories pass together, one product multiplies the
// output table by all of them, and only the best items are copied to the host. BatchRecommender uses it if its session
// is on a device.
#ifndef WISP_RUNTIME_DEVICE_DEVICE_BATCH_H_
#define WISP_RUNTIME_DEVICE_DEVICE_BATCH_H_

#include <memory>
#include <span>
#include <vector>

#include "runtime/device/device_top.h"
#include "runtime/inference/session.h"

namespace wisp {

class RowsOnDevice final : public DeviceBatch {
 public:
  [[gnu::cold]] RowsOnDevice(const Session& session, size_t rows);
  Status Recommend(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                   Recommendation* best, size_t* found) override;

 private:
  void MarkTaken(size_t row, std::span<const int32_t> history, const RecommendOptions& options);
  // Recommends for at most rows_ histories at once. `all_finite` is as in TopK.
  Status RecommendSome(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                       Recommendation* best, size_t* found, bool& all_finite);
  // The host chooses from all scores if more items are wanted than a device can choose.
  void ChooseOnHost(size_t row, std::span<Recommendation> best, size_t& found, bool& all_finite);

  const Session& session_;
  size_t rows_;
  std::unique_ptr<const ModelView> graph_;
  Buffers buffers_;
  KeyValueCache cache_;
  DeviceTop top_;
  std::vector<Record> records_;
  std::vector<std::vector<int32_t>> windows_;  // for histories with untrained items: the parts that are read
  std::vector<float> scores_;                  // of one history, if the host chooses
};

}  // namespace wisp

#endif  // WISP_RUNTIME_DEVICE_DEVICE_BATCH_H_
