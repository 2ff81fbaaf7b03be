// A test program holds the tests of a whole room. It is called by the name of a link, one for each test file, and then runs the tests of
// that file alone.
#ifndef WISP_TESTS_UNIT_ONE_FILE_H_
#define WISP_TESTS_UNIT_ONE_FILE_H_

namespace wisp::test {

// After testing::InitGoogleTest. Leaves out all tests but those of the file that `program`, argv[0], is named after: all of
// them where it is named otherwise. --gtest_filter chooses among what is left. Exits with 2 where that file has no tests.
void KeepOneFile(const char* program);

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_ONE_FILE_H_
