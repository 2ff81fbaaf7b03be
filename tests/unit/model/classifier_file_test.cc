// Classifier files: they read back as written; neither reader takes the other's files; false metadata and damage are
// refused.
#include "runtime/model/model_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/model/model_test_util.h"

namespace wisp::classifier_file_test {
namespace {

using schema::ModelT;
using test::Changed;

struct SmallClassifier {
  Architecture architecture = UniformArchitecture{.num_items = 5,
                                                  .max_length = 3,
                                                  .width = 4,
                                                  .num_heads = 2,
                                                  .num_blocks = 1,
                                                  .inner_width = 3,
                                                  .attend = Attend::kAll,
                                                  .num_classes = 3};
  ClassifierDescription description{
      .class_names = {"bad", "f\xc3\xbcr", "good"}, .norm_bound = 1.5, .tokenizer = Tokenizer::kWhitespaceLower};
  std::vector<float> weights = Weights();

  std::vector<float> Weights() const {
    std::vector<float> w(FlatSize(ListParameters(architecture)), 0.0f);
    for (const ParameterSpec& p : ListParameters(architecture)) {
      for (size_t i = 0; i < p.size(); ++i) w[p.offset + i] = 0.25f + static_cast<float>(p.offset + i) / 1024;
    }
    return w;
  }
  ModelContents contents() const {
    return {.architecture = architecture,
            .classifier = description,
            .weights = weights,
            .item_keys = {"[CLS]", "[UNK]", "a", "b", "c"},
            .provenance = {{.description = "trained", .steps = 3, .dataset = "texts", .date = "2026-11-21"}},
            .description = "a small classifier",
            .created_by = "classifier_file_test 1"};
  }
  std::string Bytes() const {
    const test::TemporaryFolder folder;
    const Status status = WriteModel(folder / "c.wisp", contents());
    EXPECT_TRUE(status.ok()) << status.message();
    return test::ReadBytes(folder / "c.wisp");
  }
};

Status OpenBytes(const std::string& bytes, Verify verify = Verify::kStructure) {
  const test::AlignedCopy copy(bytes);
  return ModelFile::OpenMemory("memory", copy.bytes(), verify, Accept::kClassifier).status();
}

TEST(ClassifierFile, WhatIsWrittenIsReadBack) {
  const SmallClassifier small;
  const test::TemporaryFolder folder;
  ASSERT_TRUE(WriteModel(folder / "c.wisp", small.contents()).ok());
  const auto file = ModelFile::Open(folder / "c.wisp", Verify::kFull, Accept::kClassifier);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->classifier(), small.description);
  EXPECT_EQ(file->architecture(), small.architecture);
  EXPECT_TRUE(
      std::equal(small.weights.begin(), small.weights.end(), file->flat_weights().begin(), file->flat_weights().end()));
  EXPECT_EQ(file->FindItem("b"), std::optional<uint32_t>(3));
  ASSERT_EQ(file->provenance().size(), 1u);
  EXPECT_EQ(file->provenance()[0], small.contents().provenance[0]);
  EXPECT_TRUE(file->is_classifier());
  EXPECT_TRUE(ModelFile::Open(folder / "c.wisp", Verify::kFull, Accept::kAny).ok());
}

TEST(ClassifierFile, DefaultsAreReadBack) {
  SmallClassifier small;
  small.description.class_names.clear();
  small.description.norm_bound = 0;
  small.description.tokenizer = Tokenizer::kNone;
  ModelContents contents = small.contents();
  contents.item_keys.clear();
  const test::TemporaryFolder folder;
  ASSERT_TRUE(WriteModel(folder / "c.wisp", contents).ok());
  const auto file = ModelFile::Open(folder / "c.wisp", Verify::kStructure, Accept::kClassifier);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->classifier(), small.description);
}

TEST(ClassifierFile, Successions_AreRefused) {
  const std::string bytes = test::Changed<schema::Model>(
      SmallClassifier().Bytes(), [](schema::ModelT& m) { m.successions.emplace_back(0, 1, 1.0f); });
  const Status refused = OpenBytes(bytes);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidData);
  EXPECT_NE(refused.message().find("has successions of items; allowed are those of recommenders"), std::string::npos)
      << refused.message();
}

TEST(ClassifierFile, NeitherReaderTakesTheOthersFiles) {
  const Status as_recommender = test::OpenBytes(SmallClassifier().Bytes());
  EXPECT_EQ(as_recommender.code(), StatusCode::kInvalidData);
  EXPECT_NE(as_recommender.message().find("is a classifier"), std::string::npos) << as_recommender.message();
  const Status as_classifier = OpenBytes(test::SmallModel().Bytes());
  EXPECT_EQ(as_classifier.code(), StatusCode::kInvalidData);
  EXPECT_NE(as_classifier.message().find("is no classifier"), std::string::npos) << as_classifier.message();
  const test::TemporaryFolder folder;
  test::WriteBytes(folder / "m.wisp", test::SmallModel().Bytes());
  const auto any = ModelFile::Open(folder / "m.wisp", Verify::kFull, Accept::kAny);
  ASSERT_TRUE(any.ok());
  EXPECT_FALSE(any->is_classifier());
}

// Such a reader sees the file without the fields that it does not know.
TEST(ClassifierFile, ReaderFromBeforeClassifiersRefusesItsTensors) {
  const Status status = test::OpenBytes(Changed<schema::Model>(SmallClassifier().Bytes(), [](ModelT& m) {
    m.classifier.reset();
    m.class_names.clear();
  }));
  EXPECT_EQ(status.code(), StatusCode::kInvalidData);
  EXPECT_NE(status.message().find("has a tensor \"pooler.weight\""), std::string::npos) << status.message();
}

TEST(ClassifierFile, LiesAreRefused) {
  struct Lie {
    const char* sentence;
    std::function<void(ModelT&)> tell;
    StatusCode code = StatusCode::kInvalidData;
  };
  const Lie lies[] = {
      {"num_classes is 1, allowed are 2 to", [](ModelT& m) { m.classifier->num_classes = 1; }},
      {"num_classes is 4294967295", [](ModelT& m) { m.classifier->num_classes = 0xffffffff; }},
      {"the architecture needs [4, 4]",
       [](ModelT& m) {
         m.classifier->num_classes = 4;
         m.class_names.emplace_back("new");
       }},
      {"tokenizer is 3", [](ModelT& m) { m.classifier->tokenizer = schema::WordTokenizer(3); },
       StatusCode::kUnsupported},
      {"norm_bound is -1", [](ModelT& m) { m.classifier->norm_bound = -1; }},
      {"norm_bound is inf", [](ModelT& m) { m.classifier->norm_bound = INFINITY; }},
      {"norm_bound is ", [](ModelT& m) { m.classifier->norm_bound = NAN; }},
      {"has a tokenizer, but no item_keys",
       [](ModelT& m) {
         m.item_keys.clear();
         m.item_key_order.clear();
       }},
      {"class_names has 2 entries, allowed are 0 or one for each of 3 classes",
       [](ModelT& m) { m.class_names.pop_back(); }},
      {"two classes have the name \"bad\"", [](ModelT& m) { m.class_names[2] = "bad"; }},
      {"a class has an empty name", [](ModelT& m) { m.class_names[1] = ""; }},
      {"class_names is not text", [](ModelT& m) { m.class_names[1] = "a\x1b[2J"; }},
      {"class_names are given, but it is no classifier", [](ModelT& m) { m.classifier.reset(); }},
      {"attend must be all", [](ModelT& m) { m.architecture->attend = schema::Attend::Causal; }},
      {"tensor head.bias is missing", [](ModelT& m) { m.tensors.pop_back(); }},
  };
  const std::string whole = SmallClassifier().Bytes();
  ASSERT_TRUE(OpenBytes(Changed<schema::Model>(whole, [](ModelT&) {}), Verify::kFull).ok());
  for (const Lie& lie : lies) {
    const Status status = OpenBytes(Changed<schema::Model>(whole, lie.tell));
    EXPECT_EQ(status.code(), lie.code) << lie.sentence << ": " << status.message();
    EXPECT_NE(status.message().find(lie.sentence), std::string::npos) << lie.sentence << ": " << status.message();
    EXPECT_EQ(status.message().rfind("memory: ", 0), 0u) << status.message();
  }
}

TEST(ClassifierFile, WriterRefusesWhatReadersWould) {
  const test::TemporaryFolder folder;
  const auto write = [&](const std::function<void(SmallClassifier&)>& change) {
    SmallClassifier small;
    change(small);
    return WriteModel(folder / "c.wisp", small.contents());
  };
  EXPECT_EQ(write([](SmallClassifier& s) { s.architecture.head.num_classes = 1; }).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(write([](SmallClassifier& s) {
              s.description.class_names = {"a", "b", "a"};
            }).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(write([](SmallClassifier& s) { s.description.norm_bound = NAN; }).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(write([](SmallClassifier& s) { s.weights.back() = 0, s.weights[0] = NAN; }).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(write([](SmallClassifier& s) { s.weights.pop_back(); }).code(), StatusCode::kInvalidArgument);
  SmallClassifier small;
  ModelContents contents = small.contents();
  contents.architecture.width = 8;
  EXPECT_EQ(WriteModel(folder / "c.wisp", contents).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(folder.NumFiles(), 0u);
}

TEST(ClassifierFile, EveryTruncationIsRefused) {
  const std::string whole = SmallClassifier().Bytes();
  for (size_t size = 0; size < whole.size(); ++size)
    ASSERT_FALSE(OpenBytes(whole.substr(0, size)).ok()) << size << " bytes";
}

TEST(ClassifierFile, EveryDamagedByteIsRefusedOrIsAWeightAndFound) {
  const SmallClassifier small;
  const std::string whole = small.Bytes();
  test::AlignedCopy copy(whole);
  size_t accepted = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    copy.data()[at] ^= std::byte{0x10};
    const auto file = ModelFile::OpenMemory("memory", copy.bytes(), Verify::kStructure, Accept::kClassifier);
    if (file.ok()) {
      ++accepted;
      ASSERT_GE(at, container::kSegmentAlignment);
      ASSERT_EQ(file->classifier(), small.description);
      ASSERT_FALSE(file->VerifyWeights().ok()) << "byte " << at;
    }
    copy.data()[at] ^= std::byte{0x10};
  }
  EXPECT_EQ(accepted, whole.size() - container::kSegmentAlignment);
}

TEST(ClassifierFile, DamagedMetadataWithFittingChecksumsIsSafe) {
  const std::string whole = SmallClassifier().Bytes();
  const size_t metadata_end = test::kMetadataAt + test::GetMetadata(whole).size();
  double sum = 0;
  size_t accepted = 0;
  for (size_t at = 0; at < metadata_end; ++at) {
    for (const uint8_t mask : {0x01, 0x04, 0x20, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      const test::AlignedCopy copy(test::Reseal(std::move(bytes)));
      const auto file = ModelFile::OpenMemory("memory", copy.bytes(), Verify::kStructure, Accept::kClassifier);
      if (!file.ok()) continue;
      ++accepted;
      const ClassifierDescription& d = file->classifier();
      ASSERT_TRUE(Validate(file->architecture()).ok());
      ASSERT_TRUE(d.norm_bound >= 0 && std::isfinite(d.norm_bound));
      ASSERT_TRUE(d.class_names.empty() || d.class_names.size() == file->architecture().head.num_classes);
      for (const std::string& name : d.class_names) sum += static_cast<double>(name.size());
      for (float w : file->flat_weights()) sum += w;
    }
  }
  EXPECT_TRUE(std::isfinite(sum));
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, 5 * metadata_end);
}

}  // namespace
}  // namespace wisp::classifier_file_test
