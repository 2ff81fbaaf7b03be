// The scores of one history on a device, of which only the best are copied to the host.
#include <memory>

#include "runtime/device/device_top.h"

namespace wisp {
namespace {

class ScoresOfOne final : public DeviceScores {
 public:
  ScoresOfOne(const kernels::Device& device, size_t num_items) : device_(device), top_(device, num_items, 1) {}

  float* data() override { return top_.scores(); }

  Result<Best> Recommend(std::span<const int32_t> history, const RecommendOptions& options, const ModelLists& lists,
                         size_t count, Score score) override {
    MarkTaken(history, options, lists);
    {
      const Gathering gathering(device_.memory);
      top_.SendExcluded(1);
      score(top_.scores());
      top_.Run(1, count);
    }
    WISP_RETURN_IF_ERROR(WaitForDevice(device_));
    Best best{.items = {}, .all_finite = top_.all_finite(0)};
    best.items.reserve(count);
    for (const kernels::Scored& item : top_.best(0)) best.items.push_back({item.item, item.score});
    return best;
  }

  DeviceBytes bytes() const override { return top_.bytes(); }

 private:
  void MarkTaken(std::span<const int32_t> history, const RecommendOptions& options, const ModelLists& lists) {
    top_.ClearExcluded(0, options.candidates.empty() ? Offered::kAll : Offered::kNone);
    uint32_t* taken = top_.excluded(0);
    for (int32_t id : options.candidates) Unmark(taken, id);
    TakeUnoffered(history, options, lists, [taken](int32_t id) { Mark(taken, id); });
  }

  kernels::Device device_;
  DeviceTop top_;
};

}  // namespace

std::unique_ptr<DeviceScores> MakeDeviceScores(const kernels::Device& device, size_t num_items) {
  return std::make_unique<ScoresOfOne>(device, num_items);
}

[[gnu::cold]] DeviceBytes PlanDeviceScores(const kernels::OpTable& ops, size_t num_items) {
  return DeviceTop::PlanBytes(ops, num_items, 1);
}

}  // namespace wisp
