// Helpers for tests of model and checkpoint files: a small model, and files damaged on purpose.
#ifndef WISP_TESTS_UNIT_MODEL_MODEL_TEST_UTIL_H_
#define WISP_TESTS_UNIT_MODEL_MODEL_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/model/checkpoint.h"
#include "runtime/model/container.h"
#include "runtime/model/model_file.h"
#include "schema/generated/checkpoint_generated.h"
#include "schema/generated/model_generated.h"
#include "tests/unit/core/in_child.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::test {

inline std::string ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A copy of exactly these bytes on 64 bytes, so that an address sanitizer sees every access after its end.
class AlignedCopy {
 public:
  explicit AlignedCopy(std::string_view bytes) : size_(bytes.size()) {
    data_.reset(static_cast<std::byte*>(::operator new(bytes.empty() ? 1 : bytes.size(), kAlignment)));
    std::memcpy(data_.get(), bytes.data(), bytes.size());
  }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  std::byte* data() { return data_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, kAlignment); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_;
};

// Opens bytes as a model and returns the status.
inline Status OpenBytes(const std::string& bytes, Verify verify = Verify::kStructure) {
  const AlignedCopy copy(bytes);
  return ModelFile::OpenMemory("memory.wisp", copy.bytes(), verify).status();
}

inline std::vector<float> SomeWeights(const Architecture& a, float first = 0.25f) {
  std::vector<float> weights(FlatSize(ListParameters(a)), 0.0f);
  for (const ParameterSpec& p : ListParameters(a)) {
    for (size_t i = 0; i < p.size(); ++i) weights[p.offset + i] = first + static_cast<float>(p.offset + i) / 1024;
  }
  return weights;
}

// A model whose file is slightly more than one page: fast enough to damage every byte of it.
struct SmallModel {
  UniformArchitecture architecture{.num_items = 6,
                                   .max_length = 4,
                                   .width = 4,
                                   .num_heads = 2,
                                   .num_blocks = 1,
                                   .inner_width = 3,
                                   .output_bias = OutputBias::kFixed};
  std::vector<float> weights = SomeWeights(architecture);  // all of them are exact in float16
  WeightStorage storage = WeightStorage::kFloat;

  ModelContents contents() const {
    return {.architecture = architecture,
            .weights = weights,
            .item_keys = {"tt0111161", "b", "a", "z\xc3\xa9", "10", "9"},
            .item_names = {"One", "Two", "", "One", "F\xc3\xbcnf", "Six"},
            .provenance = {{.description = "pre-trained on a public catalogue",
                            .steps = 10,
                            .dataset = "synthetic",
                            .date = "2026-11-20"},
                           {.description = "fine-tuned",
                            .mechanisms = {"Poisson-subsampled Gaussian, sigma 1, q 0.01, 100 steps"},
                            .epsilon = 2.5,
                            .delta = 1e-5,
                            .accountant = "PLD",
                            .privacy_unit = "user",
                            .adjacency = "add or remove one",
                            .noise = NoiseOrigin::kSecure,
                            .sampling = "Poisson",
                            .steps = 100,
                            .dataset = "events",
                            .date = "2026-11-21",
                            .base_model_hash = 42,
                            .receipt = std::string(kReceiptBytes, '\x9c')}},
            .description = "a small model",
            .created_by = "model_test 1",
            .output_bias_origin = OutputBiasOrigin::kPrivateCounts,
            .storage = storage};
  }

  // The file's bytes.
  std::string Bytes() const {
    const TemporaryFolder folder;
    const Status status = WriteModel(folder / "m.wisp", contents());
    EXPECT_TRUE(status.ok()) << status.message();
    return ReadBytes(folder / "m.wisp");
  }
};

// Returns a checkpoint with a value in every field.
inline Checkpoint SmallCheckpoint() {
  const Architecture a = SmallModel().architecture;
  return {.architecture = a,
          .weights = SomeWeights(a),
          .first_moment = SomeWeights(a, -1),
          .second_moment = SomeWeights(a, 2),
          .average = SomeWeights(a, 3),
          .order = {4, 0, 3, 1, 2},
          .item_rows = {1, 4},
          .successions = {0, 3, 0x3f000000},
          .order_next = 3,
          .step = 1234567890123,
          .epoch = 7,
          .seed = ~uint64_t{0},
          .streams = {{"sampling", 1}, {"noise 0", ~uint64_t{0}}, {"noise 1", 0}},
          .run_id = "run-\xc3\xa9",
          .config = "learning_rate = 0.001\nbatch = 256\n",
          .created_by = "checkpoint_test 1",
          .base_model_hash = 99,
          .receipt = std::string(kReceiptBytes, '\x63')};
}

// Fields of the header by offset, as documented in runtime/model/container.h; repeated here on purpose.
inline constexpr size_t kVersionAt = 8, kOldestReaderAt = 12, kFileBytesAt = 16, kMetadataOffsetAt = 24,
                        kMetadataBytesAt = 32, kMetadataHashAt = 40, kZeroAt = 48, kHeaderHashAt = 56, kMetadataAt = 64;

template <class T>
T Get(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

template <class T>
void Set(std::string& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

inline uint64_t ComputeHash(std::string_view bytes) {
  return Hash64(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

// Gives damaged bytes valid checksums, as an attacker would.
inline std::string Reseal(std::string bytes) {
  const uint64_t size = Get<uint64_t>(bytes, kMetadataBytesAt);
  if (size <= bytes.size() - kMetadataAt) {
    Set(bytes, kMetadataHashAt, ComputeHash(std::string_view(bytes).substr(kMetadataAt, size)));
  }
  Set(bytes, kHeaderHashAt, ComputeHash(std::string_view(bytes).substr(0, kHeaderHashAt)));
  return bytes;
}

// Returns the file with other metadata, and with `data` as everything from the first segment on; header and checksums
// are valid.
inline std::string WithMetadata(const std::string& bytes, std::string_view metadata, std::string_view data) {
  std::string out = bytes.substr(0, kMetadataAt);
  out += metadata;
  out.resize(container::AlignUp(out.size(), container::kSegmentAlignment), '\0');
  out += data;
  Set<uint64_t>(out, kFileBytesAt, out.size());
  Set<uint64_t>(out, kMetadataBytesAt, metadata.size());
  return Reseal(std::move(out));
}

inline std::string_view GetMetadata(const std::string& bytes) {
  return std::string_view(bytes).substr(kMetadataAt, Get<uint64_t>(bytes, kMetadataBytesAt));
}

inline std::string_view GetData(const std::string& bytes) {
  return std::string_view(bytes).substr(
      container::AlignUp(kMetadataAt + GetMetadata(bytes).size(), container::kSegmentAlignment));
}

// Returns the file after `change` to its unpacked metadata, with valid checksums. Root is schema::Model or
// schema::Checkpoint.
template <class Root>
std::string Changed(const std::string& bytes, const std::function<void(typename Root::NativeTableType&)>& change) {
  typename Root::NativeTableType root;
  flatbuffers::GetRoot<Root>(GetMetadata(bytes).data())->UnPackTo(&root);
  change(root);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Root::Pack(builder, &root), GetMetadata(bytes).substr(4, 4) == "WSPM" ? "WSPM" : "WSPC");
  const std::string_view metadata(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  return WithMetadata(bytes, metadata, GetData(bytes));
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_MODEL_MODEL_TEST_UTIL_H_
