#include "runtime/model/metadata.h"

#include <bit>

#include "runtime/core/text.h"

namespace wisp::metadata {
namespace {

// The schema nests root, tensor or provenance entry, and one more level; one level is spare.
constexpr flatbuffers::uoffset_t kMaxDepth = 4;
// 256 blocks have 4096 parameters, each a table; the rest is for provenance and streams.
constexpr flatbuffers::uoffset_t kMaxTables = 8192;

const char* TypeName(schema::ElementType type) {
  switch (type) {
    case schema::ElementType::F32:
      return "f32";
    case schema::ElementType::U32:
      return "u32";
    case schema::ElementType::F16:
      return "f16";
    case schema::ElementType::I8Blocks:
      return "int8";
    case schema::ElementType::I4Blocks:
      return "int4";
    case schema::ElementType::F32Panels:
      return "f32 panels";
  }
  return nullptr;
}

std::string ShapeText(const uint64_t* shape, size_t count) {
  std::string text = "[";
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace

bool IsText(std::string_view text, Lines lines) {
  while (!text.empty()) {
    const char c = text.front();
    const bool is_line = c == '\n' || c == '\r' || c == '\t';
    if (static_cast<uint8_t>(c) < 0x20 && !(is_line && lines == Lines::kMany)) return false;
    if (c == 0x7f) return false;
    const size_t length = Utf8Length(text);
    if (length == 0 || IsC1Control(text, length)) return false;
    text.remove_prefix(length);
  }
  return true;
}

Status TextChecker::Check(std::string_view field, const flatbuffers::String* text, Lines lines) {
  if (text == nullptr) return OkStatus();
  const uint64_t cost = uint64_t{text->size()} + 2 * sizeof(flatbuffers::uoffset_t);  // at least an offset and a length
  if (cost > bytes_left_) {
    return InvalidData(name_, ": ", field, ": the texts are larger than the metadata that holds them");
  }
  bytes_left_ -= cost;
  if (IsText(text->string_view(), lines)) return OkStatus();
  return InvalidData(name_, ": ", field, " is not text: allowed is UTF-8 without control characters");
}

namespace {

flatbuffers::Offset<schema::Block> BuildBlock(flatbuffers::FlatBufferBuilder& builder, const BlockSpec& b) {
  const RotarySpec& rotary = b.attention.rotary;
  schema::BlockBuilder out(builder);
  out.add_norm(static_cast<schema::NormPlacement>(b.norm));
  out.add_norm_kind(static_cast<schema::NormKind>(b.norm_kind));
  out.add_norm_epsilon(b.norm_epsilon);
  out.add_residual(static_cast<schema::Residual>(b.residual));
  out.add_biases(static_cast<schema::Biases>(b.biases));
  out.add_num_heads(b.attention.num_heads);
  out.add_num_kv_heads(b.attention.num_kv_heads);
  out.add_head_width(b.attention.head_width);
  out.add_attention_slope(b.attention.slope);
  out.add_rotary_width(rotary.width);
  out.add_rotary_base(rotary.width > 0 ? rotary.base : 0);
  out.add_rotary_interleaved(rotary.width > 0 && rotary.interleaved);
  out.add_inner_width(b.feed_forward.inner_width);
  out.add_activation(static_cast<schema::Activation>(b.feed_forward.activation));
  out.add_gated(b.feed_forward.gated);
  out.add_window(b.attention.window);
  return out.Finish();
}

}  // namespace

flatbuffers::Offset<schema::Architecture> BuildArchitecture(flatbuffers::FlatBufferBuilder& builder,
                                                            const Architecture& a) {
  std::vector<flatbuffers::Offset<schema::Block>> stored;
  for (const BlockSpec& b : a.blocks) {
    stored.push_back(BuildBlock(builder, b));
  }
  const auto blocks = builder.CreateVector(stored);
  flatbuffers::Offset<schema::Adapter> adapter;
  if (a.adapter)
    adapter =
        schema::CreateAdapter(builder, a.adapter->rank, a.adapter->alpha, a.adapter->matrices, a.adapter->has_head);
  schema::ArchitectureBuilder out(builder);
  if (a.adapter) out.add_adapter(adapter);
  out.add_num_items(a.num_items);
  out.add_max_length(a.max_length);
  out.add_width(a.width);
  out.add_item_features(a.item_features);
  out.add_embedding_scale(a.embedding_scale);
  out.add_output_table(static_cast<schema::OutputTable>(a.head.output_table));
  out.add_output_bias(static_cast<schema::OutputBias>(a.head.output_bias));
  out.add_positions(static_cast<schema::PositionAlignment>(a.positions));
  out.add_attend(static_cast<schema::Attend>(a.attend));
  out.add_re_attention(static_cast<schema::ReAttention>(a.re_attention));
  out.add_final_norm_kind(static_cast<schema::NormKind>(a.final_norm_kind));
  out.add_temperature(a.head.temperature);
  out.add_position_table(static_cast<schema::PositionTable>(a.position_table));
  out.add_token_types(a.token_types.count);
  if (a.token_types.separator >= 0) out.add_token_separator(static_cast<uint32_t>(a.token_types.separator));
  out.add_embedding_norm_epsilon(a.embedding_norm_epsilon.value_or(0));
  out.add_pooling(static_cast<schema::Pooling>(a.head.pooling));
  out.add_pooler(static_cast<schema::Pooler>(a.head.pooler));
  out.add_is_encoder(a.head.kind == HeadKind::kEmbedding);
  out.add_unit_length(a.head.unit_length);
  out.add_blocks(blocks);
  out.add_final_norm_epsilon(a.final_norm_epsilon.value_or(0));
  return out.Finish();
}

namespace {

RotarySpec MakeRotary(const schema::Block& b) {
  if (b.rotary_width() == 0) return {};
  return {.width = b.rotary_width(), .base = b.rotary_base(), .interleaved = b.rotary_interleaved()};
}

Architecture AsStored(const schema::Architecture& stored) {
  Architecture a{
      .num_items = stored.num_items(),
      .max_length = stored.max_length(),
      .width = stored.width(),
      .item_features = stored.item_features(),
      .embedding_scale = stored.embedding_scale(),
      .positions = static_cast<PositionAlignment>(stored.positions()),
      .position_table = static_cast<PositionTable>(stored.position_table()),
      .attend = static_cast<Attend>(stored.attend()),
      .re_attention = static_cast<ReAttention>(stored.re_attention()),
      .head = {.kind = stored.is_encoder() ? HeadKind::kEmbedding : HeadKind::kNextItem,
               .output_table = static_cast<OutputTable>(stored.output_table()),
               .output_bias = static_cast<OutputBias>(stored.output_bias()),
               .temperature = stored.temperature(),
               .pooling = static_cast<Pooling>(stored.pooling()),
               .pooler = static_cast<Pooler>(stored.pooler()),
               .unit_length = stored.unit_length()},
  };
  a.token_types.count = stored.token_types();
  if (const auto separator = stored.token_separator())
    a.token_types.separator = static_cast<int32_t>(std::min<uint32_t>(*separator, INT32_MAX));
  for (const schema::Block* b : *stored.blocks()) {
    a.blocks.push_back({.norm = static_cast<NormPlacement>(b->norm()),
                        .norm_kind = static_cast<NormKind>(b->norm_kind()),
                        .norm_epsilon = b->norm_epsilon(),
                        .residual = static_cast<Residual>(b->residual()),
                        .biases = static_cast<Biases>(b->biases()),
                        .attention = {.num_heads = b->num_heads(),
                                      .num_kv_heads = b->num_kv_heads(),
                                      .head_width = b->head_width(),
                                      .slope = b->attention_slope(),
                                      .rotary = MakeRotary(*b),
                                      .window = b->window()},
                        .feed_forward = {.inner_width = b->inner_width(),
                                         .activation = static_cast<ActivationKind>(b->activation()),
                                         .gated = b->gated()}});
  }
  if (stored.final_norm_epsilon() != 0) a.final_norm_epsilon = stored.final_norm_epsilon();
  if (stored.embedding_norm_epsilon() != 0) a.embedding_norm_epsilon = stored.embedding_norm_epsilon();
  a.final_norm_kind = static_cast<NormKind>(stored.final_norm_kind());
  return a;
}

Status Named(const std::string& name, const Status& status) {
  return status.ok() ? status : Status(status.code(), name + ": " + status.message());
}

}  // namespace

Result<Architecture> ReadArchitecture(const std::string& name, const schema::Architecture& stored,
                                      std::optional<uint32_t> num_classes) {
  if (num_classes == 0) return InvalidData(name, ": classifier: num_classes is 0, allowed are 2 to ", kMaxClasses);
  if (stored.blocks()->size() > kMaxBlocks) {
    return InvalidData(name, ": architecture: describes ", stored.blocks()->size(), " blocks, allowed are 0 to ",
                       kMaxBlocks);
  }
  if (stored.is_encoder() && num_classes) return InvalidData(name, ": architecture: it is an encoder and a classifier");
  Architecture a = AsStored(stored);
  if (num_classes) a.head.kind = HeadKind::kClasses, a.head.num_classes = *num_classes;
  WISP_RETURN_IF_ERROR(Named(name, Validate(a)));
  if (const schema::Adapter* adapter = stored.adapter(); adapter != nullptr) {
    a.adapter = AdapterSpec{.rank = adapter->rank(),
                            .alpha = adapter->alpha(),
                            .matrices = adapter->matrices(),
                            .has_head = adapter->has_head()};
    WISP_RETURN_IF_ERROR(Named(name, Validate(a)));
  }
  return a;
}

Status CheckAlignment(const std::string& name, const flatbuffers::Vector<uint64_t>& values) {
  if (values.size() == 0 || reinterpret_cast<uintptr_t>(values.Data()) % alignof(uint64_t) == 0) return OkStatus();
  return InvalidData(name, ": the metadata holds numbers that are not aligned");
}

Status CheckTensor(const std::string& name, const schema::Tensor& tensor, const ExpectedTensor& expected) {
  const std::string which = name + ": tensor " + ToString(tensor.name());
  const char* type = TypeName(tensor.type());
  if (type == nullptr) {
    return InvalidData(which, " has element type ", static_cast<int>(tensor.type()), ", allowed are 0 to ",
                       static_cast<int>(schema::ElementType::MAX));
  }
  if (tensor.type() != expected.type) {
    return Unsupported(which, " has elements of type ", type, ", this build reads it as ",
                       (expected.readable != nullptr ? expected.readable : TypeName(expected.type)));
  }
  const auto& shape = *tensor.shape();
  WISP_RETURN_IF_ERROR(CheckAlignment(name, shape));
  bool equal = shape.size() == expected.shape.size();
  for (size_t i = 0; equal && i < shape.size(); ++i)
    equal = shape.Get(static_cast<flatbuffers::uoffset_t>(i)) == expected.shape[i];
  if (!equal) {
    const std::string found = shape.size() > 4 ? std::to_string(shape.size()) + " dimensions"
                                               : "shape " + ShapeText(shape.data(), shape.size());
    return InvalidData(which, " has ", found, ", the architecture needs ",
                       ShapeText(expected.shape.data(), expected.shape.size()));
  }
  if (tensor.bytes() != expected.bytes) {
    return InvalidData(which, " has ", tensor.bytes(), " bytes, its shape needs ", expected.bytes);
  }
  return OkStatus();
}

container::Array ToArray(const schema::Tensor& tensor) {
  return {.name = ToView(tensor.name()),
          .segment = tensor.segment(),
          .offset = tensor.offset(),
          .bytes = tensor.bytes(),
          .hash = tensor.hash()};
}

bool AllFinite(std::span<const float> values) {
  // A float is infinite or NaN if its exponent has only ones. The test has no branch, so that the loop vectorises.
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (float value : values) found |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & kExponent) == kExponent);
  return found == 0;
}

Status VerifyBuffer(const std::string& name, std::span<const std::byte> metadata, VerifyRoot verify) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(metadata.data()), metadata.size(), kMaxDepth,
                                 kMaxTables);
  if (verify(verifier)) return OkStatus();
  return InvalidData(name, ": the metadata is not a valid FlatBuffer of this kind, or has more than ", kMaxTables,
                     " tables");
}

Status AsArgument(const Status& status) { return status.ok() ? status : InvalidArgument(status.message()); }

}  // namespace wisp::metadata
