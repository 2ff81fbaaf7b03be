#include "runtime/device/device_top.h"

#include <algorithm>
#include <bit>

namespace wisp {

static_assert(sizeof(kernels::TopKSummary) == sizeof(kernels::Scored));

ArenaPlan DeviceTop::GetPlan(const kernels::OpTable& ops, size_t num_items, size_t rows, Slots& slots) {
  ArenaPlan plan;
  slots.scores = plan.Reserve<float>(rows * num_items);
  slots.excluded = plan.Reserve<uint32_t>(rows * ((num_items + kBitsPerWord - 1) / kBitsPerWord));
  slots.results = plan.Reserve<kernels::Scored>(rows * (1 + kernels::kMostTopK));
  slots.scratch = plan.Reserve<uint64_t>(ops.top_k_scratch_size(rows, num_items, kernels::kMostTopK));
  return plan;
}

DeviceBytes DeviceTop::PlanBytes(const kernels::OpTable& ops, size_t num_items, size_t rows) {
  Slots slots;
  return {.on_device = GetPlan(ops, num_items, rows, slots).allocated_bytes(),
          .on_host = rows * ((num_items + kBitsPerWord - 1) / kBitsPerWord * sizeof(uint32_t) +
                             (1 + kernels::kMostTopK) * sizeof(kernels::Scored))};
}

DeviceTop::DeviceTop(const kernels::Device& device, size_t num_items, size_t rows)
    : device_(device),
      num_items_(num_items),
      arena_(GetPlan(*device.ops, num_items, rows, slots_), device.memory),
      excluded_(rows * words()),
      results_(rows * (1 + kernels::kMostTopK)) {}

void DeviceTop::ClearExcluded(size_t row, Offered offered) {
  std::fill_n(excluded(row), words(), offered == Offered::kAll ? 0 : ~uint32_t{0});
}

void DeviceTop::SendExcluded(size_t rows) {
  device_.memory.copy_in(arena_[slots_.excluded], excluded_.data(), rows * words() * sizeof(uint32_t));
}

void DeviceTop::Run(size_t rows, size_t count) {
  rows_done_ = rows;
  count_ = count;
  kernels::Scored* results = arena_[slots_.results];
  device_.ops->top_k({.score_RN = scores(),
                      .excluded_RW = arena_[slots_.excluded],
                      .best_RK = results + rows,
                      .summary_R = reinterpret_cast<kernels::TopKSummary*>(results),
                      .scratch = arena_[slots_.scratch],
                      .rows = rows,
                      .n = num_items_,
                      .k = count});
  device_.memory.copy_out(results_.data(), results, rows * (1 + count) * sizeof(kernels::Scored));
}

kernels::TopKSummary DeviceTop::summary(size_t row) const { return std::bit_cast<kernels::TopKSummary>(results_[row]); }

}  // namespace wisp
