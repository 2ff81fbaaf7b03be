// Changes of a model's metadata with valid checksums, each to be refused with a sentence.
#ifndef WISP_TESTS_UNIT_MODEL_LIES_H_
#define WISP_TESTS_UNIT_MODEL_LIES_H_

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/unit/model/model_test_util.h"

namespace wisp::test {

struct Lie {
  const char* part;  // of the message
  std::function<void(schema::ModelT&)> tell;
  StatusCode code = StatusCode::kInvalidData;
};

inline void ExpectAllRefused(const std::vector<Lie>& lies, const SmallModel& model = {}) {
  const std::string whole = model.Bytes();
  ASSERT_TRUE(OpenBytes(Changed<schema::Model>(whole, [](schema::ModelT&) {}), Verify::kFull).ok());
  for (const Lie& lie : lies) {
    const Status status = OpenBytes(Changed<schema::Model>(whole, lie.tell));
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(lie.code))
        << "wanted: " << lie.part << "\nfound: " << status.message();
    EXPECT_NE(status.message().find(lie.part), std::string::npos)
        << "wanted: " << lie.part << "\nfound: " << status.message();
    EXPECT_EQ(status.message().rfind("memory.wisp: ", 0), 0u) << status.message();
    EXPECT_LT(status.message().size(), 400u);
  }
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_MODEL_LIES_H_
