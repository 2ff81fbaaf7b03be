// What the metadata of models and checkpoints share: texts, the architecture, tensors. Internal to runtime/model.
// Readers and writers call the same checks, so nothing is written that would not be read.
#ifndef WISP_RUNTIME_MODEL_METADATA_H_
#define WISP_RUNTIME_MODEL_METADATA_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/model/container.h"
#include "schema/generated/common_generated.h"

namespace wisp::metadata {

enum class Lines { kOne, kMany };  // kMany allows line feed, carriage return and tab; other control characters never

// UTF-8 as in RFC 3629 (no surrogates, nothing overlong) without control characters.
bool IsText(std::string_view text, Lines lines);

// Checks the texts of one file. FlatBuffers may let many offsets point at one text; a small file could so make a reader
// look at it a million times. Together they may therefore take no more than the metadata has bytes.
class TextChecker {
 public:
  TextChecker(std::string name, uint64_t metadata_bytes) : name_(std::move(name)), bytes_left_(metadata_bytes) {}

  // `text` may be null (absent). `field` says what it is in the message: "item_names[3]".
  Status Check(std::string_view field, const flatbuffers::String* text, Lines lines);

 private:
  std::string name_;
  uint64_t bytes_left_;
};

inline std::string_view ViewOf(const flatbuffers::String* text) {
  return text ? text->string_view() : std::string_view();
}
inline std::string StringOf(const flatbuffers::String* text) { return std::string(ViewOf(text)); }

flatbuffers::Offset<schema::Architecture> BuildArchitecture(flatbuffers::FlatBufferBuilder& builder,
                                                            const Architecture& a);

// `format` with the oldest reader that understands the architecture (schema/README.md).
container::Format FormatFor(container::Format format, const Architecture& architecture);

// Checked by Validate; the sentence starts with `name`. `num_classes`: of a classifier, whose metadata say so
// elsewhere.
Result<Architecture> ReadArchitecture(const std::string& name, const schema::Architecture& stored,
                                      std::optional<uint32_t> num_classes);

// Whether the numbers lie on 8 bytes: the FlatBuffers verifier (2.0.8) checks the alignment of a vector's length only.
Status CheckAlignment(const std::string& name, const flatbuffers::Vector<uint64_t>& values);

// Name, type and shape of a tensor that must be `type` [dimensions], of so many bytes.
struct ExpectedTensor {
  schema::ElementType type;
  std::span<const uint64_t> shape;
  uint64_t bytes;
  const char* readable = nullptr;  // all types that would do, for messages; null: `type` alone
};
Status CheckTensor(const std::string& name, const schema::Tensor& tensor, const ExpectedTensor& expected);

container::Array ArrayOf(const schema::Tensor& tensor);

// Whether all are finite. About the speed of memory.
bool AllFinite(std::span<const float> values);

// Runs the FlatBuffers verifier with the limits of our schema; `verify` is VerifyModelBuffer or VerifyCheckpointBuffer.
using VerifyRoot = bool (*)(flatbuffers::Verifier&);
Status VerifyBuffer(const std::string& name, std::span<const std::byte> metadata, VerifyRoot verify);

// The same failure as the caller's mistake instead of the file's: for writers, which check what they have built.
Status AsArgument(const Status& status);

}  // namespace wisp::metadata

#endif  // WISP_RUNTIME_MODEL_METADATA_H_
