// The allowed metadata of a model. Every false entry below has valid checksums, so only the semantic checks stand
// between it and the runtime. The tests also check what WriteModel refuses to write.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/model/metadata.h"
#include "runtime/model/model_file.h"
#include "tests/unit/model/lies.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::model_metadata_test {
namespace {

using schema::ModelT;
using test::Changed;
using test::ExpectAllRefused;
using test::OpenBytes;
using test::SmallModel;

constexpr auto kUnsupported = StatusCode::kUnsupported;

schema::BlockT& FirstBlock(ModelT& m) { return *m.architecture->blocks[0]; }
void AddBlock(ModelT& m) { m.architecture->blocks.push_back(std::make_unique<schema::BlockT>(FirstBlock(m))); }

TEST(ModelMetadata, ArchitectureOutOfRangeIsRefused) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  ExpectAllRefused({
      {"num_items is 0", [](ModelT& m) { m.architecture->num_items = 0; }},
      {"num_items is 4294967295", [](ModelT& m) { m.architecture->num_items = UINT32_MAX; }},
      {"max_length is 0", [](ModelT& m) { m.architecture->max_length = 0; }},
      {"width is 4294967295", [](ModelT& m) { m.architecture->width = UINT32_MAX; }},
      {"embedding_scale", [nan](ModelT& m) { m.architecture->embedding_scale = nan; }},
      {"embedding_scale", [infinity](ModelT& m) { m.architecture->embedding_scale = infinity; }},
      {"embedding_scale", [](ModelT& m) { m.architecture->embedding_scale = 0; }},
      {"attention_slope", [nan](ModelT& m) { FirstBlock(m).attention_slope = nan; }},
      {"attention_slope", [](ModelT& m) { FirstBlock(m).attention_slope = -0.1f; }},
      {"attention_slope", [](ModelT& m) { FirstBlock(m).attention_slope = 101; }},
      {"norm_epsilon", [nan](ModelT& m) { FirstBlock(m).norm_epsilon = nan; }},
      {"norm_epsilon", [](ModelT& m) { FirstBlock(m).norm_epsilon = 0; }},
      {"activation is 4", [](ModelT& m) { FirstBlock(m).activation = schema::Activation(4); }},
      {"norm is 255", [](ModelT& m) { FirstBlock(m).norm = schema::NormPlacement(255); }},
      {"output_table is 2", [](ModelT& m) { m.architecture->output_table = schema::OutputTable(2); }},
      {"output_bias is 3", [](ModelT& m) { m.architecture->output_bias = schema::OutputBias(3); }},
      {"positions is 2", [](ModelT& m) { m.architecture->positions = schema::PositionAlignment(2); }},
      {"attend is 2", [](ModelT& m) { m.architecture->attend = schema::Attend(2); }},
      {"number of parameters",
       [](ModelT& m) {
         m.architecture->num_items = kMaxItems;
         m.architecture->width = kMaxWidth;
       }},
  });
}

TEST(ModelMetadata, BlocksOutOfRangeAreRefused) {
  ExpectAllRefused({
      {"describes 257 blocks, allowed are 0 to 256",
       [](ModelT& m) {
         while (m.architecture->blocks.size() < 257) AddBlock(m);
       }},
      {"num_heads is 0", [](ModelT& m) { FirstBlock(m).num_heads = 0; }},
      {"num_kv_heads is 7, allowed are 1 to", [](ModelT& m) { FirstBlock(m).num_kv_heads = 7; }},
      {"num_kv_heads is 0, allowed are 1 to", [](ModelT& m) { FirstBlock(m).num_kv_heads = 0; }},
      {"num_kv_heads is 2, which does not divide num_heads 3",
       [](ModelT& m) { FirstBlock(m).num_heads = 3, m.architecture->blocks[0]->num_kv_heads = 2; }},
      {"window is 16385, allowed are 0 to 16384", [](ModelT& m) { FirstBlock(m).window = 16385; }},
      {"window is 3, and positions attend all others",
       [](ModelT& m) { FirstBlock(m).window = 3, m.architecture->attend = schema::Attend::All; }},
      {"rotary_width is 1, allowed are even",
       [](ModelT& m) { FirstBlock(m).rotary_width = 1, m.architecture->blocks[0]->rotary_base = 100; }},
      {"rotary_width is 99, allowed are 0 to", [](ModelT& m) { FirstBlock(m).rotary_width = 99; }},
      {"rotary_base is 0, allowed is above 1", [](ModelT& m) { FirstBlock(m).rotary_width = 2; }},
      {"rotary_base is nan",
       [](ModelT& m) { FirstBlock(m).rotary_width = 2, m.architecture->blocks[0]->rotary_base = std::nanf(""); }},
      {"norm_kind is 9", [](ModelT& m) { FirstBlock(m).norm_kind = schema::NormKind(9); }},
      {"residual is 9", [](ModelT& m) { FirstBlock(m).residual = schema::Residual(9); }},
      {"final_norm_kind is 9", [](ModelT& m) { m.architecture->final_norm_kind = schema::NormKind(9); }},
      {"position_table is 9", [](ModelT& m) { m.architecture->position_table = schema::PositionTable(9); }},
      {"no variance is known for a gated feed-forward",
       [](ModelT& m) { FirstBlock(m).gated = true, m.architecture->re_attention = schema::ReAttention::On; }},
      {"head_width is 0", [](ModelT& m) { FirstBlock(m).head_width = 0; }},
      {"num_heads * head_width is", [](ModelT& m) { FirstBlock(m).head_width = kMaxWidth; }},
      {"inner_width is 0", [](ModelT& m) { FirstBlock(m).inner_width = 0; }},
      {"attention_slope", [](ModelT& m) { FirstBlock(m).attention_slope = -1; }},
      {"norm_epsilon", [](ModelT& m) { FirstBlock(m).norm_epsilon = 1; }},
      {"norm_epsilon", [](ModelT& m) { m.architecture->final_norm_epsilon = -1; }},
      {"norm is 9", [](ModelT& m) { FirstBlock(m).norm = schema::NormPlacement(9); }},
      {"activation is 9", [](ModelT& m) { FirstBlock(m).activation = schema::Activation(9); }},
      {"has a tensor \"final_norm.gain\"", [](ModelT& m) { m.architecture->final_norm_epsilon = 0; }},
      {"tensor block0.qkv.weight has shape", [](ModelT& m) { ++FirstBlock(m).head_width; }},
  });
}

TEST(ModelMetadata, TensorsThatContradictTheArchitectureAreRefused) {
  ExpectAllRefused({
      {"tensor item_embedding has shape [6, 4], the architecture needs [7, 4]",
       [](ModelT& m) { m.architecture->num_items = 7; }},
      {"tensor position_embedding has shape [4, 4], the architecture needs [16384, 4]",
       [](ModelT& m) { m.architecture->max_length = kMaxLength; }},
      {"tensor block1.attention_norm.gain is missing", [](ModelT& m) { AddBlock(m); }},
      {"has a tensor \"block0.attention_norm.gain\", which this architecture does not have",
       [](ModelT& m) { m.architecture->blocks.clear(); }},
      {"tensor output_embedding is missing",
       [](ModelT& m) { m.architecture->output_table = schema::OutputTable::Untied; }},
      {"tensor item_embedding is missing", [](ModelT& m) { m.tensors.clear(); }},
      {"tensor output_bias is missing", [](ModelT& m) { m.tensors.pop_back(); }},
      {"has two tensors \"item_embedding\"", [](ModelT& m) { m.tensors[1]->name = "item_embedding"; }},
      {"has two tensors \"output_bias\"",
       [](ModelT& m) {
         for (int i = 0; i < 5000; ++i) m.tensors.push_back(std::make_unique<schema::TensorT>(*m.tensors.back()));
       }},
      {"has a tensor \"Item_embedding\"", [](ModelT& m) { m.tensors[0]->name = "Item_embedding"; }},
      {"has a tensor of 5000 bytes", [](ModelT& m) { m.tensors[0]->name = std::string(5000, 'x'); }},
      {"name of tensor 0 is not text", [](ModelT& m) { m.tensors[0]->name = std::string("item_embedding\0", 15); }},
      {"has a tensor \"\"", [](ModelT& m) { m.tensors[0]->name = ""; }},
      {"shape [4, 6], the architecture needs [6, 4]",
       [](ModelT& m) {
         m.tensors[0]->shape = {4, 6};
       }},
      {"shape [24], the architecture", [](ModelT& m) { m.tensors[0]->shape = {24}; }},
      {"shape [], the architecture", [](ModelT& m) { m.tensors[0]->shape = {}; }},
      {"1000 dimensions", [](ModelT& m) { m.tensors[0]->shape.assign(1000, 1); }},
      {"shape [4294967302, 4]",
       [](ModelT& m) {
         m.tensors[0]->shape = {(uint64_t{1} << 32) + 6, 4};
       }},
      {"has element type 9, allowed are 0 to 5", [](ModelT& m) { m.tensors[0]->type = schema::ElementType(9); }},
      {"tensor item_embedding has 96 bytes, its shape needs 48",
       [](ModelT& m) { m.tensors[0]->type = schema::ElementType::F16; }},
      {"has elements of type u32, this build reads it as f32, f32 panels, f16, int8 or int4",
       [](ModelT& m) { m.tensors[0]->type = schema::ElementType::U32; }, kUnsupported},
      {"tensor block0.attention_norm.gain has elements of type f16, this build reads it as f32",
       [](ModelT& m) { m.tensors[2]->type = schema::ElementType::F16; }, kUnsupported},
      {"tensor block0.qkv.weight has elements of type f16, this build reads it as f32, f32 panels, int8 or int4",
       [](ModelT& m) { m.tensors[4]->type = schema::ElementType::F16; }, kUnsupported},
      {"tensor output_bias has elements of type f16",
       [](ModelT& m) { m.tensors.back()->type = schema::ElementType::F16; }, kUnsupported},
  });
}

TEST(ModelMetadata, Float16Tables_NeedTheirTypeAndPlace) {
  ExpectAllRefused(
      {
          {"tensor item_embedding has 48 bytes, its shape needs 96",
           [](ModelT& m) { m.tensors[0]->type = schema::ElementType::F32; }},
          {"has elements of type u32, this build reads it as f32, f32 panels, f16, int8 or int4",
           [](ModelT& m) { m.tensors[0]->type = schema::ElementType::U32; }, kUnsupported},
          {"has elements of type u32", [](ModelT& m) { m.tensors[1]->type = schema::ElementType::U32; }, kUnsupported},
          {"has element type 9, allowed are 0 to 5", [](ModelT& m) { m.tensors[0]->type = schema::ElementType(9); }},
          {"tensor item_embedding has 46 bytes, its shape needs 48", [](ModelT& m) { m.tensors[0]->bytes = 46; }},
          {"tensor item_embedding has 96 bytes, its shape needs 48", [](ModelT& m) { m.tensors[0]->bytes = 96; }},
          {"tensor position_embedding has shape [4, 4], the architecture needs [5, 4]",
           [](ModelT& m) { m.architecture->max_length = 5; }},
          // Right after the tensor before it, not on 64 bytes.
          {"tensor position_embedding is at offset 48", [](ModelT& m) { m.tensors[1]->offset = 48; }},
          {"tensor position_embedding is at offset 128", [](ModelT& m) { m.tensors[1]->offset = 128; }},
          {"would end behind the file", [](ModelT& m) { m.segment_bytes[0] += 64; }},
          {"the segments end at byte", [](ModelT& m) { m.segment_bytes[0] -= 64; }},
      },
      {.storage = WeightStorage::kHalf});
}

TEST(ModelMetadata, PlacesOutsideTheFileOrOnEachOtherAreRefused) {
  const uint64_t huge = ~uint64_t{0};
  ExpectAllRefused({
      {"has 92 bytes, its shape needs 96", [](ModelT& m) { m.tensors[0]->bytes = 92; }},
      {"bytes, its shape needs 96", [](ModelT& m) { m.tensors[0]->bytes = huge; }},
      {"tensor item_embedding is at offset 64", [](ModelT& m) { m.tensors[0]->offset = 64; }},
      {"tensor position_embedding is at offset 0", [](ModelT& m) { m.tensors[1]->offset = 0; }},
      {"tensor position_embedding is at offset 18446744073709551615", [](ModelT& m) { m.tensors[1]->offset = huge; }},
      {"of segment 1", [](ModelT& m) { m.tensors[0]->segment = 1; }},
      {"of segment 4294967295", [](ModelT& m) { m.tensors[3]->segment = UINT32_MAX; }},
      {"tensor position_embedding is at offset 128", [](ModelT& m) { std::swap(m.tensors[0], m.tensors[1]); }},
      {"has 0 segments", [](ModelT& m) { m.segment_bytes = {}; }},
      {"has 100000 segments", [](ModelT& m) { m.segment_bytes.assign(100000, 0); }},
      {"segment 0 has 0 bytes", [](ModelT& m) { m.segment_bytes = {0}; }},
      {"multiples of 64", [](ModelT& m) { m.segment_bytes[0] -= 4; }},
      {"would end behind the file", [](ModelT& m) { m.segment_bytes[0] += 64; }},
      {"would end behind the file", [](ModelT& m) { m.segment_bytes[0] = huge & ~uint64_t{63}; }},
      {"would end behind the file", [](ModelT& m) { m.segment_bytes.push_back(64); }},
      {"the segments end at byte", [](ModelT& m) { m.segment_bytes[0] -= 64; }},
  });
}

TEST(ModelMetadata, InvalidTexts_AreRefused) {
  for (const char* bad :
       {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xf0\x80\x80\x80", "\x80",
        "\x1b[2J", "a\nb", "\x7f", "\302\2332J", "\xf8\x88\x80\x80\x80"}) {
    ExpectAllRefused({{"item_names is not text: allowed is UTF-8 without control characters (item 2)",
                       [bad](ModelT& m) { m.item_names[2] = bad; }},
                      {"item_keys is not text", [bad](ModelT& m) { m.item_keys[5] = bad; }}});
  }
  for (const char* good : {"", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8e\xac", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf4\x8f\xbf\xbf", "\xc2\xa0", "~ \"'"}) {
    const Status status =
        OpenBytes(Changed<schema::Model>(SmallModel().Bytes(), [good](ModelT& m) { m.item_names[2] = good; }));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  ExpectAllRefused({
      {"item_names is not text", [](ModelT& m) { m.item_names[0] = std::string("a\0b", 3); }},
      {"description is not text", [](ModelT& m) { m.description = "\x01"; }},
      {"created_by is not text", [](ModelT& m) { m.created_by = "two\nlines"; }},
      {"provenance[1].accountant is not text", [](ModelT& m) { m.provenance[1]->accountant = "\xff"; }},
      {"provenance[1].mechanisms is not text", [](ModelT& m) { m.provenance[1]->mechanisms[0]->text = "\xff"; }},
      {"item_names has 5 entries, allowed are 0 or one for each of 6 items",
       [](ModelT& m) { m.item_names.pop_back(); }},
      {"item_keys has 7 entries", [](ModelT& m) { m.item_keys.push_back("x"); }},
  });
}

TEST(ModelMetadata, InvalidKeyOrder_IsRefused) {
  ExpectAllRefused({
      {"item_key_order has 5 entries, there are 6 keys", [](ModelT& m) { m.item_key_order.pop_back(); }},
      {"item_key_order has 0 entries", [](ModelT& m) { m.item_key_order.clear(); }},
      {"item_key_order has 6 entries, there are 0 keys", [](ModelT& m) { m.item_keys.clear(); }},
      {"names item 6, allowed are 0 to 5", [](ModelT& m) { m.item_key_order[5] = 6; }},
      {"is not sorted at entry 1", [](ModelT& m) { std::swap(m.item_key_order[0], m.item_key_order[1]); }},
      {"two items have the key \"10\"", [](ModelT& m) { m.item_key_order[1] = m.item_key_order[0]; }},
      {"two items have the key \"9\"", [](ModelT& m) { m.item_keys[4] = "9"; }},
  });
}

TEST(ModelMetadata, ClaimsWithoutGroundsAreRefused) {
  const double nan = std::nan("");
  ExpectAllRefused({
      {"provenance[1] states an epsilon, but its noise is not from the secure generator",
       [](ModelT& m) { m.provenance[1]->noise = schema::NoiseSource::Reproducible; }},
      {"not from the secure generator", [](ModelT& m) { m.provenance[1]->noise = schema::NoiseSource::None; }},
      {"provenance[1] states an epsilon, but names no mechanism",
       [](ModelT& m) { m.provenance[1]->mechanisms.clear(); }},
      {"epsilon is -1", [](ModelT& m) { m.provenance[1]->epsilon = -1; }},
      {"epsilon is nan", [nan](ModelT& m) { m.provenance[1]->epsilon = nan; }},
      {"provenance[1].receipt has 31 bytes, allowed are 32", [](ModelT& m) { m.provenance[1]->receipt.pop_back(); }},
      {"delta is 1", [](ModelT& m) { m.provenance[1]->delta = 1; }},
      {"delta is -", [](ModelT& m) { m.provenance[0]->delta = -0.5; }},
      {"delta is nan", [nan](ModelT& m) { m.provenance[0]->delta = nan; }},
      {"noise is 3, allowed are 0 to 2", [](ModelT& m) { m.provenance[0]->noise = schema::NoiseSource(3); }},
      {"output_bias_origin is 4, allowed are 0 to 3",
       [](ModelT& m) { m.output_bias_origin = schema::OutputBiasOrigin(4); }},
      {"provenance has 1025 entries, allowed are 1024",
       [](ModelT& m) {
         while (m.provenance.size() < 1025) m.provenance.push_back(std::make_unique<schema::ProvenanceT>());
       }},
      {"is not a valid FlatBuffer",
       [](ModelT& m) {
         while (m.provenance.size() < 9000) m.provenance.push_back(std::make_unique<schema::ProvenanceT>());
       }},
  });
}

TEST(ModelMetadata, OtherLayoutsAreReadTensorByTensor) {
  const SmallModel model;
  const std::string whole = model.Bytes();
  // Two segments: the first tensor alone, on a page of its own, and the others in reverse.
  const auto parameters = ListParameters(model.architecture);
  std::string data;
  std::vector<uint64_t> segment_bytes(2, 0);
  const auto append = [&](size_t i, uint64_t& end) {
    const std::string_view values(reinterpret_cast<const char*>(model.weights.data() + parameters[i].offset),
                                  parameters[i].size() * sizeof(float));
    const uint64_t offset = end;
    data += values;
    data.resize(container::AlignUp(data.size(), 64), '\0');
    end = container::AlignUp(offset + values.size(), 64);
    return offset;
  };
  append(0, segment_bytes[0]);
  data.resize(container::kSegmentAlignment, '\0');
  std::vector<uint64_t> offsets(parameters.size(), 0);
  for (size_t i = parameters.size() - 1; i > 0; --i) offsets[i] = append(i, segment_bytes[1]);
  const std::string changed = Changed<schema::Model>(whole, [&](ModelT& m) {
    m.segment_bytes = segment_bytes;
    for (size_t i = 1; i < parameters.size(); ++i) {
      m.tensors[i]->segment = 1;
      m.tensors[i]->offset = offsets[i];
    }
    std::reverse(m.tensors.begin() + 1, m.tensors.end());
  });
  const std::string bytes = test::WithMetadata(changed, test::GetMetadata(changed), data);
  const test::AlignedCopy copy(bytes);
  const auto file = ModelFile::OpenMemory("m", copy.bytes(), Verify::kFull);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(file->flat_weights().empty());
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(std::equal(file->Tensor(i), file->Tensor(i) + parameters[i].size(),
                           model.weights.data() + parameters[i].offset))
        << parameters[i].name;
  }
  // The gap between the segments is checked although no checksum covers it.
  std::string damaged = bytes;
  damaged[damaged.size() - segment_bytes[1] - 1] = 1;
  EXPECT_NE(OpenBytes(damaged).message().find("bytes before it are damaged"), std::string::npos);
}

TEST(ModelMetadata, OneSegmentInAnotherOrderIsNotTheFlatBuffer) {
  const SmallModel model;
  const auto parameters = ListParameters(model.architecture);
  std::string data;
  std::vector<uint64_t> offsets(parameters.size(), 0);
  for (size_t i = parameters.size(); i-- > 0;) {
    offsets[i] = data.size();
    data.append(reinterpret_cast<const char*>(model.weights.data() + parameters[i].offset),
                parameters[i].size() * sizeof(float));
    data.resize(container::AlignUp(data.size(), 64), '\0');
  }
  const std::string changed = Changed<schema::Model>(model.Bytes(), [&](ModelT& m) {
    for (size_t i = 0; i < parameters.size(); ++i) m.tensors[i]->offset = offsets[i];
    std::reverse(m.tensors.begin(), m.tensors.end());
  });
  const test::AlignedCopy copy(test::WithMetadata(changed, test::GetMetadata(changed), data));
  const auto file = ModelFile::OpenMemory("m", copy.bytes(), Verify::kFull);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(file->flat_weights().empty());
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(*file->Tensor(i), model.weights[parameters[i].offset]) << parameters[i].name;
  }
}

TEST(ModelMetadata, NotFiniteWeightsAreFoundByFullVerificationOnly) {
  for (const uint32_t bits : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u}) {
    std::string bytes = SmallModel().Bytes();
    test::Set(bytes, 16384, bits);
    bytes = Changed<schema::Model>(
        bytes, [&bytes](ModelT& m) { m.tensors[0]->hash = test::ComputeHash(test::GetData(bytes).substr(0, 96)); });
    EXPECT_TRUE(OpenBytes(bytes).ok());
    EXPECT_NE(OpenBytes(bytes, Verify::kFull).message().find("tensor item_embedding holds a number that is not finite"),
              std::string::npos);
  }
}

struct SharedParts {
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> item_names;
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<schema::Provenance>>> provenance;
};

// Returns the small model after `change`, with parts built by hand: packing would write shared parts once for each use.
std::string WithShared(const std::function<void(ModelT&)>& change,
                       const std::function<SharedParts(flatbuffers::FlatBufferBuilder&)>& build) {
  const std::string whole = SmallModel().Bytes();
  ModelT root;
  schema::GetModel(test::GetMetadata(whole).data())->UnPackTo(&root);
  change(root);
  flatbuffers::FlatBufferBuilder builder;
  const SharedParts parts = build(builder);
  const auto architecture = schema::CreateArchitecture(builder, root.architecture.get());
  const auto segments = builder.CreateVector(root.segment_bytes);
  std::vector<flatbuffers::Offset<schema::Tensor>> tensors;
  for (const auto& t : root.tensors) tensors.push_back(schema::CreateTensor(builder, t.get()));
  const auto tensor_list = builder.CreateVector(tensors);
  schema::ModelBuilder out(builder);
  out.add_architecture(architecture);
  out.add_segment_bytes(segments);
  out.add_tensors(tensor_list);
  out.add_item_names(parts.item_names);
  out.add_provenance(parts.provenance);
  schema::FinishModelBuffer(builder, out.Finish());
  const std::string_view metadata(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  return test::WithMetadata(whole, metadata, test::GetData(whole));
}

// Offsets may share their targets. A small file must not make a reader look at one text a million times.
TEST(ModelMetadata, TextsSharedAMillionTimesAreRefusedAtOnce) {
  const uint32_t num_items = 1000000;
  for (const size_t text_size : {0, 1000000}) {
    const std::string bytes = WithShared(
        [](ModelT& m) {
          m.architecture->num_items = num_items;
          m.tensors.front()->shape = {num_items, 4};
          m.tensors.front()->bytes = num_items * 16;
          m.tensors.back()->shape = {num_items};
          m.tensors.back()->bytes = num_items * 4;
        },
        [text_size](flatbuffers::FlatBufferBuilder& builder) {
          const auto text = builder.CreateString(std::string(text_size, 'x'));
          return SharedParts{.item_names = builder.CreateVector(
                                 std::vector<flatbuffers::Offset<flatbuffers::String>>(num_items, text))};
        });
    EXPECT_NE(OpenBytes(bytes).message().find("item_names: the texts are larger than the metadata"), std::string::npos);
  }
}

// Shared parts below the root, where the verifier itself would visit each use: it stops at its limit on tables.
TEST(ModelMetadata, MechanismsSharedByAllEntriesAreRefusedByTheVerifier) {
  const auto bytes = [](size_t num_mechanisms) {
    return WithShared([](ModelT&) {},
                      [num_mechanisms](flatbuffers::FlatBufferBuilder& builder) {
                        const auto one = schema::CreateMechanism(builder, builder.CreateString("x"));
                        const auto mechanisms = builder.CreateVector(
                            std::vector<flatbuffers::Offset<schema::Mechanism>>(num_mechanisms, one));
                        std::vector<flatbuffers::Offset<schema::Provenance>> entries;
                        for (int i = 0; i < 1000; ++i) {
                          schema::ProvenanceBuilder entry(builder);
                          entry.add_mechanisms(mechanisms);
                          entries.push_back(entry.Finish());
                        }
                        return SharedParts{.provenance = builder.CreateVector(entries)};
                      });
  };
  EXPECT_NE(OpenBytes(bytes(1000000)).message().find("is not a valid FlatBuffer"), std::string::npos);
  EXPECT_TRUE(OpenBytes(bytes(1)).ok());
}

// The verifier accepts vectors of 64-bit numbers on 4 bytes; damage under the sanitizers showed it.
TEST(ModelMetadata, NumbersThatAreNotAlignedAreRefused) {
  const std::string whole = SmallModel().Bytes();
  size_t seen = 0;
  for (size_t at = test::kMetadataAt; at + 4 <= test::kMetadataAt + test::GetMetadata(whole).size(); at += 4) {
    for (const uint32_t step : {4u, static_cast<uint32_t>(-4)}) {
      std::string bytes = whole;
      test::Set(bytes, at, test::Get<uint32_t>(bytes, at) + step);
      const test::AlignedCopy copy(test::Reseal(std::move(bytes)));
      const auto* metadata = reinterpret_cast<const uint8_t*>(copy.bytes().data()) + test::kMetadataAt;
      flatbuffers::Verifier verifier(metadata, test::GetMetadata(whole).size());
      if (!schema::VerifyModelBuffer(verifier)) continue;
      const schema::Model& root = *schema::GetModel(metadata);
      const auto is_aligned = [](const flatbuffers::Vector<uint64_t>& values) {
        return values.size() == 0 || reinterpret_cast<uintptr_t>(values.Data()) % 8 == 0;
      };
      bool aligned = is_aligned(*root.segment_bytes());
      for (const schema::Tensor* tensor : *root.tensors()) aligned &= is_aligned(*tensor->shape());
      if (aligned) continue;
      ++seen;
      EXPECT_NE(ModelFile::OpenMemory("m", copy.bytes()).status().message().find("not aligned"), std::string::npos)
          << "word at " << at;
    }
  }
  EXPECT_GT(seen, 0u);
}

TEST(ModelMetadata, CountsBeyondTheFileAreRefusedAtOnce) {
  const std::string whole = SmallModel().Bytes();
  const uint32_t num_tensors = static_cast<uint32_t>(ListParameters(SmallModel().architecture).size());
  // Every aligned word of the metadata that is the number of tensors, items or a length becomes two billion.
  size_t changed = 0;
  for (size_t at = test::kMetadataAt; at + 4 <= test::kMetadataAt + test::GetMetadata(whole).size(); at += 4) {
    const uint32_t value = test::Get<uint32_t>(whole, at);
    if (value != num_tensors && value != 6) continue;
    for (const uint32_t count : {0x7fffffffu, 0xffffffffu, 0x40000000u, 0x3fffffffu}) {
      std::string bytes = whole;
      test::Set(bytes, at, count);
      EXPECT_FALSE(OpenBytes(test::Reseal(bytes)).ok()) << "word at " << at;
    }
    ++changed;
  }
  EXPECT_GE(changed, 4u);
}

}  // namespace
}  // namespace wisp::model_metadata_test
