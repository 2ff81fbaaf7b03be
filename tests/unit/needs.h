// Tests that name a method by its value compile in every build, and need the method only when they run:
//
//   WISP_NEEDS(kHasRgp);                               this test
//   if (!CheckBuilt(architecture, o).ok()) continue;   one case of it
//
// Tests that include a wing's header are left out by CMakeLists.txt.
#ifndef WISP_TESTS_UNIT_NEEDS_H_
#define WISP_TESTS_UNIT_NEEDS_H_

#include <gtest/gtest.h>

#include "runtime/train/method_table.h"

#define WISP_NEEDS(has) \
  if (!(has)) GTEST_SKIP() << "this build lacks what the test needs: " #has

#endif  // WISP_TESTS_UNIT_NEEDS_H_
