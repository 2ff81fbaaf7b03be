// Model files for tests that use a handle in a forked process.
#ifndef WISP_TESTS_UNIT_PORTS_C_FORK_TEST_UTIL_H_
#define WISP_TESTS_UNIT_PORTS_C_FORK_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/core/in_child.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/ports/c_test_util.h"

namespace wisp::test {

inline constexpr char kRefused[] = "was opened before this process was forked off; open it here again";

class CFork : public ::testing::Test {
 protected:
  // So large that two threads share one history.
  std::string WriteItems(const std::string& name, const std::string& dataset) const {
    const Architecture a = UniformArchitecture{
        .num_items = 300, .max_length = 64, .width = 64, .num_heads = 2, .num_blocks = 2, .inner_width = 256};
    return Write(name, {.architecture = a}, dataset);
  }
  std::string Write(const std::string& name, ModelContents contents, const std::string& dataset) const {
    const std::string path = folder_ / name;
    const std::vector<float> weights = RandomWeights(contents.architecture, 7);
    contents.weights = weights;
    contents.provenance = {{.description = "converted", .dataset = dataset}};
    const Status status = WriteModel(path, contents);
    EXPECT_TRUE(status.ok()) << status.message();
    return path;
  }
  static std::string Say(wisp_code code, const wisp_error& error) {
    return std::to_string(code) + " " + error.message + "\n";
  }

  const TemporaryFolder folder_;
  const wisp_open_options two_ = [] {
    wisp_open_options options = WISP_INIT(wisp_open_options);
    options.num_threads = 2;
    return options;
  }();
  wisp_error error_ = {};
};

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_PORTS_C_FORK_TEST_UTIL_H_
