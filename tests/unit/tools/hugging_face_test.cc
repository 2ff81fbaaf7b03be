// Folders of Hugging Face as models: what they compute against transformers in double precision
// (tools/exchange/goldens.py), and the forms in which the same weights come.
#include <gtest/gtest.h>

#include "tests/unit/tools/hugging_face_test_util.h"

namespace wisp {
namespace {

namespace hf = exchange::hugging_face;
using exchange::SafeTensor;
using exchange::SafeTensorsFile;
using exchange::TensorToWrite;
using testing::Compute;
using testing::Convert;
using testing::Converted;
using testing::CopyOf;
using testing::GoldenFolder;
using testing::LargestDifference;
using testing::TemporaryFolder;

constexpr double kTolerance = 1e-5;  // relative to the largest number: float against double through two blocks

void ExpectComputesAsTransformers(const std::string& family, const std::string& model) {
  const auto expected = nlohmann::json::parse(testing::ReadAll(GoldenFolder(family) + "/expected.json"));
  for (const auto& one : expected["cases"]) {
    const auto ids = one["ids"].get<std::vector<int32_t>>();
    EXPECT_LT(LargestDifference(Compute(model, ids), one["expected"].get<std::vector<double>>()), kTolerance)
        << family << ", " << ids.size() << " tokens";
  }
}

class HuggingFaceFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(HuggingFaceFamily, ComputesWhatTransformersDoes) {
  const TemporaryFolder temporary;
  const Status status = Convert(GoldenFolder(GetParam()), temporary.At("m.wisp"));
  ASSERT_TRUE(status.ok()) << status.message();
  ExpectComputesAsTransformers(GetParam(), temporary.At("m.wisp"));
}

INSTANTIATE_TEST_SUITE_P(Goldens, HuggingFaceFamily,
                         ::testing::Values("bert", "sentence", "bert_classes", "electra", "roberta", "roberta_classes",
                                           "distilbert", "gpt2", "llama", "llama_tied", "qwen2", "mistral"));

}  // namespace
}  // namespace wisp
