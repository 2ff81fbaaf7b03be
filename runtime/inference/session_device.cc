// The parts of a session that run only on a device.
#include <algorithm>

#include "runtime/inference/on_device.h"
#include "runtime/inference/session.h"

namespace wisp {

Status Session::Arrived() {
  if (is_host()) return OkStatus();
  Status status = WaitForDevice(graph_->device());
  if (!status.ok()) encoded_.clear();
  return status;
}

Status Session::ScoreOnDevice(std::span<const int32_t> window, std::span<float> scores) {
  const kernels::Memory& memory = graph_->device().memory;
  const Gathering gathering(memory);
  ScoreTo(window, top_->scores());
  memory.copy_out(scores.data(), top_->scores(), scores.size_bytes());
  return Arrived();
}

void Session::MarkTaken(std::span<const int32_t> history, const RecommendOptions& options) {
  top_->ClearExcluded(0, options.candidates.empty() ? Offered::kAll : Offered::kNone);
  uint32_t* taken = top_->excluded(0);
  for (int32_t id : options.candidates) Unmark(taken, id);
  TakeUnoffered(history, options, file_.lists(), [taken](int32_t id) { Mark(taken, id); });
}

Result<std::vector<Recommendation>> Session::RecommendOnDevice(std::span<const int32_t> history,
                                                               const RecommendOptions& options, size_t count) {
  MarkTaken(history, options);
  {
    const Gathering gathering(graph_->device().memory);
    top_->SendExcluded(1);
    ScoreTo(GetWindow(history), top_->scores());
    top_->Run(1, count);
  }
  WISP_RETURN_IF_ERROR(Arrived());
  if (!top_->all_finite(0)) return NotFinite();
  std::vector<Recommendation> best;
  best.reserve(count);
  for (const kernels::Scored& item : top_->best(0)) best.push_back({item.item, item.score});
  return best;
}

}  // namespace wisp
