// The allowed metadata of matrices in blocks of integers, and the checks of their scales.
#include <gtest/gtest.h>

#include "runtime/model/model_file.h"
#include "tests/unit/model/lies.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::block_metadata_test {
namespace {

using schema::ModelT;
using test::Changed;
using test::ExpectAllRefused;
using test::OpenBytes;
using test::SmallModel;

constexpr auto kUnsupported = StatusCode::kUnsupported;

// `bad` stands first in the item table, which has one panel.
template <class Number>
void ExpectFoundByFullVerificationOnly(WeightStorage storage, kernels::PanelBits bits, Number bad) {
  std::string bytes = SmallModel{.storage = storage}.Bytes();
  test::Set(bytes, 16384, bad);
  const size_t table = kernels::PanelMatrixBytes(bits, 6, 4);
  bytes = Changed<schema::Model>(
      bytes, [&](ModelT& m) { m.tensors[0]->hash = test::ComputeHash(test::GetData(bytes).substr(0, table)); });
  EXPECT_TRUE(OpenBytes(bytes).ok());
  EXPECT_NE(OpenBytes(bytes, Verify::kFull).message().find("tensor item_embedding holds a number that is not finite"),
            std::string::npos);
}

TEST(BlockMetadata, ScalesThatAreNotFiniteAreFoundByFullVerificationOnly) {
  ExpectFoundByFullVerificationOnly(WeightStorage::kInt8, kernels::PanelBits::kEight, uint16_t{0x7c00});
}

TEST(BlockMetadata, FloatsInPanelsThatAreNotFiniteAreFoundByFullVerificationOnly) {
  ExpectFoundByFullVerificationOnly(WeightStorage::kPanels, kernels::PanelBits::kThirtyTwo,
                                    std::numeric_limits<float>::infinity());
}

TEST(BlockMetadata, PanelsAreHeldToTheirMatricesAndBytes) {
  ExpectAllRefused(
      {
          {"tensor item_embedding has 512 bytes, its shape needs 96",
           [](ModelT& m) { m.tensors[0]->type = schema::ElementType::F32; }},
          {"tensor position_embedding has elements of type f32 panels, this build reads it as f32 or f16",
           [](ModelT& m) { m.tensors[1]->type = schema::ElementType::F32Panels; }, kUnsupported},
      },
      {.storage = WeightStorage::kPanels});
}

TEST(BlockMetadata, BlocksAreHeldToTheirMatricesAndBytes) {
  ExpectAllRefused(
      {
          {"tensor item_embedding has 576 bytes, its shape needs 320",
           [](ModelT& m) { m.tensors[0]->type = schema::ElementType::I4Blocks; }},
          {"tensor block0.qkv.weight has 575 bytes, its shape needs 576", [](ModelT& m) { m.tensors[4]->bytes = 575; }},
          {"tensor position_embedding has elements of type int8, this build reads it as f32 or f16",
           [](ModelT& m) { m.tensors[1]->type = schema::ElementType::I8Blocks; }, kUnsupported},
          {"tensor block0.attention_norm.gain has elements of type int4, this build reads it as f32",
           [](ModelT& m) { m.tensors[2]->type = schema::ElementType::I4Blocks; }, kUnsupported},
      },
      {.storage = WeightStorage::kInt8});
}

}  // namespace
}  // namespace wisp::block_metadata_test
