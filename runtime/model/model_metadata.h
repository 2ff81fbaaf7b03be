// The metadata of a model, verified and checked. Internal to runtime/model: the reader believes it, the writer tests
// what it has built against it.
#ifndef WISP_RUNTIME_MODEL_MODEL_METADATA_H_
#define WISP_RUNTIME_MODEL_MODEL_METADATA_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/core/stored_tensor.h"
#include "runtime/model/container.h"
#include "runtime/model/model_file.h"
#include "schema/generated/model_generated.h"

namespace wisp::metadata {

inline constexpr container::Format kModelFormat{
    .kind = 'M', .noun = "wisp model", .version = kModelFormatVersion, .oldest_reader = 1};

inline constexpr size_t kMaxProvenanceEntries = 1024;
inline constexpr size_t kTokenizerAlignment = 8;

struct ModelMetadata {
  const schema::Model* root = nullptr;  // points into the bytes given
  Architecture architecture;
  std::optional<ClassifierDescription> classifier;  // with a head of classes, and only then
  std::vector<ParameterSpec> parameters;            // StoredParameters
  std::vector<container::Array> arrays;             // in the order of the file
  std::vector<size_t> array_of_parameter;           // index into `arrays`
  std::vector<schema::ElementType> types;           // of each parameter: F32, F16 of a table, or blocks
  std::vector<ProvenanceEntry> provenance;
  std::vector<int32_t> retired, untrained, withheld;  // ascending; the last are both
  std::span<const uint64_t> segment_bytes() const {
    return {root->segment_bytes()->data(), root->segment_bytes()->size()};
  }
};

// Of panels; nothing of other types.
std::optional<kernels::PanelBits> BitsOf(schema::ElementType type);

// Everything that can be said of the metadata without looking at the weights. Sentences start with `name`.
Result<ModelMetadata> ReadModelMetadata(const std::string& name, std::span<const std::byte> metadata);

}  // namespace wisp::metadata

#endif  // WISP_RUNTIME_MODEL_MODEL_METADATA_H_
