// A steady training step and a score allocate nothing: counted by replacing the global allocator.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "runtime/train/trainer.h"
#include "tests/unit/train_test_util.h"

namespace {
std::atomic<size_t> allocations{0};

void* Count(size_t size, size_t alignment) {
  ++allocations;
  void* p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
}  // namespace

void* operator new(size_t size) { return Count(size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t alignment) { return Count(size, static_cast<size_t>(alignment)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }

namespace wisp {
namespace {

TEST(Allocation, SteadyStepAllocatesNothing) {
  const Architecture a{.num_items = 300, .max_length = 12, .width = 16, .num_heads = 2, .num_blocks = 2, .inner_width = 16};
  const testing::Ring ring(300, 40, 10);
  const std::vector<float> weights = testing::StartWeights(a, {});
  for (Sampling sampling : {Sampling::kShuffled, Sampling::kPoisson}) {
    TrainingOptions o{.sampling = sampling, .num_steps = 100, .expected_batch = 8, .dropout = {0.1f, 0.1f, 0.1f}, .ema_decay = 0.9f,
                      .num_threads = 2};
    const auto trainer = *Trainer::Create(a, weights, ring.records, o);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(trainer->Step().ok());
    const size_t before = allocations;
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(trainer->Step().ok());
    EXPECT_EQ(allocations - before, 0u);
  }
}

}  // namespace
}  // namespace wisp
