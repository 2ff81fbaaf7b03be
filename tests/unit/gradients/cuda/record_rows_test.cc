// Rows of records that go to slots of the sum: they are bounded as a whole, and removed as a whole.
#include "runtime/gradients/record_rows.h"

#include <gtest/gtest.h>

#include "kernels/cuda/cuda.h"

namespace wisp::record_rows_test {
namespace {

constexpr float kSteps = 0x1p10f;
constexpr size_t kDirect = 3, kSlots = 2, kWidth = 2, kRow = kDirect + kSlots * kWidth, kSum = kDirect + 3 * kWidth;

struct Added {
  std::vector<RecordOutcome> records;
  std::vector<int64_t> sum;
};

// Record 0 adds little. Record 1 has half of its square in a slot. Record 2 names no slot for its largest row.
Added Add(const ClipRule& clip, double max_norm) {
  const kernels::Device device(kernels::cuda::Ops(), kernels::Memory(kernels::cuda::DeviceMemory(), nullptr));
  const kernels::Memory& memory = device.memory;
  GridGradientSum sum(device, kSum, {.steps_per_unit = kSteps, .max_sum_squares = max_norm * max_norm});
  sum.Clear();
  RecordRows rows(device, 3, kRow, clip, sum);
  rows.Begin(3, kRow);
  const float values[3][kRow] = {{0.1f, 0, 0, 0, 0.2f, 0, 0}, {3, 0, 0, 3, 0, 0, 0}, {0, 0.5f, 0, 0, 0.5f, 9, 9}};
  memory.copy_in(rows.at(0), values, sizeof(values));
  const int32_t slots[3][kSlots] = {{2, -1}, {2, 0}, {1, -1}};
  AlignedArray<int32_t> slot(3 * kSlots, memory);
  memory.copy_in(slot.data(), slots, sizeof(slots));
  const auto outcomes = rows.Finish({.slot_BJ = slot.data(), .slots = kSlots, .first = kDirect, .d = kWidth});
  Added added{.records = {outcomes.begin(), outcomes.end()}, .sum = std::vector<int64_t>(kSum)};
  memory.copy_out(added.sum.data(), sum.sum().data(), kSum * sizeof(int64_t));
  return added;
}

std::vector<int64_t> Steps(std::initializer_list<float> units) {
  std::vector<int64_t> steps;
  for (float u : units) steps.push_back(static_cast<int64_t>(std::nearbyint(u * kSteps)));
  return steps;
}

TEST(CudaRecordRows, GoWhereTheirSlotsSay) {
  const Added all = Add(ClipRule::Flat(1e6), 1e6);
  EXPECT_EQ(all.sum, Steps({3.1f, 0.5f, 0, 0, 0, 0, 0.5f, 3, 0.2f}));
  for (const RecordOutcome& record : all.records) EXPECT_TRUE(record.within && record.finite);
  // The norm covers all parts of a record.
  EXPECT_NEAR(all.records[1].norm, std::sqrt(18.0), 1e-6);
}

// Either half of record 1 is within the bound; both together are not.
TEST(CudaRecordRows, SlotRows_CountForTheBound) {
  const Added bounded = Add(ClipRule::Flat(1e6), 3.5 * kSteps);
  EXPECT_TRUE(bounded.records[0].within);
  EXPECT_FALSE(bounded.records[1].within);
  EXPECT_EQ(bounded.records[1].factor, 0);
  EXPECT_EQ(bounded.sum, Steps({0.1f, 0.5f, 0, 0, 0, 0, 0.5f, 0, 0.2f}));
}

TEST(CudaRecordRows, AreClippedAsAWhole) {
  const Added clipped = Add(ClipRule::Flat(1), 1e6);
  const float half = std::sqrt(0.5f);
  EXPECT_NEAR(static_cast<double>(clipped.sum[0]), static_cast<double>((0.1f + half) * kSteps), 2);
  EXPECT_NEAR(static_cast<double>(clipped.sum[kDirect + 4]), static_cast<double>(half * kSteps), 2);
}

}  // namespace
}  // namespace wisp::record_rows_test
