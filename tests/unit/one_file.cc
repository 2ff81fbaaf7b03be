#include "tests/unit/one_file.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace wisp::test {
namespace {

// Returns "b" for "a/b.cc".
std::string_view Stem(std::string_view path) {
  path = path.substr(path.find_last_of("/\\") + 1);
  return path.substr(0, path.find('.'));
}

}  // namespace

void KeepOneFile(const char* program) {
  std::string_view wanted = Stem(program);
  for (const std::string_view prefix : {"cuda_", "gpu_"})
    if (wanted.starts_with(prefix)) wanted.remove_prefix(prefix.size());
  if (!wanted.ends_with("_test")) return;
  std::string others;
  bool is_there = false;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(j);
      if (Stem(test.file()) == wanted)
        is_there = true;
      else
        others += std::string(others.empty() ? "" : ":") + suite.name() + "." + test.name();
    }
  }
  if (!is_there) {
    std::fprintf(stderr, "%s has no tests of a file %s.cc\n", program, std::string(wanted).c_str());
    std::exit(2);
  }
  std::string filter = ::testing::GTEST_FLAG(filter);
  if (!others.empty()) filter += (filter.find('-') == std::string::npos ? "-" : ":") + others;
  ::testing::GTEST_FLAG(filter) = filter;
}

}  // namespace wisp::test
