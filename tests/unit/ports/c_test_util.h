// Helpers for tests of the C interface: a small model file, and structs of every size followed by guard bytes.
#ifndef WISP_TESTS_UNIT_PORTS_C_TEST_UTIL_H_
#define WISP_TESTS_UNIT_PORTS_C_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "ports/c/wisp.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::test {

inline const UniformArchitecture kTiny = {
    .num_items = 12, .max_length = 6, .width = 8, .num_heads = 2, .num_blocks = 1, .inner_width = 8};

// Writes a model with items "k0" .. "k11". Its weights are random, in the words of `wisp new`, so that sampling from
// them is free.
inline void WriteTiny(const std::string& path, uint32_t seed = 1, OutputBias bias = OutputBias::kNone) {
  UniformArchitecture tiny = kTiny;
  tiny.output_bias = bias;
  const std::vector<float> weights = wisp::test::RandomWeights(tiny, seed);
  ModelContents contents{
      .architecture = tiny,
      .weights = weights,
      .provenance = {
          {.description = "random weights", .mechanisms = {"random"}, .epsilon = 0, .noise = NoiseOrigin::kSecure}}};
  for (uint32_t i = 0; i < kTiny.num_items; ++i) contents.item_keys.push_back("k" + std::to_string(i));
  const Status written = WriteModel(path, contents);
  ASSERT_TRUE(written.ok()) << written.message();
}

// Sets `bytes` bytes of the tensor, from `at` on, to 0xFF in the file: NaN, and another checksum.
inline void DamageTensor(const std::string& path, const std::string& tensor, size_t at, size_t bytes) {
  std::string file = ReadBytes(path);
  const std::vector<float> weights = [&] {
    std::vector<float> room;
    const auto model = ModelFile::Open(path);
    const std::span<const float> all = model->AllWeights(room);
    return std::vector<float>(all.begin(), all.end());
  }();
  const size_t data = file.size() - weights.size() * sizeof(float);
  ASSERT_EQ(std::memcmp(file.data() + data, weights.data(), weights.size() * sizeof(float)), 0)
      << "the weights are not the end of the file";
  for (const ParameterSpec& p : ListParameters(kTiny)) {
    if (p.name == tensor)
      return std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(data + p.offset * sizeof(float) + at), bytes,
                         '\xff'),
             WriteBytes(path, file);
  }
  FAIL() << "no tensor " << tensor;
}

// A caller's struct, cut to `size` bytes: the bytes after it must be neither read nor written.
template <class Struct>
class Cut {
 public:
  explicit Cut(const Struct& filled, size_t size) : size_(size), bytes_(sizeof(Struct) + 64, std::byte{0xa5}) {
    Struct copy = filled;
    copy.size = size;
    std::memcpy(bytes_.data(), &copy, std::min(size, sizeof(Struct)));
    if (size < sizeof(size_t)) std::memcpy(bytes_.data(), &size, sizeof(size_t));
  }
  Struct* get() { return reinterpret_cast<Struct*>(bytes_.data()); }
  // Returns true if nothing from `size` on was written.
  bool GuardsHold() const {
    for (size_t i = std::max(size_, sizeof(size_t)); i < bytes_.size(); ++i) {
      if (bytes_[i] != std::byte{0xa5}) return false;
    }
    return true;
  }
  // Returns true if a version may have had this size: 8 and above, no field cut in two.
  bool IsPossible() const { return size_ >= sizeof(size_t) && size_ % alignof(size_t) == 0; }

 private:
  size_t size_;
  std::vector<std::byte> bytes_;
};

// Calls `check(cut)` with the struct at every size from 0 to its own.
template <class Struct, class Check>
void AtEverySize(const Struct& filled, Check&& check) {
  for (size_t size = 0; size <= sizeof(Struct); ++size) {
    Cut<Struct> cut(filled, size);
    SCOPED_TRACE("size " + std::to_string(size));
    check(cut);
    EXPECT_TRUE(cut.GuardsHold());
  }
}

// A field of an enum's type with any number that a caller in C may put there.
template <class Enum>
void Put(Enum& field, int32_t number) {
  static_assert(sizeof(Enum) == sizeof(number));
  std::memcpy(&field, &number, sizeof(number));
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_PORTS_C_TEST_UTIL_H_
