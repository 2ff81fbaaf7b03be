#include "runtime/model/checkpoint.h"

#include <algorithm>

#include "runtime/core/file.h"
#include "runtime/core/hash.h"
#include "runtime/model/container.h"
#include "runtime/model/metadata.h"
#include "runtime/model/model_file.h"
#include "schema/generated/checkpoint_generated.h"

namespace wisp {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr container::Format kCheckpointFormat{
    .kind = 'C', .noun = "wisp checkpoint", .version = kCheckpointFormatVersion, .oldest_reader = 1};

constexpr size_t kMaxStreams = 4096;
constexpr size_t kNumArrays = 8;

// The arrays by name, and their members of Checkpoint. Exactly one of the two pointers is set.
struct ArraySlot {
  const char* name;
  std::vector<float> Checkpoint::*floats;
  std::vector<uint32_t> Checkpoint::*indices;
  bool spans_all = false;  // the array has all parameters; or the last ones, for a run beside a model (MayBeHeld)
};
constexpr ArraySlot kSlots[kNumArrays] = {{"weights", &Checkpoint::weights, nullptr, true},
                                          {"first_moment", &Checkpoint::first_moment, nullptr},
                                          {"second_moment", &Checkpoint::second_moment, nullptr},
                                          {"average", &Checkpoint::average, nullptr, true},
                                          {"order", nullptr, &Checkpoint::order},
                                          {"item_rows", nullptr, &Checkpoint::item_rows},
                                          {"head_releases", nullptr, &Checkpoint::head_releases},
                                          {"successions", nullptr, &Checkpoint::successions}};

std::span<const std::byte> SlotBytes(const Checkpoint& c, const ArraySlot& slot) {
  return slot.floats ? std::as_bytes(std::span(c.*slot.floats)) : std::as_bytes(std::span(c.*slot.indices));
}

// The metadata, verified and checked.
struct Metadata {
  const schema::Checkpoint* root = nullptr;
  Architecture architecture;
  uint64_t flat_size = 0;
  std::vector<const ArraySlot*> slots;  // one for each array, in the order of the file
  std::vector<container::Array> arrays;
};

const ArraySlot* FindSlot(std::string_view name) {
  for (const ArraySlot& slot : kSlots) {
    if (name == slot.name) return &slot;
  }
  return nullptr;
}

// True if a run that leaves its base in a file may hold this many weights: those of the last parameters.
bool MayBeHeld(const Metadata& metadata, uint64_t count) {
  if (metadata.root->base_model_hash() == 0) return false;
  const std::vector<ParameterSpec> parameters = ListParameters(metadata.architecture);
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](const ParameterSpec& p) { return metadata.flat_size - p.offset == count; });
}

Status ReadArray(const std::string& name, const schema::Tensor& tensor, metadata::TextChecker& texts,
                 Metadata& metadata) {
  WISP_RETURN_IF_ERROR(texts.Check("name of an array", tensor.name(), metadata::Lines::kOne));
  if (tensor.name()->size() > 80) {
    return InvalidData(name, ": the name of an array has ", tensor.name()->size(), " bytes, allowed are 80");
  }
  const ArraySlot* slot = FindSlot(metadata::ToView(tensor.name()));
  if (slot == nullptr) {
    return InvalidData(name, ": has an array \"", metadata::ToString(tensor.name()), "\", which is unknown");
  }
  for (const ArraySlot* other : metadata.slots) {
    if (other == slot) return InvalidData(name, ": has two arrays ", slot->name);
  }
  const bool is_float = slot->floats != nullptr;
  // An order of records or a list of rows may have any length; the file's size bounds it. Moments cover the trained
  // parameters, and so do the weights beside a base; the trainer knows their number.
  const bool spans_all = slot->spans_all && !metadata.architecture.adapter;
  const uint64_t most = is_float ? metadata.flat_size : UINT32_MAX;
  uint64_t count = tensor.shape()->size() == 1 ? std::min<uint64_t>(tensor.shape()->Get(0), most) : 0;
  if (spans_all && !MayBeHeld(metadata, count)) count = metadata.flat_size;
  const metadata::ExpectedTensor expected{.type = is_float ? schema::ElementType::F32 : schema::ElementType::U32,
                                          .shape = {&count, 1},
                                          .bytes = count * sizeof(uint32_t)};
  WISP_RETURN_IF_ERROR(metadata::CheckTensor(name, tensor, expected));
  metadata.slots.push_back(slot);
  metadata.arrays.push_back(metadata::ToArray(tensor));
  return OkStatus();
}

Status CheckStreams(const std::string& name, const schema::Checkpoint& root, metadata::TextChecker& texts) {
  if (root.random() > schema::RandomSource::MAX) {
    return InvalidData(name, ": random is ", static_cast<uint64_t>(root.random()), ", allowed are 0 to ",
                       static_cast<uint64_t>(schema::RandomSource::MAX));
  }
  const auto* streams = root.streams();
  if (streams == nullptr || streams->size() == 0) return OkStatus();
  if (root.random() == schema::RandomSource::Secure) {
    return InvalidData(name,
                       ": has positions of secure random streams; they must not be saved, the noise would repeat");
  }
  if (streams->size() > kMaxStreams) {
    return InvalidData(name, ": has ", streams->size(), " streams, allowed are ", kMaxStreams);
  }
  std::vector<std::string_view> seen;
  for (const schema::Stream* stream : *streams) {
    WISP_RETURN_IF_ERROR(texts.Check("name of a stream", stream->name(), metadata::Lines::kOne));
    seen.push_back(metadata::ToView(stream->name()));
  }
  std::sort(seen.begin(), seen.end());
  if (const auto twice = std::adjacent_find(seen.begin(), seen.end()); twice != seen.end()) {
    return InvalidData(name, ": has two streams \"", std::string(twice->substr(0, 80)), "\"");
  }
  return OkStatus();
}

Result<Metadata> ReadMetadata(const std::string& name, std::span<const std::byte> bytes) {
  WISP_RETURN_IF_ERROR(metadata::VerifyBuffer(name, bytes, schema::VerifyCheckpointBuffer));
  Metadata metadata{.root = schema::GetCheckpoint(bytes.data())};
  const schema::Checkpoint& root = *metadata.root;
  const std::optional<uint32_t> classes =
      root.num_classes() > 0 ? std::optional(root.num_classes()) : std::optional<uint32_t>();
  WISP_ASSIGN_OR_RETURN(metadata.architecture, metadata::ReadArchitecture(name, *root.architecture(), classes));
  metadata.flat_size = FlatSize(ListParameters(metadata.architecture));
  WISP_RETURN_IF_ERROR(metadata::CheckAlignment(name, *root.segment_bytes()));
  metadata::TextChecker texts(name, bytes.size());
  if (root.arrays()->size() > kNumArrays) {
    return InvalidData(name, ": has ", root.arrays()->size(), " arrays, allowed are ", kNumArrays);
  }
  for (const schema::Tensor* array : *root.arrays()) WISP_RETURN_IF_ERROR(ReadArray(name, *array, texts, metadata));
  if (std::find(metadata.slots.begin(), metadata.slots.end(), &kSlots[0]) == metadata.slots.end()) {
    return InvalidData(name, ": has no weights");
  }
  uint64_t order_size = 0;
  for (size_t i = 0; i < metadata.slots.size(); ++i) {
    if (metadata.slots[i]->indices == &Checkpoint::order) order_size = metadata.arrays[i].bytes / sizeof(uint32_t);
  }
  if (root.order_next() > order_size) {
    return InvalidData(name, ": order_next is ", root.order_next(), ", allowed are 0 to ", order_size);
  }
  if (root.receipt() != nullptr && root.receipt()->size() != kReceiptBytes)
    return InvalidData(name, ": receipt has ", root.receipt()->size(), " bytes, allowed are ", kReceiptBytes);
  WISP_RETURN_IF_ERROR(texts.Check("run_id", root.run_id(), metadata::Lines::kOne));
  WISP_RETURN_IF_ERROR(texts.Check("created_by", root.created_by(), metadata::Lines::kOne));
  WISP_RETURN_IF_ERROR(texts.Check("config", root.config(), metadata::Lines::kMany));
  WISP_RETURN_IF_ERROR(CheckStreams(name, root, texts));
  return metadata;
}

Status CheckFinite(const std::string& name, const Checkpoint& c) {
  for (const ArraySlot& slot : kSlots) {
    if (slot.floats && !metadata::AllFinite(c.*slot.floats)) {
      return InvalidData(name, ": ", slot.name, " holds a number that is not finite");
    }
  }
  return OkStatus();
}

void Build(FlatBufferBuilder& builder, const Checkpoint& c, std::span<const std::span<const std::byte>> arrays) {
  const container::Placement placement = container::Place(arrays);
  std::vector<Offset<schema::Tensor>> saved;
  for (const ArraySlot& slot : kSlots) {
    const auto bytes = SlotBytes(c, slot);
    if (bytes.empty()) continue;
    const uint64_t count = bytes.size() / sizeof(float), offset = placement.offsets[saved.size()];
    const auto name = builder.CreateString(slot.name);
    const auto shape = builder.CreateVector(&count, 1);
    const auto type = slot.floats ? schema::ElementType::F32 : schema::ElementType::U32;
    saved.push_back(schema::CreateTensor(builder, name, type, shape, 0, offset, bytes.size(), Hash64(bytes)));
  }
  std::vector<Offset<schema::Stream>> streams;
  for (const StreamPosition& s : c.streams) {
    streams.push_back(schema::CreateStream(builder, builder.CreateString(s.name), s.position));
  }
  const auto architecture = metadata::BuildArchitecture(builder, c.architecture);
  const auto segments = builder.CreateVector(&placement.segment_bytes, 1);
  const auto array_list = builder.CreateVector(saved);
  const auto stream_list = builder.CreateVector(streams);
  const auto run_id = builder.CreateString(c.run_id);
  const auto config = builder.CreateString(c.config);
  const auto created_by = builder.CreateString(c.created_by);
  const auto receipt = c.receipt.empty()
                           ? Offset<flatbuffers::Vector<uint8_t>>()
                           : builder.CreateVector(reinterpret_cast<const uint8_t*>(c.receipt.data()), c.receipt.size());
  schema::CheckpointBuilder out(builder);
  out.add_architecture(architecture);
  out.add_segment_bytes(segments);
  out.add_arrays(array_list);
  out.add_run_id(run_id);
  out.add_config(config);
  out.add_created_by(created_by);
  out.add_base_model_hash(c.base_model_hash);
  out.add_receipt(receipt);
  out.add_step(c.step);
  out.add_epoch(c.epoch);
  out.add_order_next(c.order_next);
  out.add_seed(c.seed);
  out.add_random(static_cast<schema::RandomSource>(c.random));
  out.add_streams(stream_list);
  out.add_num_classes(c.architecture.head.num_classes);
  schema::FinishCheckpointBuffer(builder, out.Finish());
}

uint64_t TextBytes(const Checkpoint& c) {
  uint64_t bytes = c.run_id.size() + c.config.size() + c.created_by.size();
  for (const StreamPosition& s : c.streams) bytes += s.name.size() + 32;
  return bytes;
}

}  // namespace

Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint, FileReplacement* reserved) {
  WISP_RETURN_IF_ERROR(metadata::AsArgument(CheckFinite(path, checkpoint)));
  if (const uint64_t bytes = TextBytes(checkpoint); bytes > container::kMaxMetadataBytes) {
    return InvalidArgument(path, ": texts and streams take ", bytes, " bytes, allowed are ",
                           container::kMaxMetadataBytes);
  }
  std::vector<std::span<const std::byte>> arrays;
  for (const ArraySlot& slot : kSlots) {
    if (const auto bytes = SlotBytes(checkpoint, slot); !bytes.empty()) arrays.push_back(bytes);
  }
  FlatBufferBuilder builder;
  Build(builder, checkpoint, arrays);
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  WISP_RETURN_IF_ERROR(metadata::AsArgument(ReadMetadata(path, bytes).status()));
  return container::Write(path, kCheckpointFormat, {.metadata = bytes, .arrays = arrays, .reserved = reserved});
}

Result<Checkpoint> ReadCheckpoint(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  WISP_ASSIGN_OR_RETURN(const container::View view, container::Parse(path, file.bytes(), kCheckpointFormat));
  WISP_ASSIGN_OR_RETURN(const Metadata metadata, ReadMetadata(path, view.metadata));
  const schema::Checkpoint& root = *metadata.root;
  const std::span<const uint64_t> segments(root.segment_bytes()->data(), root.segment_bytes()->size());
  WISP_ASSIGN_OR_RETURN(const auto located, container::Locate(view, segments, metadata.arrays));
  WISP_RETURN_IF_ERROR(container::CheckArrays(view, metadata.arrays, located));
  Checkpoint c{.architecture = metadata.architecture,
               .order_next = root.order_next(),
               .step = root.step(),
               .epoch = root.epoch(),
               .seed = root.seed(),
               .random = static_cast<RandomSource>(root.random()),
               .run_id = metadata::ToString(root.run_id()),
               .config = metadata::ToString(root.config()),
               .created_by = metadata::ToString(root.created_by()),
               .base_model_hash = root.base_model_hash()};
  if (root.receipt() != nullptr) c.receipt.assign(root.receipt()->begin(), root.receipt()->end());
  // The file's bytes bound each array, so a damaged file cannot cause a larger allocation.
  for (size_t i = 0; i < located.size(); ++i) {
    const ArraySlot& slot = *metadata.slots[i];
    const size_t count = located[i].size() / sizeof(float);
    if (slot.floats) {
      const float* values = reinterpret_cast<const float*>(located[i].data());
      (c.*slot.floats).assign(values, values + count);
    } else {
      const uint32_t* values = reinterpret_cast<const uint32_t*>(located[i].data());
      (c.*slot.indices).assign(values, values + count);
    }
  }
  if (root.streams() != nullptr) {
    for (const schema::Stream* s : *root.streams()) c.streams.push_back({metadata::ToString(s->name()), s->position()});
  }
  WISP_RETURN_IF_ERROR(CheckFinite(path, c));
  return c;
}

}  // namespace wisp
