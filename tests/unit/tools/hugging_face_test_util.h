// Folders of Hugging Face for tests: those of tests/golden/hugging_face, copies of them to change, and the results of a
// model made from one.
//
//   Result<ModelFile> model = ConvertFolder(GoldenFolder("gpt2"), temporary / "m.wisp");
//   EXPECT_LT(LargestDifference(Compute(*model, ids), expected), 1e-5);
#ifndef WISP_TESTS_UNIT_TOOLS_HUGGING_FACE_TEST_UTIL_H_
#define WISP_TESTS_UNIT_TOOLS_HUGGING_FACE_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/text/classifier_session.h"
#include "runtime/inference/session.h"
#include "runtime/model/model_file.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/from_sources.h"
#include "tools/convert/hugging_face/tensors.h"

namespace wisp::test {

using test::TemporaryFolder;

inline std::string GoldenFolder(const std::string& family) {
  return test::FromSources("tests/golden/hugging_face/" + family);
}

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void WriteAll(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// Copies a golden folder, with other values in its config.json: null removes a key.
inline std::string MakeCopy(const std::string& family, const TemporaryFolder& to,
                            const nlohmann::json& changed = nlohmann::json::object()) {
  const std::string folder = to / family;
  std::filesystem::remove_all(folder);
  std::filesystem::copy(GoldenFolder(family), folder, std::filesystem::copy_options::recursive);
  nlohmann::json config = nlohmann::json::parse(ReadAll(folder + "/config.json"));
  config.update(changed);
  WriteAll(folder + "/config.json", config.dump());
  return folder;
}

// The tensors of a file as floats, to be changed and written again.
struct NamedTensor {
  std::string name;
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

inline std::vector<NamedTensor> ReadTensors(const std::string& path) {
  const auto file = convert::SafeTensorsFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  std::vector<NamedTensor> tensors;
  for (const convert::SafeTensor& t : file->tensors()) {
    tensors.push_back({t.name, t.shape, std::vector<float>(t.num_elements())});
    t.CopyTo(tensors.back().values);
  }
  return tensors;
}

inline void WriteTensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::vector<convert::TensorToWrite> views;
  for (const NamedTensor& t : tensors) views.push_back({t.name, t.shape, t.values});
  const Status status = convert::WriteSafeTensors(path, views, {});
  EXPECT_TRUE(status.ok()) << status.message();
}

struct Converted {
  std::shared_ptr<const convert::hugging_face::Folder> folder;  // `matching` points into it
  convert::hugging_face::Description description;
  convert::hugging_face::Matching matching;
};

// Writes a model file from the folder. What it was made from goes to `made`, which may be null.
inline Status Convert(const std::string& path, const std::string& out,
                      const convert::hugging_face::DescribeOptions& options = {}, Converted* made = nullptr) {
  namespace hf = convert::hugging_face;
  WISP_ASSIGN_OR_RETURN(hf::Folder opened, hf::Folder::Open(path));
  const auto shared = std::make_shared<const hf::Folder>(std::move(opened));
  const hf::Folder& folder = *shared;
  WISP_ASSIGN_OR_RETURN(hf::Description d, hf::Describe(folder, options));
  WISP_ASSIGN_OR_RETURN(hf::Matching matching, hf::MatchTensors(folder, d));
  WISP_ASSIGN_OR_RETURN(const hf::Weights weights, hf::ReadWeights(folder, d, matching));
  ModelContents contents;
  contents.architecture = d.architecture;
  contents.weights = weights.values();
  contents.created_by = "test";
  if (d.architecture.head.kind == HeadKind::kClasses)
    contents.classifier = ClassifierDescription{.class_names = d.class_names};
  WISP_RETURN_IF_ERROR(WriteModel(out, contents));
  if (made != nullptr) *made = {shared, std::move(d), std::move(matching)};
  return OkStatus();
}

// Returns the embedding, the scores of the classes, or those of the next token.
inline std::vector<float> Compute(const std::string& path, const std::vector<int32_t>& ids) {
  Result<ModelFile> model = ModelFile::Open(path, Verify::kFull, Accept::kAny);
  EXPECT_TRUE(model.ok()) << model.status().message();
  const Architecture a = model->architecture();
  Status status;
  std::vector<float> out;
  if (a.head.kind == HeadKind::kNextItem) {
    auto session = Session::Create(std::move(*model), Backend::kSimd);
    EXPECT_TRUE(session.ok()) << session.status().message();
    out.resize(a.num_items);
    status = (*session)->Score(ids, out);
  } else {
    const auto session = ClassifierSession::Create(a, model->tensors(), {});
    const bool classes = a.head.kind == HeadKind::kClasses;
    out.resize(classes ? a.head.num_classes : a.width);
    status = classes ? (*session)->Logits(ids, out) : (*session)->Represent(ids, out);
  }
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

// Returns the difference relative to the largest expected number.
inline double LargestDifference(const std::vector<float>& found, const std::vector<double>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < expected.size() && i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(expected[i] - found[i]));
  }
  return largest > 0 ? difference / largest : difference;
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_TOOLS_HUGGING_FACE_TEST_UTIL_H_
