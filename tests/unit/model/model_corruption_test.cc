// Damage: every length and every byte of a small model file. Plain damage is refused, or it changes one weight and full
// verification finds it. Damage with corrected checksums may be accepted, but then everything that was accepted can be
// read. In a build with -DWISP_SANITIZE=address the sanitizers check that it can be read.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/model/checkpoint.h"
#include "runtime/model/model_file.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::model_corruption_test {
namespace {

using test::SmallModel;

// The file with float32 tables, and with float16 tables.
class ModelCorruption : public testing::TestWithParam<WeightStorage> {
 protected:
  SmallModel model_{.storage = GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Tables, ModelCorruption, testing::Values(WeightStorage::kFloat, WeightStorage::kHalf),
                         [](const auto& info) { return info.param == WeightStorage::kHalf ? "Halves" : "Floats"; });

// Reads everything that an open model offers; the sum keeps the compiler from dropping it.
double ReadEverything(const ModelFile& file) {
  double sum = static_cast<double>(file.content_hash() % 2 + file.description().size() + file.created_by().size());
  for (size_t i = 0; i < file.parameters().size(); ++i) {
    for (size_t k = 0; k < file.parameters()[i].size(); ++k) {
      const StoredTensor& tensor = file.tensors()[i];
      const float value = tensor.halves != nullptr ? kernels::ToFloat(tensor.halves[k]) : tensor.floats[k];
      sum += std::isfinite(value) ? value : 0;
    }
  }
  std::vector<float> room;
  for (float value : file.AllWeights(room)) sum += std::isfinite(value) ? value : 0;
  for (float value : file.flat_weights()) sum += std::isfinite(value) ? value : 0;
  for (uint32_t i = 0; i < file.num_items(); ++i) {
    const std::string key(file.item_key(i)), name(file.item_name(i));
    sum += static_cast<double>(key.size() + name.size()) + file.FindItem(key).value_or(0);
  }
  for (const ProvenanceEntry& entry : file.provenance())
    sum += static_cast<double>(entry.description.size() + entry.mechanisms.size());
  return sum;
}

// A refusal says that the data are damaged or of a newer version, and its sentence has the file's name.
void ExpectProperRefusal(const Status& status) {
  EXPECT_TRUE(status.code() == StatusCode::kInvalidData || status.code() == StatusCode::kUnsupported)
      << status.message();
  EXPECT_EQ(status.message().rfind("memory: ", 0), 0u) << status.message();
}

size_t NumDifferentWeights(const ModelFile& file, const SmallModel& model) {
  size_t count = 0;
  std::vector<float> room;
  const std::span<const float> weights = file.AllWeights(room);
  for (size_t i = 0; i < model.weights.size(); ++i) {
    count += std::memcmp(&weights[i], &model.weights[i], sizeof(float)) != 0;
  }
  return count;
}

TEST_P(ModelCorruption, EveryTruncationIsRefused) {
  const std::string whole = model_.Bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    const test::AlignedCopy copy(std::string_view(whole).substr(0, size));
    const auto file = ModelFile::OpenMemory("memory", copy.bytes());
    ASSERT_FALSE(file.ok()) << size << " bytes";
    ExpectProperRefusal(file.status());
  }
}

// A writer forgot the tail but patched the header: lengths and checksums agree with each other.
TEST_P(ModelCorruption, EveryTruncationWithAFittingHeaderIsRefused) {
  const std::string whole = model_.Bytes();
  for (size_t size = test::kMetadataAt; size < whole.size(); ++size) {
    std::string bytes = whole.substr(0, size);
    test::Set<uint64_t>(bytes, test::kFileBytesAt, size);
    const Status status = test::OpenBytes(test::Reseal(std::move(bytes)));
    ASSERT_FALSE(status.ok()) << size << " bytes";
  }
}

TEST_P(ModelCorruption, EveryDamagedByteIsRefusedOrChangesOneWeightAndIsFound) {
  const std::string whole = model_.Bytes();
  test::AlignedCopy copy(whole);
  size_t accepted = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const uint8_t mask : {0x01, 0x10, 0x80, 0xff}) {
      copy.data()[at] ^= std::byte{mask};
      const auto file = ModelFile::OpenMemory("memory", copy.bytes());
      if (file.ok()) {
        ++accepted;
        ASSERT_GE(at, container::kSegmentAlignment) << "a damaged header, metadata or gap was accepted";
        ASSERT_EQ(file->item_key(0), "tt0111161");
        ASSERT_LE(NumDifferentWeights(*file, model_), 1u);
        const Status full = file->VerifyWeights();
        ASSERT_FALSE(full.ok()) << "byte " << at;
        ExpectProperRefusal(full);
      } else {
        ExpectProperRefusal(file.status());
      }
      copy.data()[at] ^= std::byte{mask};
    }
  }
  EXPECT_EQ(accepted, 4 * (whole.size() - container::kSegmentAlignment))
      << "the weights, and nothing else, are not looked at";
  EXPECT_TRUE(ModelFile::OpenMemory("memory", copy.bytes(), Verify::kFull).ok());
}

TEST_P(ModelCorruption, EveryDamagedByteWithFittingChecksumsIsSafe) {
  const std::string whole = model_.Bytes();
  const size_t metadata_end = test::kMetadataAt + test::GetMetadata(whole).size();
  double sum = 0;
  size_t accepted = 0;
  for (size_t at = 0; at < metadata_end; ++at) {
    for (const uint8_t mask : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      const test::AlignedCopy copy(test::Reseal(std::move(bytes)));
      const auto file = ModelFile::OpenMemory("memory", copy.bytes());
      if (file.ok()) {
        sum += ReadEverything(*file);
        ++accepted;
      } else {
        ExpectProperRefusal(file.status());
      }
    }
  }
  EXPECT_TRUE(std::isfinite(sum));
  // Other texts, other hashes or another version make a legitimate file. Numbers of the structure do not.
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, 9 * metadata_end);
}

TEST_P(ModelCorruption, RandomDamageWithFittingChecksumsIsSafe) {
  const uint64_t seed = 20261121;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::string whole = model_.Bytes();
  const size_t metadata_bytes = test::GetMetadata(whole).size();
  const uint32_t words[] = {0,    1,    2,      4,          6,          64,         0x7f,
                            0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffc};
  double sum = 0;
  size_t accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    for (size_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = test::kMetadataAt + random() % metadata_bytes / 4 * 4;
      switch (random() % 3) {
        case 0:
          test::Set(bytes, at, words[random() % std::size(words)]);
          break;
        case 1:
          test::Set(bytes, at, static_cast<uint32_t>(random()));
          break;
        default:
          test::Set(bytes, at, test::Get<uint32_t>(bytes, test::kMetadataAt + random() % metadata_bytes / 4 * 4));
          break;
      }
    }
    const test::AlignedCopy copy(test::Reseal(std::move(bytes)));
    const auto file = ModelFile::OpenMemory("memory", copy.bytes());
    if (!file.ok()) continue;
    sum += ReadEverything(*file);
    ++accepted;
  }
  EXPECT_TRUE(std::isfinite(sum));
  EXPECT_GT(accepted, 0u) << "nothing came past the checks: the test looks at less than it says";
}

// The checksums must fit the parts that they cover: here the metadata belongs to another file than the header.
TEST_P(ModelCorruption, PartsOfTwoFilesDoNotMakeOne) {
  SmallModel other = model_;
  other.weights[0] += 1;
  const std::string a = model_.Bytes(), b = other.Bytes();
  ASSERT_EQ(a.size(), b.size());
  EXPECT_FALSE(test::OpenBytes(a.substr(0, 64) + b.substr(64)).ok());
  EXPECT_TRUE(test::OpenBytes(a.substr(0, 16384) + b.substr(16384)).ok());
  EXPECT_FALSE(test::OpenBytes(a.substr(0, 16384) + b.substr(16384), Verify::kFull).ok());
}

class CheckpointCorruption : public testing::Test {
 protected:
  CheckpointCorruption() {
    const Status status = WriteCheckpoint(path_, test::SmallCheckpoint());
    EXPECT_TRUE(status.ok()) << status.message();
    whole_ = test::ReadBytes(path_);
  }
  // Written in place: some file systems sync a file that is truncated and written anew, which takes milliseconds each.
  Status Read(const std::string& bytes) {
    std::fstream out(path_, std::ios::binary | std::ios::in | std::ios::out);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    return ReadCheckpoint(path_).status();
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "memory", whole_;
};

TEST_F(CheckpointCorruption, EveryDamagedByteIsFound) {
  for (size_t at = 0; at < whole_.size(); ++at) {
    std::string bytes = whole_;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    const Status status = Read(bytes);
    ASSERT_FALSE(status.ok()) << "byte " << at;
    ASSERT_EQ(status.message().rfind(path_ + ": ", 0), 0u) << status.message();
  }
  EXPECT_TRUE(Read(whole_).ok());
}

TEST_F(CheckpointCorruption, EveryTruncationIsRefused) {
  for (size_t size = whole_.size(); size-- > 0;) {
    std::filesystem::resize_file(path_, size);
    const Status status = ReadCheckpoint(path_).status();
    ASSERT_FALSE(status.ok()) << size << " bytes";
    ASSERT_EQ(status.message().rfind(path_ + ": ", 0), 0u) << status.message();
  }
}

TEST_F(CheckpointCorruption, DamagedMetadataWithFittingChecksumsIsSafe) {
  const size_t metadata_end = test::kMetadataAt + test::GetMetadata(whole_).size();
  for (size_t at = 0; at < metadata_end; ++at) {
    for (const uint8_t mask : {0x01, 0x08, 0x80, 0xff}) {
      std::string bytes = whole_;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      const Status status = Read(test::Reseal(std::move(bytes)));
      ASSERT_TRUE(status.ok() || status.message().rfind(path_ + ": ", 0) == 0) << status.message();
    }
  }
}

}  // namespace
}  // namespace wisp::model_corruption_test
