// The common metadata of models and checkpoints: texts, architecture, tensors. Internal to runtime/model. Readers and
// writers call the same checks, so nothing is written that a reader would refuse.
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

// kMany allows line feed, carriage return and tab; other control characters are never allowed
enum class Lines { kOne, kMany };

// True if the text is UTF-8 as in RFC 3629 (no surrogates, no overlong forms) without control characters.
bool IsText(std::string_view text, Lines lines);

// Checks the texts of one file. In a FlatBuffer many offsets may point to one text, so a small file could make a reader
// check it a million times. Therefore all texts together may have no more bytes than the metadata.
class TextChecker {
 public:
  TextChecker(std::string name, uint64_t metadata_bytes) : name_(std::move(name)), bytes_left_(metadata_bytes) {}

  // `text` may be null (absent). `field` names it in messages: "item_names[3]".
  Status Check(std::string_view field, const flatbuffers::String* text, Lines lines);

 private:
  std::string name_;
  uint64_t bytes_left_;
};

inline std::string_view ToView(const flatbuffers::String* text) {
  return text ? text->string_view() : std::string_view();
}
inline std::string ToString(const flatbuffers::String* text) { return std::string(ToView(text)); }

flatbuffers::Offset<schema::Architecture> BuildArchitecture(flatbuffers::FlatBufferBuilder& builder,
                                                            const Architecture& a);

// Reads an architecture and checks it with Validate. The message starts with `name`. `num_classes` is from the
// classifier's metadata, where it is stored.
Result<Architecture> ReadArchitecture(const std::string& name, const schema::Architecture& stored,
                                      std::optional<uint32_t> num_classes);

// Checks that the numbers are aligned to 8 bytes. The FlatBuffers verifier (2.0.8) checks only the alignment of a
// vector's length.
Status CheckAlignment(const std::string& name, const flatbuffers::Vector<uint64_t>& values);

// The expected name, type and shape of a tensor, and its number of bytes.
struct ExpectedTensor {
  schema::ElementType type;
  std::span<const uint64_t> shape;
  uint64_t bytes;
  const char* readable = nullptr;  // all types that would be allowed, for messages; null: only `type`
};
Status CheckTensor(const std::string& name, const schema::Tensor& tensor, const ExpectedTensor& expected);

container::Array ToArray(const schema::Tensor& tensor);

// True if all are finite. Runs at about the speed of memory.
bool AllFinite(std::span<const float> values);

// Runs the FlatBuffers verifier with the limits of our schema. `verify` is VerifyModelBuffer or VerifyCheckpointBuffer.
using VerifyRoot = bool (*)(flatbuffers::Verifier&);
Status VerifyBuffer(const std::string& name, std::span<const std::byte> metadata, VerifyRoot verify);

// Turns an error about a file into an error about the caller's argument, for writers that check what they have built.
Status AsArgument(const Status& status);

}  // namespace wisp::metadata

#endif  // WISP_RUNTIME_MODEL_METADATA_H_
