// The list of op tables, and the ops in each.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/simd/fill.h"
#include "kernels/simd/processor.h"

namespace wisp::kernels::tables_test {
namespace {

TEST(AllOps, ReferenceComesFirstAndEveryTableIsFoundByName) {
  ASSERT_FALSE(AllOps().empty());
  EXPECT_EQ(AllOps()[0], &ReferenceOps());
  for (const OpTable* ops : AllOps()) EXPECT_EQ(FindOps(ops->name), ops);
  EXPECT_EQ(FindOps("no such table"), nullptr);
  EXPECT_EQ(&BestOps(), AllOps().size() > 1 ? AllOps()[1] : AllOps()[0]);
}

// A library may lack the ops that vectors replace, because no table calls them.
TEST(AllOps, EveryTableReplacesWhatTheReferenceLacksBesideVectors) {
  size_t num_tables = 0;
  for (int64_t left = ProcessorTargets(); left != 0; left &= left - 1, ++num_tables) {
    const OpTable whole = BuildTable(left & -left, ReferenceOps());
    const OpTable beside = BuildTable(left & -left, ReferenceBesideVectors());
    EXPECT_EQ(std::memcmp(&whole, &beside, sizeof(OpTable)), 0) << whole.name;
  }
  EXPECT_EQ(num_tables + 1, AllOps().size());
  EXPECT_EQ(ReferenceBesideVectors().attention_forward, nullptr);
  EXPECT_NE(ReferenceBesideVectors().map, nullptr);
}

}  // namespace
}  // namespace wisp::kernels::tables_test
