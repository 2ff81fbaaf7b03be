// A test program holds all tests of a folder. A link to it for each test file runs the tests of that file alone.
#ifndef WISP_TESTS_UNIT_ONE_FILE_H_
#define WISP_TESTS_UNIT_ONE_FILE_H_

namespace wisp::test {

// Leaves out the tests of all files except the one that `program`, argv[0], is named after. Keeps all if the program is
// not named after a test file. Call it after testing::InitGoogleTest: --gtest_filter chooses among the remaining tests.
// Exits with 2 if the program has no tests of that file.
void KeepOneFile(const char* program);

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_ONE_FILE_H_
