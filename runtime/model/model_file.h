// Model files: written whole, mapped read-only, checked before anything believes them.
// Not the running of a model (runtime/layers, runtime/inference) and not checkpoints (checkpoint.h).
//
//   WISP_RETURN_IF_ERROR(WriteModel("m.wisp", {.architecture = a, .weights = w, .created_by = "wisp 0.1"}));
//   WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Open("m.wisp"));
//   const float* gain = file.Tensor(2);
//
// Format: the header and the placement of segments are described in container.h, the metadata in schema/model.fbs, how
// both may change in schema/README.md. In short: a 64-byte header with magic, versions, sizes and hashes; FlatBuffers
// metadata of at most 64 MiB (architecture, tensors, items, provenance); weights on 16 KiB pages, each tensor on 64
// bytes. Files of this writer have one segment that is, byte for byte, the flat buffer of ParametersOf(architecture),
// unless they are stored as halves or in blocks, or the file is of an adapter, which holds its own matrices alone.
//
// The checks, in release builds too: header and metadata hashes, FlatBuffers verifier with tight limits, enum ranges,
// sizes without overflow, shapes against the architecture, every tensor exactly once, alignment in memory, texts in
// UTF-8. Numbers of weights are looked at by Verify::kFull only. The hashes find damage, not forgery.
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

// schema/README.md says what is new in each.
inline constexpr uint32_t kModelFormatVersion = 11;

// Where the noise of a run came from. kReproducible gives no guarantee.
enum class NoiseOrigin : uint8_t { kNone = 0, kSecure = 1, kReproducible = 2 };

// Where a fixed output bias comes from: it is released with the model. kNone: no bias, or one that started at zero.
// Counts are of the data of the first provenance entry: they are set by the run that makes a model, later ones keep
// them.
enum class OutputBiasOrigin : uint8_t { kNone = 0, kPublicCounts = 1, kPrivateCounts = 2, kExactCounts = 3 };

// The label of the data behind weights from outside of which nobody said what they learned from. It is never public,
// and it may be any data.
inline constexpr char kUnknownDataset[] = "unknown, imported";

// Of a receipt in a provenance (privacy::Receipt).
inline constexpr size_t kReceiptBytes = 32;

// One run that touched the weights. Texts are UTF-8.
struct ProvenanceEntry {
  std::string description;
  std::vector<std::string> mechanisms;  // a sentence each, with parameters; empty: no private mechanism
  // Absent: no guarantee. Only with secure noise; infinity is "could not be bounded".
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
  uint64_t base_model_hash = 0;  // content_hash() of the model the run began with, 0: none
  // Which ledger the run charged (privacy::Receipt), kReceiptBytes; empty: none, or the file is older than receipts.
  std::string receipt = {};
  bool operator==(const ProvenanceEntry&) const = default;
};

// How weights are stored; all that is not named is floats.
//   kPanels       the matrices that MayBePanels as floats in panels (kernels/panels.h): a processor copies none of them
//   kHalf         the tables (ParameterShape::kTable: items, positions, an output table) rounded to the nearest half
//                 (kernels/half.h) on writing
//   kInt8, kInt4  the matrices that MayBePanels in blocks of integers of 8 or 4 bits with a scale each, the tables that
//                 may be in blocks of 8 bits in both, other tables as halves
enum class WeightStorage : uint8_t { kFloat, kPanels, kHalf, kInt8, kInt4 };

// Whether a parameter may be stored in panels: weights of layers' linear maps, the item table, an output
// table. Not of models with Re-Attention, which needs squares of floats, nor the table of a cosine head, which makes
// its rows of unit length.
bool MayBePanels(const Architecture& architecture, const ParameterSpec& p);

// How a text becomes items of a classifier; the tokens are its item keys. kWhitespaceLower makes A-Z small before it
// looks.
enum class Tokenizer : uint8_t { kNone = 0, kWhitespace = 1, kWhitespaceLower = 2 };

// What a model with a head of classes has beside its architecture.
struct ClassifierDescription {
  std::vector<std::string> class_names;    // unique, one for each class, or none
  double norm_bound = 0;                   // what the head's input is clipped to (HeadInput::norm_bound); 0: not at all
  Tokenizer tokenizer = Tokenizer::kNone;  // other than kNone: the model has item keys
  bool operator==(const ClassifierDescription&) const = default;
};

// Whether the text can be a data set's name in a model file: short enough UTF-8 without control characters.
// kInvalidArgument says what is wrong. To be asked before anything is spent on what is to be written.
Status CheckDatasetName(const std::string& name);

// What WriteModel needs. Spans are read during the call only.
struct ModelContents {
  Architecture architecture;
  std::optional<ClassifierDescription> classifier;  // with a head of classes, and only then
  std::span<const float> weights;  // FlatSize(ParametersOf(architecture)) floats; gaps are written as zeros
  // Where `weights` begins in that layout, and where the parameters before it lie, in their order. An adapter's file
  // holds none of these.
  size_t first_weight = 0;
  std::span<const StoredTensor> before = {};
  std::vector<std::string> item_keys;   // outside identifiers, unique, num_items or none
  std::vector<std::string> item_names;  // for people, num_items or none
  std::vector<int32_t> retired;         // items that are never recommended, ascending; not all
  std::vector<int32_t> untrained;       // items that were added and have not learned yet (ModelFile::untrained)
  bool allow_seen = false;              // lists may hold items of the history (ModelFile::lists)
  // How texts become items: an image for text::Tokenizer (runtime/text), of no more tokens than items; or empty.
  std::vector<std::byte> tokenizer;
  std::vector<ProvenanceEntry> provenance;  // oldest first
  std::string description;
  std::string created_by;  // program and version
  OutputBiasOrigin output_bias_origin = OutputBiasOrigin::kNone;
  WeightStorage storage = WeightStorage::kFloat;
  // With an adapter, and only then: content_hash() of the model that it stands beside. The file holds the adapter's
  // matrices alone; keys, names, retired and untrained items, allow_seen, the tokenizer and the origin of the bias are
  // the base's and are not written.
  uint64_t base_hash = 0;
  FileReplacement* reserved = nullptr;  // of ReserveModel, at the same path: used up
};

// Room on the disk for what WriteModel will write, before work or privacy is spent on its weights, which are not read.
// An entry of provenance and a name or two may still be added.
Result<FileReplacement> ReserveModel(const std::string& path, const ModelContents& contents);

// Writes `path` whole or not at all: a temporary file in the same folder, synced, renamed (FileReplacement). On an
// error the old file is untouched and the temporary one is gone. Readable by the owner alone. The same contents give
// the same bytes. kInvalidArgument: contents that ModelFile would refuse, weights that are not finite or beyond what
// halves hold. kIo: the system refused.
// May replace the very file whose mapping `weights` points into.
Status WriteModel(const std::string& path, const ModelContents& contents);

enum class Verify {
  kStructure,  // everything but the weights: what is needed to run safely; cost independent of their size
  kFull,       // also the hash of every tensor, and that every weight is finite
};

// Which files a caller has a use for. kEncoder: what represents whole texts, encoders and classifiers. kAny: all whole
// models. kAnyFile: adapters without their base too, to be looked at; they cannot be run.
enum class Accept { kRecommender, kClassifier, kEncoder, kAny, kAdapter, kAnyFile };

// An open model. Movable; pointers, spans and string views from it are valid as long as it (or what it was moved to)
// lives. Any number of threads may read it.
class ModelFile {
 public:
  // kIo: cannot be read. kInvalidData: not a model, damaged, contradicts itself, has another head than is accepted.
  // kUnsupported: from a newer version.
  // Each sentence starts with `path`.
  static Result<ModelFile> Open(const std::string& path, Verify verify = Verify::kStructure,
                                Accept accept = Accept::kRecommender);

  // A model and an adapter that was trained beside it, as one: the adapter's architecture, the base's keys and names,
  // the provenance of both. kInvalidData also where the adapter belongs to another base. Without `adapter_path` the
  // model alone.
  static Result<ModelFile> OpenWithAdapter(const std::string& base_path, const std::string& adapter_path,
                                           Verify verify = Verify::kStructure, Accept accept = Accept::kRecommender);

  // Open from memory, which must outlive the ModelFile and start on 64 bytes (kInvalidArgument). `name` is used in
  // messages.
  static Result<ModelFile> OpenMemory(const std::string& name, std::span<const std::byte> bytes,
                                      Verify verify = Verify::kStructure, Accept accept = Accept::kRecommender);

  // Open `length` bytes from `offset` on of an open file; 0: to its end. Mapped, and copied where they do not start on
  // 64 bytes. The descriptor stays the caller's.
  static Result<ModelFile> OpenDescriptor(const std::string& name, int descriptor, uint64_t offset, uint64_t length,
                                          Verify verify = Verify::kStructure, Accept accept = Accept::kRecommender);
  // Of such a copy; 0: there is none.
  size_t copied_bytes() const;

  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;
  ~ModelFile();

  // What kFull adds, for a file that is open already.
  Status VerifyWeights() const;

  const Architecture& architecture() const;
  bool is_classifier() const { return architecture().head.kind == HeadKind::kClasses; }
  // Of a classifier.
  const ClassifierDescription& classifier() const;
  // ParametersOf(architecture()); of an adapter without its base StoredParameters.
  std::span<const ParameterSpec> parameters() const;
  // Where they lie in the file, in the same order: for ParameterSource (runtime/layers/weights.h).
  std::span<const StoredTensor> tensors() const;
  // Row-major [rows, cols] of parameters()[parameter_index], on 64 bytes; null where they are halves or blocks.
  const float* Tensor(size_t parameter_index) const;
  // All of them as one flat buffer laid out by ParametersOf; empty when the file has another layout: halves,
  // blocks.
  std::span<const float> flat_weights() const;
  // The same of any file: as they lie where they can, or else copied to `room` and widened.
  std::span<const float> AllWeights(std::vector<float>& room) const;

  // kInt4 where a tensor is, else kInt8, else kHalf.
  WeightStorage storage() const;

  uint32_t num_items() const { return architecture().num_items; }
  bool has_item_keys() const;
  bool has_item_names() const;
  // Empty when the file has none. `item` < num_items().
  std::string_view item_key(size_t item) const;
  std::string_view item_name(size_t item) const;
  // Items that are never recommended, ascending; they may stand in histories. With an adapter the base's.
  std::span<const int32_t> retired() const;
  // Items that were added (catalogue.h) and have not learned yet, ascending. Until they have, they are not recommended
  // and histories are read without them (history_window.h): adding items changes nothing that people are served. With
  // an adapter the base's.
  std::span<const int32_t> untrained() const;
  // What the lists made with it hold: neither of those, and items of the history only if its owner chose that they may
  // come again. With an adapter the base's.
  ModelLists lists() const;
  // Of texts, on 8 bytes; empty where there is none. Not looked into: text::Tokenizer::Open does. With an adapter the
  // base's.
  std::span<const std::byte> tokenizer() const;
  // The item of that key; none when there is no such key or the file has no keys. Logarithmic, allocates nothing.
  std::optional<uint32_t> FindItem(std::string_view key) const;

  std::span<const ProvenanceEntry> provenance() const;
  OutputBiasOrigin output_bias_origin() const;
  std::string_view description() const;
  std::string_view created_by() const;

  // content_hash() of the base where there is an adapter, else 0.
  uint64_t base_hash() const;

  // As messages have it: the path.
  const std::string& name() const;
  uint32_t format_version() const;
  uint32_t oldest_reader() const;  // the oldest format whose readers can read the file
  // Stands for the whole file, weights included: equal files have equal hashes. With an adapter for both files.
  uint64_t content_hash() const;
  // Of both files, where there are two.
  uint64_t size_bytes() const;

 private:
  struct Impl;
  explicit ModelFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What is in the file, for another that says the same or more; its weights are written as floats unless told otherwise.
// `room`: for weights that do not lie as they are written, and must live as long as what is returned.
ModelContents ContentsOf(const ModelFile& file, std::vector<float>& room);
// The same without weights, none of which is read.
ModelContents ContentsWithoutWeights(const ModelFile& file);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_MODEL_FILE_H_
