#include "runtime/model/model_metadata.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>

#include "runtime/model/lists_of.h"
#include "runtime/model/metadata.h"

namespace wisp::metadata {
namespace {

using Texts = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

std::string Text(uint64_t value) { return std::to_string(value); }

// A name from the file, shortened for a message.
std::string Short(std::string_view text) {
  if (text.size() > 80) return "of " + Text(text.size()) + " bytes";
  return std::string("\"").append(text).append("\"");
}

}  // namespace

std::optional<kernels::PanelBits> GetBits(schema::ElementType type) {
  if (type == schema::ElementType::I8Blocks) return kernels::PanelBits::kEight;
  if (type == schema::ElementType::I4Blocks) return kernels::PanelBits::kFour;
  if (type == schema::ElementType::F32Panels) return kernels::PanelBits::kThirtyTwo;
  return std::nullopt;
}

namespace {

Status ReadTensors(const std::string& name, ModelMetadata& model, TextChecker& texts) {
  std::unordered_map<std::string_view, size_t> index_of;
  for (size_t i = 0; i < model.parameters.size(); ++i) index_of[model.parameters[i].name] = i;
  const auto& tensors = *model.root->tensors();
  // Space for one more than the parameters: enough to name the first wrong tensor, while the work stays bounded.
  const size_t count = std::min<size_t>(tensors.size(), model.parameters.size() + 1);
  model.array_of_parameter.assign(model.parameters.size(), SIZE_MAX);
  model.types.assign(model.parameters.size(), schema::ElementType::F32);
  for (size_t i = 0; i < count; ++i) {
    const schema::Tensor& tensor = *tensors.Get(static_cast<flatbuffers::uoffset_t>(i));
    WISP_RETURN_IF_ERROR(texts.Check("name of tensor " + Text(i), tensor.name(), Lines::kOne));
    const std::string_view tensor_name = ToView(tensor.name());
    const auto found = index_of.find(tensor_name);
    if (found == index_of.end()) {
      return InvalidData(name, ": has a tensor ", Short(tensor_name), ", which this architecture does not have");
    }
    if (model.array_of_parameter[found->second] != SIZE_MAX) {
      return InvalidData(name, ": has two tensors ", Short(tensor_name));
    }
    const ParameterSpec& p = model.parameters[found->second];
    const uint64_t shape[2] = {p.rows, p.cols};
    const size_t skip = p.shape == ParameterShape::kVector ? 1 : 0;
    const bool may_be_half = p.shape == ParameterShape::kTable, may_be_panels = MayBePanels(model.architecture, p);
    const std::optional<kernels::PanelBits> bits = GetBits(tensor.type());
    schema::ElementType& type = model.types[found->second];
    if ((may_be_half && tensor.type() == schema::ElementType::F16) || (may_be_panels && bits)) type = tensor.type();
    WISP_RETURN_IF_ERROR(CheckTensor(
        name, tensor,
        {.type = type,
         .shape = std::span(shape).subspan(skip),
         .bytes = bits && may_be_panels
                      ? kernels::PanelMatrixBytes(*bits, p.rows, p.cols)
                      : p.size() * (type == schema::ElementType::F16 ? sizeof(kernels::Half) : sizeof(float)),
         .readable = may_be_panels
                         ? (may_be_half ? "f32, f32 panels, f16, int8 or int4" : "f32, f32 panels, int8 or int4")
                         : (may_be_half ? "f32 or f16" : "f32")}));
    model.array_of_parameter[found->second] = i;
    model.arrays.push_back(ToArray(tensor));
  }
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    if (model.array_of_parameter[i] == SIZE_MAX) {
      return InvalidData(name, ": tensor ", model.parameters[i].name, " is missing");
    }
  }
  return OkStatus();
}

// `noun` is what each text belongs to: "item" or "class".
Status CheckTexts(const std::string& name, const char* field, const Texts* values, size_t count, const char* noun,
                  TextChecker& texts) {
  if (values == nullptr || values->size() == 0) return OkStatus();
  if (values->size() != count) {
    return InvalidData(name, ": ", field, " has ", values->size(), " entries, allowed are 0 or one for each of ", count,
                       (noun == std::string_view("class") ? " classes" : " items"));
  }
  for (flatbuffers::uoffset_t i = 0; i < values->size(); ++i) {
    const flatbuffers::String* value = values->Get(i);
    // The name of the field is built only for an error.
    if (const Status status = texts.Check(field, value, Lines::kOne); !status.ok()) {
      return InvalidData(status.message(), " (", noun, " ", i, ")");
    }
  }
  return OkStatus();
}

// item_key_order must sort the keys strictly. Then it names each item once, and no key occurs twice.
Status CheckKeyOrder(const std::string& name, const schema::Model& root) {
  const Texts* keys = root.item_keys();
  const auto* order = root.item_key_order();
  const size_t num_keys = keys ? keys->size() : 0, num_order = order ? order->size() : 0;
  if (num_keys != num_order) {
    return InvalidData(name, ": item_key_order has ", num_order, " entries, there are ", num_keys, " keys");
  }
  std::string_view previous;
  for (flatbuffers::uoffset_t i = 0; i < num_order; ++i) {
    const uint32_t item = order->Get(i);
    if (item >= num_keys) {
      return InvalidData(name, ": item_key_order names item ", item, ", allowed are 0 to ", num_keys - 1);
    }
    const std::string_view key = ToView(keys->Get(item));
    if (i > 0 && key == previous) return InvalidData(name, ": two items have the key ", Short(key));
    if (i > 0 && key < previous) return InvalidData(name, ": item_key_order is not sorted at entry ", i);
    previous = key;
  }
  return OkStatus();
}

Status CheckTexts(const schema::Provenance& entry, const std::string& which, TextChecker& texts) {
  const std::pair<const char*, const flatbuffers::String*> fields[] = {{"description", entry.description()},
                                                                       {"accountant", entry.accountant()},
                                                                       {"privacy_unit", entry.privacy_unit()},
                                                                       {"adjacency", entry.adjacency()},
                                                                       {"sampling", entry.sampling()},
                                                                       {"dataset", entry.dataset()},
                                                                       {"date", entry.date()}};
  for (const auto& [field, text] : fields) WISP_RETURN_IF_ERROR(texts.Check(which + "." + field, text, Lines::kMany));
  if (entry.mechanisms() == nullptr) return OkStatus();
  for (const schema::Mechanism* mechanism : *entry.mechanisms()) {
    WISP_RETURN_IF_ERROR(texts.Check(which + ".mechanisms", mechanism->text(), Lines::kMany));
  }
  return OkStatus();
}

// An adapter must name its base and must not contain what the base contains.
Status CheckAdapter(const std::string& name, const ModelMetadata& model) {
  const schema::Model& root = *model.root;
  if (!model.architecture.adapter) {
    if (root.base_hash() == 0) return OkStatus();
    return InvalidData(name, ": names a base model, but has no adapter to stand beside it");
  }
  if (root.base_hash() == 0) return InvalidData(name, ": has an adapter, but names no base model");
  const auto has = [](const Texts* texts) { return texts != nullptr && texts->size() > 0; };
  if (!has(root.item_keys()) && !has(root.item_names())) return OkStatus();
  return InvalidData(name, ": an adapter has item keys or names; allowed are those of its base alone");
}

// Refuses claims that cannot be made: an epsilon needs a mechanism and secure noise.
Status CheckClaim(const std::string& which, const schema::Provenance& entry) {
  if (entry.noise() > schema::NoiseSource::MAX) {
    return InvalidData(which, ".noise is ", static_cast<uint64_t>(entry.noise()), ", allowed are 0 to ",
                       static_cast<uint64_t>(schema::NoiseSource::MAX));
  }
  if (!(entry.delta() >= 0 && entry.delta() < 1)) {
    return InvalidData(which, ".delta is ", entry.delta(), ", allowed is 0 <= delta < 1");
  }
  if (entry.receipt() != nullptr && entry.receipt()->size() != kReceiptBytes) {
    return InvalidData(which, ".receipt has ", entry.receipt()->size(), " bytes, allowed are ", kReceiptBytes);
  }
  if (!entry.epsilon().has_value()) return OkStatus();
  if (!(*entry.epsilon() >= 0)) {
    return InvalidData(which, ".epsilon is ", *entry.epsilon(), ", allowed are 0 and more");
  }
  if (entry.noise() != schema::NoiseSource::Secure) {
    return InvalidData(
        which, " states an epsilon, but its noise is not from the secure generator: there is no guarantee to state");
  }
  if (entry.mechanisms() == nullptr || entry.mechanisms()->size() == 0) {
    return InvalidData(which, " states an epsilon, but names no mechanism");
  }
  return OkStatus();
}

ProvenanceEntry GetEntry(const schema::Provenance& stored) {
  ProvenanceEntry entry{
      .description = ToString(stored.description()),
      .epsilon = stored.epsilon().has_value() ? std::optional<double>(*stored.epsilon()) : std::nullopt,
      .delta = stored.delta(),
      .accountant = ToString(stored.accountant()),
      .privacy_unit = ToString(stored.privacy_unit()),
      .adjacency = ToString(stored.adjacency()),
      .noise = static_cast<NoiseOrigin>(stored.noise()),
      .sampling = ToString(stored.sampling()),
      .steps = stored.steps(),
      .dataset = ToString(stored.dataset()),
      .date = ToString(stored.date()),
      .base_model_hash = stored.base_model_hash(),
  };
  if (stored.receipt() != nullptr) entry.receipt.assign(stored.receipt()->begin(), stored.receipt()->end());
  if (stored.mechanisms() == nullptr) return entry;
  for (const schema::Mechanism* mechanism : *stored.mechanisms())
    entry.mechanisms.push_back(ToString(mechanism->text()));
  return entry;
}

Status ReadProvenance(const std::string& name, ModelMetadata& model, TextChecker& texts) {
  const auto* entries = model.root->provenance();
  if (entries == nullptr) return OkStatus();
  if (entries->size() > kMaxProvenanceEntries) {
    return InvalidData(name, ": provenance has ", entries->size(), " entries, allowed are ", kMaxProvenanceEntries);
  }
  for (flatbuffers::uoffset_t i = 0; i < entries->size(); ++i) {
    const schema::Provenance& entry = *entries->Get(i);
    const std::string which = "provenance[" + Text(i) + "]";
    WISP_RETURN_IF_ERROR(CheckTexts(entry, which, texts));
    WISP_RETURN_IF_ERROR(CheckClaim(name + ": " + which, entry));
    model.provenance.push_back(GetEntry(entry));
  }
  return OkStatus();
}

// `noun` is the field's name in messages.
Result<std::vector<int32_t>> ReadItems(const std::string& name, const ModelMetadata& model, const std::string& noun,
                                       const flatbuffers::Vector<uint32_t>* stored) {
  std::vector<int32_t> items;
  if (stored == nullptr || stored->size() == 0) return items;
  const uint32_t num_items = model.architecture.num_items;
  if (model.architecture.adapter || model.classifier)
    return InvalidData(name, ": has ", noun, " items; allowed are those of recommenders, adapters aside");
  for (flatbuffers::uoffset_t i = 0; i < stored->size(); ++i) {
    const uint32_t item = stored->Get(i);
    if (item >= num_items || (i > 0 && item <= stored->Get(i - 1)))
      return InvalidData(name, ": ", noun, "[", i, "] is ", item, "; allowed are items 0 to ", num_items - 1,
                         ", each once, ascending");
    items.push_back(static_cast<int32_t>(item));
  }
  return items;
}

Status ReadWithheld(const std::string& name, ModelMetadata& model) {
  WISP_ASSIGN_OR_RETURN(model.retired, ReadItems(name, model, "retired", model.root->retired()));
  WISP_ASSIGN_OR_RETURN(model.untrained, ReadItems(name, model, "untrained", model.root->untrained()));
  model.withheld = MergeWithheld(model.retired, model.untrained);
  if (model.root->allow_seen() && (model.architecture.adapter || model.classifier))
    return InvalidData(name,
                       ": says that lists may hold items of the history (allow_seen); only recommenders say it, "
                       "and an adapter leaves it to its base");
  const uint32_t num_items = model.architecture.num_items;
  if (model.withheld.size() < num_items) return OkStatus();
  return InvalidData(name, ": all ", num_items, " items are retired",
                     model.untrained.empty() ? "" : " or have not learned yet",
                     "; at least one must be left to recommend");
}

Status ReadSuccessions(const std::string& name, ModelMetadata& model) {
  const auto* stored = model.root->successions();
  if (stored == nullptr || stored->size() == 0) return OkStatus();
  if (model.architecture.adapter || model.classifier)
    return InvalidData(name, ": has successions of items; allowed are those of recommenders, adapters aside");
  const uint32_t num_items = model.architecture.num_items;
  const schema::Succession* before = nullptr;
  model.successions.reserve(stored->size());
  for (const schema::Succession* s : *stored) {
    const bool follows = before == nullptr || std::pair(before->from(), before->to()) < std::pair(s->from(), s->to());
    if (s->from() >= num_items || s->to() >= num_items || !follows || !std::isfinite(s->score()))
      return InvalidData(name, ": succession ", model.successions.size(), " is from item ", s->from(), " to item ",
                         s->to(), " with score ", s->score(), "; allowed are items 0 to ", num_items - 1,
                         ", each pair once, ascending, and finite scores");
    model.successions.push_back({static_cast<int32_t>(s->from()), static_cast<int32_t>(s->to()), s->score()});
    before = s;
  }
  return OkStatus();
}

Status CheckTokenizer(const std::string& name, const ModelMetadata& model) {
  const auto* image = model.root->text_tokenizer();
  if (image == nullptr) return OkStatus();
  if (model.architecture.adapter)
    return InvalidData(name, ": an adapter has a tokenizer; allowed is that of its base alone");
  if (reinterpret_cast<uintptr_t>(image->data()) % kTokenizerAlignment == 0) return OkStatus();
  return InvalidData(name, ": its tokenizer does not lie on ", kTokenizerAlignment, " bytes");
}

Status CheckBiasOrigin(const std::string& name, const ModelMetadata& model) {
  const schema::OutputBiasOrigin origin = model.root->output_bias_origin();
  if (origin > schema::OutputBiasOrigin::MAX) {
    return InvalidData(name, ": output_bias_origin is ", static_cast<uint64_t>(origin), ", allowed are 0 to ",
                       static_cast<uint64_t>(schema::OutputBiasOrigin::MAX));
  }
  if (model.architecture.head.output_bias == OutputBias::kNone && origin != schema::OutputBiasOrigin::None) {
    return InvalidData(name, ": states an origin of the output bias, but the architecture has no output bias");
  }
  return OkStatus();
}

// Read it before the tensors: the classifier determines which tensors there are.
Status ReadClassifier(const std::string& name, ModelMetadata& model) {
  const schema::Classifier* stored = model.root->classifier();
  if (stored == nullptr) {
    const Texts* names = model.root->class_names();
    if (names != nullptr && names->size() > 0)
      return InvalidData(name, ": class_names are given, but it is no classifier");
    return OkStatus();
  }
  if (stored->tokenizer() > schema::WordTokenizer::MAX) {
    return Unsupported(name, ": classifier.tokenizer is ", static_cast<uint64_t>(stored->tokenizer()),
                       ", this build knows 0 to ", static_cast<uint64_t>(schema::WordTokenizer::MAX));
  }
  if (!(stored->norm_bound() >= 0 && std::isfinite(stored->norm_bound()))) {
    return InvalidData(name, ": classifier.norm_bound is ", stored->norm_bound(), ", allowed are 0 and above");
  }
  model.classifier = ClassifierDescription{.norm_bound = stored->norm_bound(),
                                           .tokenizer = static_cast<Tokenizer>(stored->tokenizer())};
  const Texts* keys = model.root->item_keys();
  const bool own_keys = !model.architecture.adapter;
  if (own_keys && model.classifier->tokenizer != Tokenizer::kNone && (keys == nullptr || keys->size() == 0)) {
    return InvalidData(name, ": the classifier has a tokenizer, but no item_keys to look tokens up in");
  }
  return OkStatus();
}

Status ReadClassNames(const std::string& name, ModelMetadata& model, TextChecker& texts) {
  if (!model.classifier || model.root->class_names() == nullptr) return OkStatus();
  const Texts& stored = *model.root->class_names();
  const uint32_t num_classes = model.architecture.head.num_classes;
  WISP_RETURN_IF_ERROR(CheckTexts(name, "class_names", &stored, num_classes, "class", texts));
  std::vector<std::string_view> sorted;
  for (const flatbuffers::String* text : stored) {
    if (text->size() == 0) return InvalidData(name, ": a class has an empty name");
    model.classifier->class_names.push_back(ToString(text));
    sorted.push_back(ToView(text));
  }
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  return twice == sorted.end() ? OkStatus() : InvalidData(name, ": two classes have the name ", Short(*twice));
}

}  // namespace

Result<ModelMetadata> ReadModelMetadata(const std::string& name, std::span<const std::byte> metadata) {
  WISP_RETURN_IF_ERROR(VerifyBuffer(name, metadata, schema::VerifyModelBuffer));
  ModelMetadata model{.root = schema::GetModel(metadata.data())};
  const schema::Model& root = *model.root;
  TextChecker texts(name, metadata.size());
  const schema::Classifier* classifier = root.classifier();
  const std::optional<uint32_t> num_classes =
      classifier == nullptr ? std::optional<uint32_t>() : std::optional(classifier->num_classes());
  WISP_ASSIGN_OR_RETURN(model.architecture, ReadArchitecture(name, *root.architecture(), num_classes));
  WISP_RETURN_IF_ERROR(ReadClassifier(name, model));
  model.parameters = StoredParameters(model.architecture);
  WISP_RETURN_IF_ERROR(CheckAlignment(name, *root.segment_bytes()));
  WISP_RETURN_IF_ERROR(ReadTensors(name, model, texts));
  WISP_RETURN_IF_ERROR(texts.Check("description", root.description(), Lines::kMany));
  WISP_RETURN_IF_ERROR(texts.Check("created_by", root.created_by(), Lines::kOne));
  WISP_RETURN_IF_ERROR(CheckBiasOrigin(name, model));
  WISP_RETURN_IF_ERROR(CheckAdapter(name, model));
  WISP_RETURN_IF_ERROR(ReadProvenance(name, model, texts));
  WISP_RETURN_IF_ERROR(CheckTexts(name, "item_names", root.item_names(), model.architecture.num_items, "item", texts));
  WISP_RETURN_IF_ERROR(CheckTexts(name, "item_keys", root.item_keys(), model.architecture.num_items, "item", texts));
  WISP_RETURN_IF_ERROR(ReadClassNames(name, model, texts));
  WISP_RETURN_IF_ERROR(CheckKeyOrder(name, root));
  WISP_RETURN_IF_ERROR(ReadWithheld(name, model));
  WISP_RETURN_IF_ERROR(ReadSuccessions(name, model));
  WISP_RETURN_IF_ERROR(CheckTokenizer(name, model));
  return model;
}

}  // namespace wisp::metadata
