// The schemas: generated headers are current, and no change breaks those of tests/golden/0.1. Needs flatc 2.0.8, as the
// generated headers do, and is skipped without it.
#include <gtest/gtest.h>

#include "tests/unit/from_sources.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::schema_test {
namespace {

const std::string kSchema = test::FromSources("schema"), kReleased = test::FromSources("tests/golden/0.1/schema");

// Runs a shell command; returns its exit status, and its output in `output`.
int RunShell(const std::string& command, std::string* output) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return -1;
  char buffer[256];
  output->clear();
  while (const size_t n = fread(buffer, 1, sizeof(buffer), pipe)) output->append(buffer, n);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Schema : public testing::Test {
 protected:
  void SetUp() override {
    std::string version;
    if (RunShell("flatc --version", &version) != 0)
      GTEST_SKIP() << "flatc is not installed (Debian: flatbuffers-compiler)";
    if (version.find("2.0.8") == std::string::npos) GTEST_SKIP() << "flatc 2.0.8 is needed, found " << version;
  }
  // Returns 0 if the schema in `folder` can replace the released one.
  int Conforms(const std::string& folder, const std::string& name, std::string* output) {
    return RunShell("flatc -I '" + folder + "' --conform-includes '" + kReleased + "' --conform '" + kReleased + "/" +
                        name + "' '" + folder + "/" + name + "'",
                    output);
  }
};

TEST_F(Schema, GeneratedHeadersAreCurrent) {
  const test::TemporaryFolder folder;
  std::string output;
  ASSERT_EQ(RunShell("'" + kSchema + "/generate.sh' '" + folder.path() + "'", &output), 0) << output;
  for (const char* name : {"common", "model", "checkpoint", "tokenizer"}) {
    const std::string file = std::string(name) + "_generated.h";
    const std::string committed = test::ReadBytes(kSchema + "/generated/" + file);
    EXPECT_GT(committed.size(), 1000u);
    EXPECT_TRUE(committed == test::ReadBytes(folder / file))
        << file << " is not what flatc makes of the schema: run schema/generate.sh";
  }
}

TEST_F(Schema, EveryChangeConformsToTheReleasedOne) {
  for (const char* name : {"common.fbs", "model.fbs", "checkpoint.fbs", "tokenizer.fbs"}) {
    std::string output;
    EXPECT_EQ(Conforms(kSchema, name, &output), 0) << output;
  }
}

// The test above only counts if it notices a break.
TEST_F(Schema, BreakingChangesAreSeen) {
  struct Case {
    const char* file;
    const char* from;
    const char* to;
  };
  const Case cases[] = {
      {"common.fbs", "num_items:uint;", ""},
      {"common.fbs", "max_length:uint;", "max_length:ulong;"},
      {"common.fbs", "F32 = 0, U32 = 1", "U32 = 0, F32 = 1"},
      {"common.fbs", "offset:ulong; ", "offset:ulong = 64; "},
      {"model.fbs", "description:string;\n  created_by:string;", "created_by:string;\n  description:string;"},
      {"model.fbs", "PrivateCounts = 2, ExactCounts = 3", "ExactCounts = 2, PrivateCounts = 3"},
      {"checkpoint.fbs", "step:ulong;", "step:float;"}};
  for (const Case& c : cases) {
    const test::TemporaryFolder folder;
    for (const char* name : {"common.fbs", "model.fbs", "checkpoint.fbs"}) {
      std::string text = test::ReadBytes(kSchema + "/" + name);
      if (std::string(name) == c.file) {
        const size_t at = text.find(c.from);
        ASSERT_NE(at, std::string::npos) << c.from;
        text.replace(at, std::string(c.from).size(), c.to);
      }
      test::WriteBytes(folder / name, text);
    }
    std::string output;
    EXPECT_NE(Conforms(folder.path(), c.file, &output), 0) << c.from << " -> " << c.to;
    EXPECT_NE(output.find("differ"), std::string::npos) << c.from << " -> " << c.to << ": " << output;
  }
}

}  // namespace
}  // namespace wisp::schema_test
