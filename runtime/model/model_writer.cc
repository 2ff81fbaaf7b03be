#include <algorithm>
#include <numeric>

#include "runtime/core/arena.h"
#include "runtime/core/hash.h"
#include "runtime/model/container.h"
#include "runtime/model/metadata.h"
#include "runtime/model/model_file.h"
#include "runtime/model/model_metadata.h"

namespace wisp {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::String;
using Texts = Offset<flatbuffers::Vector<Offset<String>>>;

// The sum is checked before anything is built, because the builder asserts at 2 GiB.
uint64_t TextBytes(const ModelContents& contents) {
  uint64_t bytes = contents.description.size() + contents.created_by.size();
  const auto add = [&bytes](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) bytes += text.size() + 2 * sizeof(flatbuffers::uoffset_t);
  };
  bytes += (contents.retired.size() + contents.untrained.size()) * sizeof(uint32_t) + contents.tokenizer.size() +
           contents.successions.size() * sizeof(schema::Succession);
  add(contents.item_keys);
  add(contents.item_names);
  if (contents.classifier) add(contents.classifier->class_names);
  for (const ProvenanceEntry& e : contents.provenance) {
    add(e.mechanisms);
    add({e.description, e.accountant, e.privacy_unit, e.adjacency, e.sampling, e.dataset, e.date, e.receipt});
  }
  return bytes;
}

Status CheckSizes(const std::string& path, const ModelContents& contents, size_t flat_size) {
  if (contents.weights.size() != flat_size) {
    return InvalidArgument(path, ": there are ", contents.weights.size(), " weights to write, the architecture needs ",
                           flat_size);
  }
  if (const uint64_t bytes = TextBytes(contents); bytes > container::kMaxMetadataBytes) {
    return InvalidArgument(path, ": names, keys, successions, provenance and a tokenizer take ", bytes,
                           " bytes, allowed are ", container::kMaxMetadataBytes);
  }
  return OkStatus();
}

Offset<String> MakeOptionalText(FlatBufferBuilder& builder, const std::string& text) {
  return text.empty() ? Offset<String>() : builder.CreateString(text);
}

Texts MakeOptionalTexts(FlatBufferBuilder& builder, const std::vector<std::string>& texts) {
  return texts.empty() ? Texts() : builder.CreateVectorOfStrings(texts);
}

Offset<schema::Provenance> BuildEntry(FlatBufferBuilder& builder, const ProvenanceEntry& e) {
  const auto description = MakeOptionalText(builder, e.description);
  std::vector<Offset<schema::Mechanism>> list;
  for (const std::string& text : e.mechanisms)
    list.push_back(schema::CreateMechanism(builder, builder.CreateString(text)));
  const auto mechanisms = builder.CreateVector(list);
  const auto accountant = MakeOptionalText(builder, e.accountant);
  const auto privacy_unit = MakeOptionalText(builder, e.privacy_unit);
  const auto adjacency = MakeOptionalText(builder, e.adjacency);
  const auto sampling = MakeOptionalText(builder, e.sampling);
  const auto dataset = MakeOptionalText(builder, e.dataset);
  const auto date = MakeOptionalText(builder, e.date);
  const auto receipt = e.receipt.empty()
                           ? Offset<flatbuffers::Vector<uint8_t>>()
                           : builder.CreateVector(reinterpret_cast<const uint8_t*>(e.receipt.data()), e.receipt.size());
  schema::ProvenanceBuilder out(builder);
  out.add_description(description);
  out.add_mechanisms(mechanisms);
  if (e.epsilon) out.add_epsilon(*e.epsilon);
  out.add_delta(e.delta);
  out.add_accountant(accountant);
  out.add_privacy_unit(privacy_unit);
  out.add_adjacency(adjacency);
  out.add_noise(static_cast<schema::NoiseSource>(e.noise));
  out.add_sampling(sampling);
  out.add_steps(e.steps);
  out.add_dataset(dataset);
  out.add_date(date);
  out.add_base_model_hash(e.base_model_hash);
  out.add_receipt(receipt);
  return out.Finish();
}

std::vector<uint32_t> SortedByKey(const std::vector<std::string>& keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&keys](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  return order;
}

schema::ElementType GetType(const ModelContents& contents, const ParameterSpec& p) {
  const bool is_table = p.shape == ParameterShape::kTable;
  switch (contents.storage) {
    case WeightStorage::kFloat:
      return schema::ElementType::F32;
    case WeightStorage::kPanels:
      return MayBePanels(contents.architecture, p) ? schema::ElementType::F32Panels : schema::ElementType::F32;
    case WeightStorage::kInt8:
    case WeightStorage::kInt4:
      if (!MayBePanels(contents.architecture, p)) break;
      return contents.storage == WeightStorage::kInt8 || is_table ? schema::ElementType::I8Blocks
                                                                  : schema::ElementType::I4Blocks;
    case WeightStorage::kHalf:
      break;
  }
  return is_table ? schema::ElementType::F16 : schema::ElementType::F32;
}

struct WeightArrays {
  std::span<const ParameterSpec> parameters;
  std::span<const std::span<const std::byte>> arrays;
};

Offset<flatbuffers::Vector<Offset<schema::Tensor>>> BuildTensors(FlatBufferBuilder& builder,
                                                                 const ModelContents& contents,
                                                                 const WeightArrays& weights,
                                                                 const container::Placement& placement) {
  std::vector<Offset<schema::Tensor>> tensors;
  for (size_t i = 0; i < weights.parameters.size(); ++i) {
    const ParameterSpec& p = weights.parameters[i];
    const uint64_t shape[2] = {p.rows, p.cols};
    const size_t skip = p.shape == ParameterShape::kVector ? 1 : 0;
    const auto name = builder.CreateString(p.name);
    const auto dimensions = builder.CreateVector(shape + skip, 2 - skip);
    tensors.push_back(schema::CreateTensor(builder, name, GetType(contents, p), dimensions, 0, placement.offsets[i],
                                           weights.arrays[i].size(), Hash64(weights.arrays[i])));
  }
  return builder.CreateVector(tensors);
}

Offset<flatbuffers::Vector<uint32_t>> MakeOptionalItems(FlatBufferBuilder& builder, const std::vector<int32_t>& items) {
  if (items.empty()) return {};
  return builder.CreateVector(std::vector<uint32_t>(items.begin(), items.end()));
}

void BuildModel(FlatBufferBuilder& builder, const ModelContents& contents, const WeightArrays& weights) {
  const container::Placement placement = container::Place(weights.arrays);
  const auto architecture = metadata::BuildArchitecture(builder, contents.architecture);
  const auto segments = builder.CreateVector(&placement.segment_bytes, 1);
  const auto tensors = BuildTensors(builder, contents, weights, placement);
  const auto description = MakeOptionalText(builder, contents.description);
  const auto created_by = MakeOptionalText(builder, contents.created_by);
  std::vector<Offset<schema::Provenance>> entries;
  for (const ProvenanceEntry& entry : contents.provenance) entries.push_back(BuildEntry(builder, entry));
  const auto provenance = builder.CreateVector(entries);
  const auto names = MakeOptionalTexts(builder, contents.item_names);
  const auto keys = MakeOptionalTexts(builder, contents.item_keys);
  Offset<flatbuffers::Vector<uint32_t>> key_order;
  if (!contents.item_keys.empty()) key_order = builder.CreateVector(SortedByKey(contents.item_keys));
  const auto retired = MakeOptionalItems(builder, contents.retired),
             untrained = MakeOptionalItems(builder, contents.untrained);
  Offset<flatbuffers::Vector<const schema::Succession*>> successions;
  if (!contents.successions.empty())
    successions = builder.CreateVectorOfStructs<schema::Succession>(
        contents.successions.size(), [&](size_t i, schema::Succession* stored) {
          const Succession& s = contents.successions[i];
          *stored = {static_cast<uint32_t>(s.from), static_cast<uint32_t>(s.to), s.score};
        });
  Offset<flatbuffers::Vector<uint8_t>> tokenizer;
  if (!contents.tokenizer.empty()) {
    builder.ForceVectorAlignment(contents.tokenizer.size(), sizeof(uint8_t), metadata::kTokenizerAlignment);
    tokenizer =
        builder.CreateVector(reinterpret_cast<const uint8_t*>(contents.tokenizer.data()), contents.tokenizer.size());
  }
  Offset<schema::Classifier> classifier_table;
  Texts class_names;
  if (const std::optional<ClassifierDescription>& c = contents.classifier) {
    classifier_table = schema::CreateClassifier(builder, contents.architecture.head.num_classes, c->norm_bound,
                                                static_cast<schema::WordTokenizer>(c->tokenizer));
    class_names = MakeOptionalTexts(builder, c->class_names);
  }
  schema::ModelBuilder out(builder);
  out.add_architecture(architecture);
  out.add_classifier(classifier_table);
  out.add_class_names(class_names);
  out.add_base_hash(contents.base_hash);
  out.add_segment_bytes(segments);
  out.add_tensors(tensors);
  out.add_description(description);
  out.add_created_by(created_by);
  out.add_provenance(provenance);
  out.add_output_bias_origin(static_cast<schema::OutputBiasOrigin>(contents.output_bias_origin));
  out.add_item_names(names);
  out.add_item_keys(keys);
  out.add_item_key_order(key_order);
  out.add_retired(retired);
  out.add_untrained(untrained);
  out.add_allow_seen(contents.allow_seen);
  out.add_text_tokenizer(tokenizer);
  out.add_successions(successions);
  schema::FinishModelBuffer(builder, out.Finish());
}

// Rounds finite floats to the nearest float16. kInvalidArgument: one exceeds the range of float16.
Result<std::vector<kernels::Half>> HalvesOf(const std::string& path, const ParameterSpec& p,
                                            std::span<const float> values) {
  std::vector<kernels::Half> halves;
  halves.reserve(values.size());
  for (const float value : values) {
    halves.push_back(kernels::ToHalf(value));
    if (kernels::IsFinite(halves.back())) continue;
    return InvalidArgument(path, ": tensor ", p.name, " holds ", value, ", the largest number of f16 is ",
                           static_cast<int>(kernels::kLargestHalf), ": its tables must stay f32");
  }
  return halves;
}

// Rounds to the nearest panels. kInvalidArgument: a scale exceeds the range of float16.
Result<AlignedArray<std::byte>> RoundToPanels(const std::string& path, const ParameterSpec& p, kernels::PanelBits bits,
                                              std::span<const float> values) {
  AlignedArray<std::byte> panels(kernels::PanelMatrixBytes(bits, p.rows, p.cols));
  if (kernels::PackPanels(bits, values.data(), p.rows, p.cols, panels.data())) return panels;
  return InvalidArgument(path, ": tensor ", p.name, " holds a weight too large for blocks of integers, whose scale is ",
                         "at most ", static_cast<int>(kernels::kLargestHalf), ": it must stay f32");
}

// The bytes to write for a parameter: its floats in place, or a copy in another type.
class StoredArray {
 public:
  static Result<StoredArray> Of(const std::string& path, const ModelContents& contents, size_t index,
                                const ParameterSpec& p) {
    StoredArray array;
    const std::span<const float> values = array.GetFloats(contents, index, p);
    if (!metadata::AllFinite(values))
      return InvalidArgument(path, ": tensor ", p.name, " holds a number that is not finite");
    const schema::ElementType type = GetType(contents, p);
    array.bytes_ = std::as_bytes(values);
    if (type == schema::ElementType::F16) {
      WISP_ASSIGN_OR_RETURN(array.halves_, HalvesOf(path, p, values));
      array.bytes_ = std::as_bytes(std::span(array.halves_));
    } else if (const auto bits = metadata::GetBits(type)) {
      WISP_ASSIGN_OR_RETURN(array.panels_, RoundToPanels(path, p, *bits, values));
      array.bytes_ = {array.panels_.data(), array.panels_.size()};
    }
    return array;
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  // The parameter as float32: in place, or converted.
  std::span<const float> GetFloats(const ModelContents& contents, size_t index, const ParameterSpec& p) {
    if (p.offset >= contents.first_weight) return contents.weights.subspan(p.offset - contents.first_weight, p.size());
    const StoredTensor& tensor = contents.before[index];
    if (tensor.floats != nullptr) return {tensor.floats, p.size()};
    floats_.resize(p.size());
    CopyAsFloats(p, tensor, floats_.data());
    return floats_;
  }

  std::vector<float> floats_;
  std::vector<kernels::Half> halves_;
  AlignedArray<std::byte> panels_;
  std::span<const std::byte> bytes_;
};

Status CheckContents(const std::string& path, const ModelContents& contents) {
  if (const Status status = Validate(contents.architecture); !status.ok()) {
    return InvalidArgument(path, ": ", status.message());
  }
  if (contents.architecture.adapter.has_value() != (contents.base_hash != 0)) {
    return InvalidArgument(path, contents.base_hash == 0 ? ": has an adapter, but no hash of the model it stands beside"
                                                         : ": has the hash of a base model, but no adapter");
  }
  const bool classes = contents.architecture.head.kind == HeadKind::kClasses;
  if (classes == contents.classifier.has_value()) return OkStatus();
  return InvalidArgument(path, classes ? ": its head of classes is not described"
                                       : ": has a classifier's description, but no head of classes");
}

// Removes what an adapter leaves to its base.
ModelContents AsAdapter(const ModelContents& contents) {
  ModelContents own = contents;
  own.item_keys.clear();
  own.item_names.clear();
  own.retired.clear();
  own.untrained.clear();
  own.allow_seen = false;
  own.successions.clear();
  own.tokenizer.clear();
  own.output_bias_origin = OutputBiasOrigin::kNone;
  return own;
}

Status Write(const std::string& path, const ModelContents& contents) {
  WISP_RETURN_IF_ERROR(CheckContents(path, contents));
  WISP_RETURN_IF_ERROR(
      CheckSizes(path, contents, FlatSize(ListParameters(contents.architecture)) - contents.first_weight));
  const std::vector<ParameterSpec> parameters = StoredParameters(contents.architecture);
  const size_t before =
      parameters.empty() || parameters.front().offset >= contents.first_weight
          ? 0
          : static_cast<size_t>(std::count_if(parameters.begin(), parameters.end(),
                                              [&](const auto& p) { return p.offset < contents.first_weight; }));
  if (before > contents.before.size())
    return InvalidArgument(path, ": its weights begin behind its tensor ", parameters[contents.before.size()].name);
  std::vector<StoredArray> stored;
  std::vector<std::span<const std::byte>> arrays;
  for (size_t i = 0; i < parameters.size(); ++i) {
    WISP_ASSIGN_OR_RETURN(StoredArray array, StoredArray::Of(path, contents, i, parameters[i]));
    arrays.push_back(stored.emplace_back(std::move(array)).bytes());
  }
  FlatBufferBuilder builder;
  BuildModel(builder, contents, {.parameters = parameters, .arrays = arrays});
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  WISP_RETURN_IF_ERROR(metadata::AsArgument(metadata::ReadModelMetadata(path, bytes).status()));
  return container::Write(path, metadata::kModelFormat,
                          {.metadata = bytes, .arrays = arrays, .reserved = contents.reserved});
}

}  // namespace

Result<FileReplacement> ReserveModel(const std::string& path, const ModelContents& given) {
  const ModelContents contents = given.architecture.adapter ? AsAdapter(given) : given;
  // Bytes for tensors, padding and further entries. Each block has some dozens of tensors.
  constexpr uint64_t kBeside = 256 << 10, kPerBlock = 8 << 10, kPerText = 16;
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path));
  WISP_RETURN_IF_ERROR(file.CheckOnlyWriter());
  WISP_RETURN_IF_ERROR(CheckContents(path, contents));
  uint64_t num_weights = 0;
  for (const ParameterSpec& p : StoredParameters(contents.architecture)) num_weights += AlignedSize(p.size());
  WISP_RETURN_IF_ERROR(file.Reserve(num_weights * sizeof(float) + TextBytes(contents) + kBeside +
                                    contents.architecture.blocks.size() * kPerBlock +
                                    kPerText * (contents.item_keys.size() + contents.item_names.size())));
  return file;
}

Status WriteModel(const std::string& path, const ModelContents& contents) {
  return contents.architecture.adapter ? Write(path, AsAdapter(contents)) : Write(path, contents);
}

}  // namespace wisp
