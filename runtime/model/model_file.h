// Model files: written whole, mapped read-only, and checked before use. runtime/layers and runtime/inference run
// models; checkpoint.h has checkpoints.
//
//   WISP_RETURN_IF_ERROR(WriteModel("m.wisp", {.architecture = a, .weights = w, .created_by = "wisp 0.1"}));
//   WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Open("m.wisp"));
//   const float* gain = file.Tensor(2);
//
// Format: container.h describes the header and the placement of segments, schema/model.fbs the metadata,
// schema/README.md how they may change. In short: a 64-byte header with magic, versions, sizes and hashes; FlatBuffers
// metadata of at most 64 MiB (architecture, tensors, items, provenance); weights on 16 KiB pages, each tensor on 64
// bytes. This writer makes one segment. It has the bytes of the flat buffer of ListParameters(architecture), except in
// two cases: weights are stored as float16 or panels, or the file is an adapter, which holds only its own matrices.
//
// Release builds, too, check header and metadata hashes; the FlatBuffers verifier with tight limits; enum ranges; sizes
// without overflow; shapes against the architecture; every tensor exactly once; alignment in memory; texts in UTF-8.
// Only Verify::kFull looks at the numbers of weights. The hashes detect damage, not forgery.
#ifndef WISP_RUNTIME_MODEL_MODEL_FILE_H_
#define WISP_RUNTIME_MODEL_MODEL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/file.h"
#include "runtime/core/served_list.h"
#include "runtime/core/status.h"
#include "runtime/core/stored_tensor.h"

namespace wisp {

namespace metadata {
struct ModelMetadata;
}

inline constexpr uint32_t kModelFormatVersion = 1;

// The origin of a run's noise. kReproducible gives no guarantee.
enum class NoiseOrigin : uint8_t { kNone = 0, kSecure = 1, kReproducible = 2 };

// The origin of a fixed output bias, which is released with the model. kNone: there is no bias, or it started at zero.
// Counts are of the data of the first provenance entry: the run that makes a model sets them, and later runs keep them.
enum class OutputBiasOrigin : uint8_t { kNone = 0, kPublicCounts = 1, kPrivateCounts = 2, kExactCounts = 3 };

// The label of unknown data: weights were imported and nobody said what they learned from. It is never public, and it
// may be any data.
inline constexpr char kUnknownDataset[] = "unknown, imported";

// Bytes of a receipt in a provenance entry (privacy::Receipt).
inline constexpr size_t kReceiptBytes = 32;

// One run that changed the weights. Texts are UTF-8.
struct ProvenanceEntry {
  std::string description;
  std::vector<std::string> mechanisms;  // one sentence each, with parameters; empty: no private mechanism
  // nullopt: no guarantee. Set only with secure noise. Infinity: the loss could not be bounded.
  std::optional<double> epsilon;
  double delta = 0;
  std::string accountant;
  std::string privacy_unit;
  std::string adjacency;
  NoiseOrigin noise = NoiseOrigin::kNone;
  std::string sampling;
  uint64_t steps = 0;
  std::string dataset;           // a label, not a path
  std::string date;              // ISO 8601
  uint64_t base_model_hash = 0;  // content_hash() of the model that the run began with; 0: none
  // The receipt of the ledger that the run charged (privacy::Receipt), kReceiptBytes. Empty: no ledger was
  // charged.
  std::string receipt = {};
  bool operator==(const ProvenanceEntry&) const = default;
};

// How weights are stored. Parameters that are not named here are float32.
//   kPanels       matrices with MayBePanels are panels of float32 (kernels/panels.h), which a processor does not copy
//   kHalf         tables (ParameterShape::kTable: items, positions, an output table) are rounded to the nearest float16
//                 (kernels/half.h) on writing
//   kInt8, kInt4  matrices with MayBePanels are blocks of 8-bit or 4-bit integers with a scale each; tables with
//                 MayBePanels are blocks of 8-bit integers in both; other tables are float16
enum class WeightStorage : uint8_t { kFloat, kPanels, kHalf, kInt8, kInt4 };

// True if a parameter may be stored in panels: weights of linear layers, the item table, an output table. Not in models
// with Re-Attention, which needs squares of floats. Not the table of a cosine head, whose rows are scaled to unit
// length.
bool MayBePanels(const Architecture& architecture, const ParameterSpec& p);

// How a text becomes a classifier's items; tokens are its item keys. kWhitespaceLower first converts A-Z to lower case.
enum class Tokenizer : uint8_t { kNone = 0, kWhitespace = 1, kWhitespaceLower = 2 };

// The parts of a model with a classes head that its architecture does not cover.
struct ClassifierDescription {
  std::vector<std::string> class_names;  // unique; one for each class, or empty
  double norm_bound = 0;  // the head's input is clipped to this norm (HeadInput::norm_bound); 0: not clipped
  Tokenizer tokenizer = Tokenizer::kNone;  // other than kNone, the model must have item keys
  bool operator==(const ClassifierDescription&) const = default;
};

// Checks that a text can be a data set's name in a model file: short enough, UTF-8, no control characters.
// kInvalidArgument says what is wrong. Call it before spending anything on what will be written.
Status CheckDatasetName(const std::string& name);

// The contents of a model file, for WriteModel. Spans are read only during the call.
struct ModelContents {
  Architecture architecture;
  std::optional<ClassifierDescription> classifier;  // only and always with a classes head
  std::span<const float> weights;  // FlatSize(ListParameters(architecture)) floats; gaps are written as zeros
  // The offset of the first weight in `weights`, and the earlier parameters, in their order. An adapter's file contains
  // none of these.
  size_t first_weight = 0;
  std::span<const StoredTensor> before = {};
  std::vector<std::string> item_keys;   // external identifiers, unique; num_items, or empty
  std::vector<std::string> item_names;  // for people; num_items, or empty
  std::vector<int32_t> retired;         // items that are never recommended, ascending; not all items
  std::vector<int32_t> untrained;       // items that were added and are not trained yet (ModelFile::untrained)
  bool allow_seen = false;              // lists may hold items of the history (ModelFile::lists)
  std::vector<Succession> successions;  // each pair once, ascending by `from`, then `to` (ModelFile::lists)
  // How texts become items: an image for text::Tokenizer (runtime/text), with no more tokens than items. May be empty.
  std::vector<std::byte> tokenizer;
  std::vector<ProvenanceEntry> provenance;  // oldest first
  std::string description;
  std::string created_by;  // program and version
  OutputBiasOrigin output_bias_origin = OutputBiasOrigin::kNone;
  WeightStorage storage = WeightStorage::kFloat;
  // Only and always with an adapter: content_hash() of its base. The file then holds only the adapter's matrices. Keys,
  // names, retired and untrained items, allow_seen, successions, tokenizer and origin of the bias are the base's and
  // are not written.
  uint64_t base_hash = 0;
  FileReplacement* reserved = nullptr;  // from ReserveModel, at the same path; used up
};

// Reserves disk space for what WriteModel will write, before work or privacy is spent on the weights, which are not
// read. A provenance entry and one or two names may still be added.
Result<FileReplacement> ReserveModel(const std::string& path, const ModelContents& contents);

// Writes `path` whole or not at all: a temporary file in the same folder, synced, then renamed (FileReplacement). On an
// error the old file is unchanged and the temporary file is gone. Only the owner can read the file. Equal contents give
// equal bytes. kInvalidArgument: ModelFile would refuse the contents; weights are not finite or exceed float16. kIo:
// the system refused. It may replace the very file that `weights` points into.
Status WriteModel(const std::string& path, const ModelContents& contents);

enum class Verify {
  // everything but the weights' values: all that running safely needs; cost independent of the weights' size
  kStructure,
  kFull,  // also the hash of every tensor, and that every weight is finite
};

// The files that a caller can use. kEncoder: models that represent whole texts, so encoders and classifiers. kAny: all
// whole models. kAnyFile: also adapters without their base, to be inspected; they cannot run.
enum class Accept { kRecommender, kClassifier, kEncoder, kAny, kAdapter, kAnyFile };

// An open model. Movable. Pointers, spans and string views from it stay valid as long as it, or the object it was moved
// to, lives. Any number of threads may read it.
class ModelFile {
 public:
  // kIo: the file cannot be read. kInvalidData: it is not a model, is damaged, contradicts itself, or has another head
  // than accepted. kUnsupported: it is from a newer version. Each message starts with `path`.
  static Result<ModelFile> Open(const std::string& path, Verify verify = Verify::kStructure,
                                Accept accept = Accept::kRecommender);

  // Opens a model and an adapter that was trained beside it as one: the adapter's architecture, the base's keys and
  // names, and the provenance of both. kInvalidData also if the adapter belongs to another base. Without `adapter_path`
  // it opens the model alone.
  static Result<ModelFile> OpenWithAdapter(const std::string& base_path, const std::string& adapter_path,
                                           Verify verify = Verify::kStructure, Accept accept = Accept::kRecommender);

  // Opens from memory, which must outlive the ModelFile and start on 64 bytes (kInvalidArgument). Messages use `name`.
  static Result<ModelFile> OpenMemory(const std::string& name, std::span<const std::byte> bytes,
                                      Verify verify = Verify::kStructure, Accept accept = Accept::kRecommender);

  // Opens `length` bytes of an open file from `offset` on; length 0: to its end. They are mapped, and copied if they do
  // not start on 64 bytes. The caller keeps the descriptor.
  static Result<ModelFile> OpenDescriptor(const std::string& name, int descriptor, uint64_t offset, uint64_t length,
                                          Verify verify = Verify::kStructure, Accept accept = Accept::kRecommender);
  // Bytes of that copy; 0 if nothing was copied.
  size_t copied_bytes() const;

  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;
  ~ModelFile();

  // Shares the open file: nothing is mapped, copied or checked again.
  ModelFile Share() const { return ModelFile(impl_); }

  // The additional checks of Verify::kFull, for a file that is open already.
  Status VerifyWeights() const;

  const Architecture& architecture() const;
  bool is_classifier() const { return architecture().head.kind == HeadKind::kClasses; }
  // Only for a classifier.
  const ClassifierDescription& classifier() const;
  // ListParameters(architecture()); for an adapter without its base, StoredParameters.
  std::span<const ParameterSpec> parameters() const;
  // Their tensors in the file, in the same order: for ParameterSource (runtime/layers/weights.h).
  std::span<const StoredTensor> tensors() const;
  // parameters()[parameter_index], row-major [rows, cols], on 64 bytes; null if it is float16 or panels.
  const float* Tensor(size_t parameter_index) const;
  // All weights as one flat buffer laid out by ListParameters. Empty if the file has another layout, such as float16 or
  // panels.
  std::span<const float> flat_weights() const;
  // All weights of any file as such a buffer: in place if possible, otherwise copied to `room` and converted to
  // float32.
  std::span<const float> AllWeights(std::vector<float>& room) const;

  // The largest WeightStorage of any tensor: kInt4 if one has it, otherwise kInt8, and so on.
  WeightStorage storage() const;

  uint32_t num_items() const { return architecture().num_items; }
  bool has_item_keys() const;
  bool has_item_names() const;
  // Empty if the file has none. `item` must be below num_items().
  std::string_view item_key(size_t item) const;
  std::string_view item_name(size_t item) const;
  // Items that are never recommended, ascending; histories may contain them. With an adapter, the base's.
  std::span<const int32_t> retired() const;
  // Items that were added (catalogue.h) and are not trained yet, ascending. Until a run trains them, they are not
  // recommended and are skipped in histories (history_window.h), so adding items changes nothing that people are
  // served. With an adapter, the base's.
  std::span<const int32_t> untrained() const;
  // The rules for lists: retired and untrained items are withheld; items of the history are allowed only if the model's
  // owner chose so; successions add to the scores. With an adapter, the base's.
  ModelLists lists() const;
  // The image of the text tokenizer, on 8 bytes; empty if the file has none. It is not checked here;
  // text::Tokenizer::Open does that. With an adapter, the base's.
  std::span<const std::byte> tokenizer() const;
  // The item with this key; nullopt if the key does not exist or the file has no keys. Logarithmic time; allocates
  // nothing.
  std::optional<uint32_t> FindItem(std::string_view key) const;

  std::span<const ProvenanceEntry> provenance() const;
  OutputBiasOrigin output_bias_origin() const;
  std::string_view description() const;
  std::string_view created_by() const;

  // content_hash() of the base if this is an adapter, otherwise 0.
  uint64_t base_hash() const;

  // The name in messages: the path.
  const std::string& name() const;
  uint32_t format_version() const;
  uint32_t oldest_reader() const;  // the oldest format whose readers can read the file
  // Identifies the whole file, weights included: equal files have equal hashes. With an adapter it covers both files.
  uint64_t content_hash() const;
  // The size of both files, if there are two.
  uint64_t size_bytes() const;

 private:
  struct Impl;
  explicit ModelFile(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// The contents of the file, to be written again, changed or not. Weights are written as float32 unless the caller sets
// another storage. `room` stores weights that cannot be used in place; it must live as long as the result.
ModelContents GetContents(const ModelFile& file, std::vector<float>& room);
// The contents without weights. Reads no weights.
ModelContents ContentsWithoutWeights(const ModelFile& file);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_MODEL_FILE_H_
