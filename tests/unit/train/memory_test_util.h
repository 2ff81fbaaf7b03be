// Compares the planned memory with the held one.
#ifndef WISP_TESTS_UNIT_TRAIN_MEMORY_TEST_UTIL_H_
#define WISP_TESTS_UNIT_TRAIN_MEMORY_TEST_UTIL_H_

#include <gtest/gtest.h>

#include "runtime/train/memory.h"

namespace wisp::test {

inline void ExpectEqual(const TrainingMemory& a, const TrainingMemory& b) {
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.packed_weights, b.packed_weights);
  EXPECT_EQ(a.optimizer_state, b.optimizer_state);
  EXPECT_EQ(a.gradient_sums, b.gradient_sums);
  EXPECT_EQ(a.negatives, b.negatives);
  EXPECT_EQ(a.activations, b.activations);
  EXPECT_EQ(a.record_gradients, b.record_gradients);
  EXPECT_EQ(a.variances, b.variances);
  EXPECT_EQ(a.states, b.states);
  EXPECT_EQ(a.lists, b.lists);
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_TRAIN_MEMORY_TEST_UTIL_H_
