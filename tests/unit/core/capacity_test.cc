// Lists that grow by what they need and something ahead, up to a bound.
#include "runtime/core/capacity.h"

#include <gtest/gtest.h>

#include <random>

namespace wisp::capacity_test {
namespace {

TEST(Capacity, StaysWithinItsBound) {
  std::mt19937 random(1);
  for (int run = 0; run < 2000; ++run) {
    const size_t most = 1 + random() % 300, needs_at_most = 1 + random() % most;
    size_t room = 0;
    for (int i = 0; i < 50; ++i) {
      const size_t needed = random() % (needs_at_most + 1);
      room = GrownCapacity(room, needed, most);
      ASSERT_GE(room, needed);
      ASSERT_LE(room, MostCapacity(needs_at_most, most));
    }
  }
}

}  // namespace
}  // namespace wisp::capacity_test
