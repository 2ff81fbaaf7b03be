// Model files: they read back as written, and wrong contents are refused with a sentence that says why.
// model_corruption_test.cc tests damage of every byte; model_write_test.cc tests failures of writing.
#include "runtime/model/model_file.h"

#include <gtest/gtest.h>
#if !defined(_WIN32)
#include <sys/stat.h>
#endif

#include <cmath>
#include <limits>

#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::model_file_test {
namespace {

using test::OpenBytes;
using test::SmallModel;
using test::TemporaryFolder;

void ExpectRefused(const Status& status, StatusCode code, const std::string& part) {
  EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code)) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos) << "found: " << status.message() << "\nwanted: " << part;
}

TEST(ModelFile, WrittenModelComesBackWhole) {
  const TemporaryFolder folder;
  const SmallModel model;
  const ModelContents contents = model.contents();
  ASSERT_TRUE(WriteModel(folder / "m.wisp", contents).ok());
  EXPECT_EQ(folder.NumFiles(), 1u);
  const auto file = ModelFile::Open(folder / "m.wisp", Verify::kFull);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->architecture(), model.architecture);
  ASSERT_EQ(file->flat_weights().size(), model.weights.size());
  EXPECT_EQ(std::memcmp(file->flat_weights().data(), model.weights.data(), model.weights.size() * sizeof(float)), 0);
  const auto parameters = ListParameters(model.architecture);
  ASSERT_EQ(file->parameters().size(), parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(file->parameters()[i].name, parameters[i].name);
    EXPECT_EQ(file->Tensor(i), file->flat_weights().data() + parameters[i].offset);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file->Tensor(i)) % 64, 0u);
  }
  EXPECT_TRUE(std::equal(contents.provenance.begin(), contents.provenance.end(), file->provenance().begin(),
                         file->provenance().end()));
  EXPECT_EQ(file->description(), contents.description);
  EXPECT_EQ(file->created_by(), contents.created_by);
  EXPECT_EQ(file->output_bias_origin(), contents.output_bias_origin);
  EXPECT_EQ(file->format_version(), kModelFormatVersion);
  EXPECT_EQ(file->size_bytes(), std::filesystem::file_size(folder / "m.wisp"));
}

TEST(ModelFile, EveryVariantOfTheArchitectureComesBack) {
  const TemporaryFolder folder;
  std::vector<Architecture> variants = test::NewerArchitectures();
  // Encoders of texts.
  Architecture encoder = UniformArchitecture{
      .num_items = 17, .max_length = 3, .width = 12, .num_blocks = 1, .inner_width = 31, .norm = NormPlacement::kPost};
  encoder.attend = Attend::kAll;
  encoder.head.kind = HeadKind::kEmbedding;
  variants.push_back(encoder);
  encoder.head = {
      .kind = HeadKind::kEmbedding, .pooling = Pooling::kMean, .pooler = Pooler::kNone, .unit_length = true};
  variants.push_back(encoder);
  for (const UniformArchitecture& a : std::initializer_list<UniformArchitecture>{
           {.num_items = 1, .max_length = 1, .width = 1, .num_heads = 1, .num_blocks = 0, .inner_width = 1},
           {.num_items = 17,
           .max_length = 3,
           .width = 12,
           .num_heads = 3,
           .num_blocks = 2,
           .inner_width = 31,
           .embedding_scale = 8,
           .norm_epsilon = 1e-8f,
           .activation = ActivationKind::kRelu,
           .norm = NormPlacement::kPost,
           .output_table = OutputTable::kUntied,
           .output_bias = OutputBias::kTrained,
           .positions = PositionAlignment::kEnd,
           .attend = Attend::kAll},
           {.num_items = 100,
           .max_length = 16,
           .width = 16,
           .num_heads = 2,
           .num_blocks = 11,
           .inner_width = 7,
           .output_bias = OutputBias::kFixed,
           .attention_slope = 0.25f},
           {.num_items = 9, .max_length = 6, .width = 4, .inner_width = 6, .temperature = 0.5f}})
    variants.push_back(a);
  for (const Architecture& a : variants) {
    const auto weights = test::SomeWeights(a);
    ASSERT_TRUE(WriteModel(folder / "m.wisp", {.architecture = a, .weights = weights}).ok());
    const auto file = ModelFile::Open(folder / "m.wisp", Verify::kFull, Accept::kAny);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->architecture(), a);
    EXPECT_TRUE(std::equal(weights.begin(), weights.end(), file->flat_weights().begin(), file->flat_weights().end()));
    EXPECT_FALSE(file->has_item_keys());
    EXPECT_FALSE(file->has_item_names());
    EXPECT_EQ(file->item_key(0), "");
    EXPECT_EQ(file->item_name(0), "");
    EXPECT_FALSE(file->FindItem("").has_value());
    EXPECT_TRUE(file->provenance().empty());
  }
}

TEST(ModelFile, ItemsAreFoundByTheirKeysAndNoOthers) {
  const test::AlignedCopy copy(SmallModel().Bytes());
  const auto file = ModelFile::OpenMemory("m", copy.bytes());
  ASSERT_TRUE(file.ok());
  const ModelContents contents = SmallModel().contents();
  for (uint32_t i = 0; i < file->num_items(); ++i) {
    EXPECT_EQ(file->item_key(i), contents.item_keys[i]);
    EXPECT_EQ(file->item_name(i), contents.item_names[i]);
    EXPECT_EQ(file->FindItem(contents.item_keys[i]), std::optional<uint32_t>(i));
  }
  for (const char* absent : {"", "A", "aa", "tt011116", "tt01111611", "z", "\xff", "~"})
    EXPECT_FALSE(file->FindItem(absent).has_value());
}

TEST(ModelFile, MoveKeepsPointersValid) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteModel(folder / "m.wisp", SmallModel().contents()).ok());
  auto first = ModelFile::Open(folder / "m.wisp");
  ASSERT_TRUE(first.ok());
  const float* weights = first->flat_weights().data();
  const std::string_view key = first->item_key(0);
  ModelFile second = *std::move(first);
  EXPECT_EQ(second.flat_weights().data(), weights);
  EXPECT_EQ(key, "tt0111161");
  auto other = ModelFile::Open(folder / "m.wisp");
  ASSERT_TRUE(other.ok());
  *other = std::move(second);
  EXPECT_EQ(other->Tensor(0), weights);
  EXPECT_EQ(*weights, SmallModel().weights[0]);
}

TEST(ModelFile, SameContentsGiveSameBytesAndOneWeightAnotherHash) {
  SmallModel model;
  const std::string bytes = model.Bytes();
  EXPECT_EQ(bytes, model.Bytes());
  const test::AlignedCopy copy(bytes);
  const uint64_t hash = ModelFile::OpenMemory("m", copy.bytes())->content_hash();
  model.weights[3] += 1;
  const test::AlignedCopy changed(model.Bytes());
  EXPECT_NE(ModelFile::OpenMemory("m", changed.bytes())->content_hash(), hash);
}

TEST(ModelFile, GapsAreWrittenAsZerosWhateverTheBufferHolds) {
  SmallModel model;
  const std::string clean = model.Bytes();
  std::vector<bool> used(model.weights.size(), false);
  for (const auto& p : ListParameters(model.architecture))
    std::fill_n(used.begin() + static_cast<ptrdiff_t>(p.offset), p.size(), true);
  size_t gaps = 0;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    model.weights[i] = std::nanf("");
    ++gaps;
  }
  ASSERT_GT(gaps, 0u);
  EXPECT_EQ(model.Bytes(), clean);
}

TEST(ModelFile, BytesAreLaidOutAsDocumented) {
  const SmallModel model;
  const std::string bytes = model.Bytes();
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x89WSPM\r\n\x1a"));
  EXPECT_EQ(test::Get<uint32_t>(bytes, test::kVersionAt), 1u);
  EXPECT_EQ(test::Get<uint32_t>(bytes, test::kOldestReaderAt), 1u);
  EXPECT_EQ(test::Get<uint64_t>(bytes, test::kFileBytesAt), bytes.size());
  EXPECT_EQ(test::Get<uint64_t>(bytes, test::kMetadataOffsetAt), 64u);
  EXPECT_EQ(test::GetMetadata(bytes).substr(4, 4), "WSPM");
  EXPECT_EQ(bytes.size(), 16384 + model.weights.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(bytes.data() + 16384, model.weights.data(), model.weights.size() * sizeof(float)), 0);
  // XXH3-64 of the empty input, from the xxHash specification's reference implementation.
  EXPECT_EQ(test::ComputeHash(""), 0x2d06800538d394c2ull);
}

#if !defined(_WIN32)  // tests/windows/left_out.txt has the reason
TEST(ModelFile, OtherFiles_AreRefusedByNameAndReason) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.wisp", whole = SmallModel().Bytes();
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  struct Case {
    std::string path, bytes;
    StatusCode code;
    std::string part;
  };
  const Case cases[] = {
      {path, "", StatusCode::kInvalidData, "is empty"},
      {path, "x", StatusCode::kInvalidData, "is not a wisp model file"},
      {path, "user item\n1 2\n1 3\n" + std::string(100, 'x'), StatusCode::kInvalidData, "is not a wisp model file"},
      {path, std::string(20000, '\0'), StatusCode::kInvalidData, "is not a wisp model file"},
      {path, whole.substr(0, 8), StatusCode::kInvalidData, "was cut short: it has 8 bytes"},
      {path, whole.substr(0, 20), StatusCode::kInvalidData, "was cut short"},
      {path, whole.substr(0, 64), StatusCode::kInvalidData,
       "has 64 bytes, its header says " + std::to_string(whole.size())},
      {path, whole.substr(0, whole.size() - 1), StatusCode::kInvalidData, "cut short or appended"},
      {path, whole + "\n", StatusCode::kInvalidData, "cut short or appended"},
      {path, "\x89WSPC\r\n\x1a" + whole.substr(8), StatusCode::kInvalidData,
       "is a wisp checkpoint, a wisp model file is needed"},
      {folder.path(), "", StatusCode::kIo, "is a folder"},
      {folder / "absent.wisp", "", StatusCode::kIo, "No such file"},
      {folder / "m.wisp/below", "", StatusCode::kIo, "cannot be opened"},
      {folder / "pipe", "", StatusCode::kIo, "not a regular file"},
      {"/dev/zero", "", StatusCode::kIo, "not a regular file"},
      {"", "", StatusCode::kInvalidArgument, "a file's name is empty"}};
  for (const Case& c : cases) {
    if (c.path == path) test::WriteBytes(path, c.bytes);
    const Status status = ModelFile::Open(c.path).status();
    ExpectRefused(status, c.code, c.part);
    const std::string begin = c.path.empty() ? "" : c.path + ":";
    EXPECT_TRUE(status.message().starts_with(begin)) << status.message();
  }
}

TEST(ModelFile, UnreadableFileIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.wisp";
  ASSERT_TRUE(WriteModel(path, SmallModel().contents()).ok());
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  const int status = test::RunChild([&path] {
    // The superuser may read anything, so the test becomes another user.
    if (geteuid() == 0 && setuid(65534) != 0) return 2;
    const Status s = ModelFile::Open(path).status();
    return s.code() == StatusCode::kIo && s.message().find("Permission denied") != std::string::npos ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}
#endif

TEST(ModelFile, NewerFormatHasItsOwnMessage) {
  std::string bytes = SmallModel().Bytes();
  test::Set<uint32_t>(bytes, test::kVersionAt, 2);
  test::Set<uint32_t>(bytes, test::kOldestReaderAt, 2);
  ExpectRefused(OpenBytes(test::Reseal(bytes)), StatusCode::kUnsupported,
                "memory.wisp: written by format 2 for readers of format 2 or newer, this build reads up to 1");
  // A newer writer wrote a file that older readers may read.
  test::Set<uint32_t>(bytes, test::kOldestReaderAt, 1);
  EXPECT_TRUE(OpenBytes(test::Reseal(bytes), Verify::kFull).ok());
  test::Set<uint32_t>(bytes, test::kOldestReaderAt, 0);
  ExpectRefused(OpenBytes(test::Reseal(bytes)), StatusCode::kInvalidData, "which cannot be");
  test::Set<uint32_t>(bytes, test::kVersionAt, 0);
  test::Set<uint32_t>(bytes, test::kOldestReaderAt, 1);
  ExpectRefused(OpenBytes(test::Reseal(bytes)), StatusCode::kInvalidData, "which cannot be");
}

TEST(ModelFile, MemoryMustBeAligned) {
  const std::string bytes = SmallModel().Bytes();
  const test::AlignedCopy copy(std::string(4, 'x') + bytes);
  ExpectRefused(ModelFile::OpenMemory("m", copy.bytes().subspan(4)).status(), StatusCode::kInvalidArgument,
                "multiple of 64");
}

TEST(ModelFile, HeaderFieldsOutOfRangeAreRefused) {
  const std::string whole = SmallModel().Bytes();
  struct Case {
    size_t offset;
    uint64_t value;
    const char* part;
  };
  const uint64_t huge = ~uint64_t{0};
  const Case cases[] = {{test::kFileBytesAt, huge, "its header says"},
                        {test::kFileBytesAt, 0, "its header says"},
                        {test::kMetadataOffsetAt, 0, "metadata at offset 0"},
                        {test::kMetadataOffsetAt, 128, "metadata at offset 128"},
                        {test::kMetadataOffsetAt, huge, "metadata at offset"},
                        {test::kMetadataBytesAt, 0, "0 bytes of metadata"},
                        {test::kMetadataBytesAt, 4, "metadata"},
                        {test::kMetadataBytesAt, whole.size() - 63, "bytes of metadata, allowed are"},
                        {test::kMetadataBytesAt, huge, "bytes of metadata, allowed are"},
                        {test::kMetadataBytesAt, uint64_t{1} << 40, "1099511627776 bytes of metadata"},
                        {test::kZeroAt, 1, "the header"}};
  for (const Case& c : cases) {
    std::string bytes = whole;
    test::Set(bytes, c.offset, c.value);
    ExpectRefused(OpenBytes(bytes), StatusCode::kInvalidData, "header is damaged");
    ExpectRefused(OpenBytes(test::Reseal(bytes)), StatusCode::kInvalidData, c.part);
  }
}

TEST(ModelFile, MetadataBeyondItsLimitIsRefusedBeforeItIsVerified) {
  const std::string whole = SmallModel().Bytes();
  // Sparse: 64 MiB and 8 bytes of zeros take no disk.
  const TemporaryFolder folder;
  const uint64_t metadata_bytes = container::kMaxMetadataBytes + 8, size = 2 * container::kMaxMetadataBytes;
  std::string header = whole.substr(0, 64);
  test::Set<uint64_t>(header, test::kFileBytesAt, size);
  test::Set<uint64_t>(header, test::kMetadataBytesAt, metadata_bytes);
  test::WriteBytes(folder / "m.wisp", test::Reseal(header));
  std::filesystem::resize_file(folder / "m.wisp", size);
  ExpectRefused(ModelFile::Open(folder / "m.wisp").status(), StatusCode::kInvalidData, "allowed are 1 to 67108864");
}

}  // namespace
}  // namespace wisp::model_file_test
