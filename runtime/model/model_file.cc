#include "runtime/model/model_file.h"

#include <algorithm>

#include "runtime/core/arena.h"
#include "runtime/core/file.h"
#include "runtime/model/container.h"
#include "runtime/model/lists_of.h"
#include "runtime/model/metadata.h"
#include "runtime/model/model_metadata.h"
#include "runtime/model/provenance.h"

namespace wisp {

struct ModelFile::Impl {
  MappedFile mapping;  // empty if the bytes are the caller's or a copy
  AlignedArray<std::byte> copy;
  container::View view;
  metadata::ModelMetadata model;
  std::vector<std::span<const std::byte>> arrays;  // in the order of model.arrays
  // in the order of model.parameters; with a base, tensors of both, in the order of `parameters`
  std::vector<StoredTensor> tensors;
  std::vector<ParameterSpec> parameters;
  std::span<const float> flat;
  std::unique_ptr<Impl> base;  // the open base of an adapter

  Status Load(Accept accept, const std::string& name, std::span<const std::byte> bytes);
  static Result<std::unique_ptr<Impl>> Map(const std::string& path, Accept accept);
  Status Join(std::unique_ptr<Impl> with);
  Status CheckWeights() const;
  // The metadata with the keys and names: the base's, if there is one.
  const schema::Model& texts() const { return base ? *base->model.root : *model.root; }
};

namespace {

// The flat buffer, if all tensors lie as ListParameters lays them out and the one segment holds nothing else.
std::span<const float> FlatWeights(const metadata::ModelMetadata& model, std::span<const StoredTensor> tensors) {
  if (model.architecture.adapter) return {};
  const size_t flat_size = FlatSize(model.parameters);
  const auto segments = model.segment_bytes();
  if (segments.size() != 1 || segments[0] != flat_size * sizeof(float)) return {};
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].floats == nullptr || tensors[i].floats != tensors[0].floats + model.parameters[i].offset) return {};
  }
  return {tensors[0].floats, flat_size};
}

bool IsFinite(const ParameterSpec& p, const StoredTensor& tensor) {
  if (tensor.panels.data != nullptr) return kernels::HasFiniteNumbers(tensor.panels, p.rows, p.cols);
  if (tensor.halves != nullptr) return std::all_of(tensor.halves, tensor.halves + p.size(), kernels::IsFinite);
  return metadata::AllFinite({tensor.floats, p.size()});
}

// An adapter without its base cannot run, so it is refused where a model is needed.
Status CheckAccepted(Accept accept, const std::string& name, const metadata::ModelMetadata& model) {
  const bool is_adapter = model.architecture.adapter.has_value();
  if (accept == Accept::kAnyFile) return OkStatus();
  if (is_adapter && accept != Accept::kAdapter)
    return InvalidData(
        name,
        ": is an adapter, which is used together with its base (`adapter_path`), or as one model of both, which "
        "wisp convert makes of the two");
  if (!is_adapter && accept == Accept::kAdapter) return InvalidData(name, ": is a whole model, an adapter is needed");
  const bool encodes = model.architecture.head.kind == HeadKind::kEmbedding;
  if (accept == Accept::kRecommender && (model.classifier || encodes))
    return InvalidData(name, ": is ", (encodes ? "an encoder of texts" : "a classifier"),
                       ", a recommender or a decoder is needed");
  if (!model.classifier && accept == Accept::kClassifier) return InvalidData(name, ": is no classifier, one is needed");
  if (!model.classifier && !encodes && accept == Accept::kEncoder)
    return InvalidData(name, ": is a recommender or a decoder, an encoder of texts or a classifier is needed");
  return OkStatus();
}

}  // namespace

Status ModelFile::Impl::Load(Accept accept, const std::string& name, std::span<const std::byte> bytes) {
  WISP_ASSIGN_OR_RETURN(view, container::Parse(name, bytes, metadata::kModelFormat));
  WISP_ASSIGN_OR_RETURN(model, metadata::ReadModelMetadata(name, view.metadata));
  WISP_RETURN_IF_ERROR(CheckAccepted(accept, name, model));
  WISP_ASSIGN_OR_RETURN(arrays, container::Locate(view, model.segment_bytes(), model.arrays));
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const std::byte* data = arrays[model.array_of_parameter[i]].data();
    StoredTensor& tensor = tensors.emplace_back();
    if (model.types[i] == schema::ElementType::F16) {
      tensor.halves = reinterpret_cast<const kernels::Half*>(data);
    } else if (const auto bits = metadata::GetBits(model.types[i])) {
      tensor.panels = {.data = data, .bits = *bits};
    } else {
      tensor.floats = reinterpret_cast<const float*>(data);
    }
  }
  parameters = model.parameters;
  flat = FlatWeights(model, tensors);
  return OkStatus();
}

Result<std::unique_ptr<ModelFile::Impl>> ModelFile::Impl::Map(const std::string& path, Accept accept) {
  auto impl = std::make_unique<Impl>();
  WISP_ASSIGN_OR_RETURN(impl->mapping, MappedFile::Open(path));
  WISP_RETURN_IF_ERROR(impl->Load(accept, path, impl->mapping.bytes()));
  return impl;
}

// Joins an adapter with its base. The result has the base's tensors before the adapter's.
Status ModelFile::Impl::Join(std::unique_ptr<Impl> with) {
  if (model.root->base_hash() != with->view.hash) {
    return InvalidData(view.name, ": it belongs to another base than ", with->view.name,
                       "; allowed is the very file that it was trained beside");
  }
  // The hash implies this, unless the file was forged.
  if (!StandsBeside(model.architecture, with->model.architecture) ||
      (model.classifier && with->model.classifier && !(*model.classifier == *with->model.classifier)))
    return InvalidData(view.name, ": it names the architecture of another base than ", with->view.name);
  std::vector<StoredTensor> all = with->tensors;
  all.insert(all.end(), tensors.begin(), tensors.end());
  tensors = std::move(all);
  parameters = ListParameters(model.architecture);
  model.provenance = JoinProvenance({with->model.provenance, model.provenance});
  base = std::move(with);
  return OkStatus();
}

Status ModelFile::Impl::CheckWeights() const {
  if (base) WISP_RETURN_IF_ERROR(base->CheckWeights());
  WISP_RETURN_IF_ERROR(container::CheckArrays(view, model.arrays, arrays));
  const size_t first = parameters.size() - model.parameters.size();
  for (size_t i = first; i < tensors.size(); ++i) {
    const ParameterSpec& p = parameters[i];
    const StoredTensor& tensor = tensors[i];
    if (!IsFinite(p, tensor)) return InvalidData(view.name, ": tensor ", p.name, " holds a number that is not finite");
  }
  return OkStatus();
}

Result<ModelFile> ModelFile::Open(const std::string& path, Verify verify, Accept accept) {
  WISP_ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::Map(path, accept));
  if (verify == Verify::kFull) WISP_RETURN_IF_ERROR(impl->CheckWeights());
  return ModelFile(std::move(impl));
}

Result<ModelFile> ModelFile::OpenWithAdapter(const std::string& base_path, const std::string& adapter_path,
                                             Verify verify, Accept accept) {
  if (adapter_path.empty()) return Open(base_path, verify, accept);
  WISP_ASSIGN_OR_RETURN(std::unique_ptr<Impl> base, Impl::Map(base_path, accept));
  WISP_ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::Map(adapter_path, Accept::kAdapter));
  WISP_RETURN_IF_ERROR(impl->Join(std::move(base)));
  if (verify == Verify::kFull) WISP_RETURN_IF_ERROR(impl->CheckWeights());
  return ModelFile(std::move(impl));
}

Result<ModelFile> ModelFile::OpenMemory(const std::string& name, std::span<const std::byte> bytes, Verify verify,
                                        Accept accept) {
  auto impl = std::make_unique<Impl>();
  WISP_RETURN_IF_ERROR(impl->Load(accept, name, bytes));
  if (verify == Verify::kFull) WISP_RETURN_IF_ERROR(impl->CheckWeights());
  return ModelFile(std::move(impl));
}

Result<ModelFile> ModelFile::OpenDescriptor(const std::string& name, int descriptor, uint64_t offset, uint64_t length,
                                            Verify verify, Accept accept) {
  auto impl = std::make_unique<Impl>();
  WISP_ASSIGN_OR_RETURN(impl->mapping, MappedFile::OpenDescriptor(name, descriptor, offset, length));
  std::span<const std::byte> bytes = impl->mapping.bytes();
  if (reinterpret_cast<uintptr_t>(bytes.data()) % ArenaPlan::kAlignment != 0) {
    WISP_RETURN_IF_ERROR(container::CheckHeader(name, bytes, metadata::kModelFormat));  // copy nothing else
    impl->copy = AlignedArray<std::byte>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), impl->copy.data());
    bytes = {impl->copy.data(), bytes.size()};
    impl->mapping = MappedFile();
  }
  WISP_RETURN_IF_ERROR(impl->Load(accept, name, bytes));
  if (verify == Verify::kFull) WISP_RETURN_IF_ERROR(impl->CheckWeights());
  return ModelFile(std::move(impl));
}

size_t ModelFile::copied_bytes() const { return impl_->copy.size(); }

ModelFile::ModelFile(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;
ModelFile::~ModelFile() = default;

Status ModelFile::VerifyWeights() const { return impl_->CheckWeights(); }

const Architecture& ModelFile::architecture() const { return impl_->model.architecture; }
const ClassifierDescription& ModelFile::classifier() const { return *impl_->model.classifier; }
std::span<const ParameterSpec> ModelFile::parameters() const { return impl_->parameters; }
std::span<const StoredTensor> ModelFile::tensors() const { return impl_->tensors; }
const float* ModelFile::Tensor(size_t parameter_index) const { return impl_->tensors[parameter_index].floats; }
std::span<const float> ModelFile::flat_weights() const { return impl_->flat; }

bool MayBePanels(const Architecture& a, const ParameterSpec& p) {
  if (a.re_attention == ReAttention::kOn) return false;
  switch (p.role) {
    case ParameterRole::kItemTable:
    case ParameterRole::kOutputTable:
      return a.head.temperature == 0;
    case ParameterRole::kQkvWeight:
    case ParameterRole::kAttentionOutWeight:
    case ParameterRole::kFeedForwardInWeight:
    case ParameterRole::kFeedForwardOutWeight:
      return true;
    default:
      return false;
  }
}

Status CheckDatasetName(const std::string& name) {
  if (metadata::IsText(name, metadata::Lines::kOne)) return OkStatus();
  return InvalidArgument(
      "the name of the data set is not text: allowed is UTF-8 without control characters; a file's name is taken where "
      "none is given (`dataset`)");
}

std::span<const float> ModelFile::AllWeights(std::vector<float>& room) const {
  if (!impl_->flat.empty()) return impl_->flat;
  room.assign(FlatSize(impl_->parameters), 0.0f);
  for (size_t i = 0; i < impl_->tensors.size(); ++i) {
    const ParameterSpec& p = impl_->parameters[i];
    CopyAsFloats(p, impl_->tensors[i], room.data() + p.offset);
  }
  return room;
}

namespace {

WeightStorage ToStorage(kernels::PanelBits bits) {
  switch (bits) {
    case kernels::PanelBits::kEight:
      return WeightStorage::kInt8;
    case kernels::PanelBits::kFour:
      return WeightStorage::kInt4;
    case kernels::PanelBits::kThirtyTwo:
      break;
  }
  return WeightStorage::kPanels;
}

}  // namespace

WeightStorage ModelFile::storage() const {
  const auto of = [](const StoredTensor& t) {
    if (t.panels.data != nullptr) return ToStorage(t.panels.bits);
    return t.halves != nullptr ? WeightStorage::kHalf : WeightStorage::kFloat;
  };
  WeightStorage storage = WeightStorage::kFloat;
  for (const StoredTensor& tensor : impl_->tensors) storage = std::max(storage, of(tensor));
  return storage;
}

ModelContents GetContents(const ModelFile& m, std::vector<float>& room) {
  ModelContents contents = ContentsWithoutWeights(m);
  contents.weights = m.AllWeights(room);
  return contents;
}

ModelContents ContentsWithoutWeights(const ModelFile& m) {
  ModelContents contents{.architecture = m.architecture(),
                         .classifier = {},
                         .weights = {},
                         .item_keys = {},
                         .item_names = {},
                         .retired = {m.retired().begin(), m.retired().end()},
                         .untrained = {m.untrained().begin(), m.untrained().end()},
                         .allow_seen = m.lists().allow_seen,
                         .successions = {m.lists().successions.begin(), m.lists().successions.end()},
                         .tokenizer = {m.tokenizer().begin(), m.tokenizer().end()},
                         .provenance = {m.provenance().begin(), m.provenance().end()},
                         .description = std::string(m.description()),
                         .created_by = std::string(m.created_by()),
                         .output_bias_origin = m.output_bias_origin(),
                         .base_hash = m.base_hash()};
  if (m.is_classifier()) contents.classifier = m.classifier();
  for (size_t i = 0; m.has_item_keys() && i < m.num_items(); ++i) contents.item_keys.emplace_back(m.item_key(i));
  for (size_t i = 0; m.has_item_names() && i < m.num_items(); ++i) contents.item_names.emplace_back(m.item_name(i));
  return contents;
}

bool ModelFile::has_item_keys() const { return impl_->texts().item_keys() && impl_->texts().item_keys()->size() > 0; }
bool ModelFile::has_item_names() const {
  return impl_->texts().item_names() && impl_->texts().item_names()->size() > 0;
}

std::string_view ModelFile::item_key(size_t item) const {
  if (!has_item_keys()) return {};
  return metadata::ToView(impl_->texts().item_keys()->Get(static_cast<flatbuffers::uoffset_t>(item)));
}

std::string_view ModelFile::item_name(size_t item) const {
  if (!has_item_names()) return {};
  return metadata::ToView(impl_->texts().item_names()->Get(static_cast<flatbuffers::uoffset_t>(item)));
}

std::span<const int32_t> ModelFile::retired() const {
  return impl_->base ? impl_->base->model.retired : impl_->model.retired;
}

std::span<const int32_t> ModelFile::untrained() const {
  return impl_->base ? impl_->base->model.untrained : impl_->model.untrained;
}

ModelLists ModelFile::lists() const {
  const metadata::ModelMetadata& model = impl_->base ? impl_->base->model : impl_->model;
  return MakeLists(model.root->allow_seen(), model.withheld, model.untrained, output_bias_origin(), model.successions);
}

std::span<const std::byte> ModelFile::tokenizer() const {
  const auto* image = impl_->texts().text_tokenizer();
  if (image == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(image->data()), image->size()};
}

std::optional<uint32_t> ModelFile::FindItem(std::string_view key) const {
  if (!has_item_keys()) return std::nullopt;
  const auto* order = impl_->texts().item_key_order();
  const uint32_t *first = order->data(), *last = first + order->size();
  const uint32_t* found =
      std::lower_bound(first, last, key, [this](uint32_t item, std::string_view k) { return item_key(item) < k; });
  if (found == last || item_key(*found) != key) return std::nullopt;
  return *found;
}

std::span<const ProvenanceEntry> ModelFile::provenance() const { return impl_->model.provenance; }
OutputBiasOrigin ModelFile::output_bias_origin() const {
  return static_cast<OutputBiasOrigin>(impl_->texts().output_bias_origin());
}
std::string_view ModelFile::description() const { return metadata::ToView(impl_->model.root->description()); }
std::string_view ModelFile::created_by() const { return metadata::ToView(impl_->model.root->created_by()); }
const std::string& ModelFile::name() const { return impl_->view.name; }
uint32_t ModelFile::format_version() const { return impl_->view.version; }
uint32_t ModelFile::oldest_reader() const { return impl_->view.oldest_reader; }
uint64_t ModelFile::base_hash() const { return impl_->model.root->base_hash(); }
// An adapter's metadata contains the hash of its base, so the adapter's hash covers both files.
uint64_t ModelFile::content_hash() const { return impl_->view.hash; }
uint64_t ModelFile::size_bytes() const {
  return impl_->view.file.size() + (impl_->base ? impl_->base->view.file.size() : 0);
}

}  // namespace wisp
