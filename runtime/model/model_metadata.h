// The metadata of a model, verified and checked. Internal to runtime/model. The reader relies on it; the writer checks
// what it has built with it.
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
  const schema::Model* root = nullptr;  // points into the given bytes
  Architecture architecture;
  std::optional<ClassifierDescription> classifier;  // only and always with a classes head
  std::vector<ParameterSpec> parameters;            // see StoredParameters
  std::vector<container::Array> arrays;             // in the order of the file
  std::vector<size_t> array_of_parameter;           // index into `arrays`
  std::vector<schema::ElementType> types;           // one for each parameter: F32, F16 for a table, or blocks
  std::vector<ProvenanceEntry> provenance;
  std::vector<int32_t> retired, untrained, withheld;  // ascending; the last has the items of both
  std::vector<Succession> successions;
  std::span<const uint64_t> segment_bytes() const {
    return {root->segment_bytes()->data(), root->segment_bytes()->size()};
  }
};

// The bits of a panel type; nullopt for other types.
std::optional<kernels::PanelBits> GetBits(schema::ElementType type);

// Makes all checks of the metadata that do not need the weights. Messages start with `name`.
Result<ModelMetadata> ReadModelMetadata(const std::string& name, std::span<const std::byte> metadata);

}  // namespace wisp::metadata

#endif  // WISP_RUNTIME_MODEL_MODEL_METADATA_H_
