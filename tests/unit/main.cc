// main of a room's tests.
#include "gtest/gtest.h"
#include "tests/unit/one_file.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  wisp::test::KeepOneFile(argv[0]);
  return RUN_ALL_TESTS();
}
