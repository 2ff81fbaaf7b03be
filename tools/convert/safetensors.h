// The safetensors format: named arrays of numbers in one file, as PyTorch and others write them. This is a strict
// reader and a writer; torch_names.h says which tensors a model needs.
//
//   WISP_ASSIGN_OR_RETURN(SafeTensorsFile file, SafeTensorsFile::Open("m.safetensors"));
//   const SafeTensor* table = file.Find("item_embedding.weight");
//   table->CopyTo(floats);                                        // F16 and BF16 become float32, exactly
//
// Format: 8 bytes, little-endian, with the length of the header; the header, one JSON object; the data. The header maps
// each tensor's name to {"dtype", "shape", "data_offsets": [begin, end]}, with offsets from the start of the data, and
// "__metadata__" to texts. Tensors cover the data exactly: no gap, no overlap, nothing after the last tensor.
//
// Files come from anywhere. No size in the file leads to an allocation before it was checked against the file's size. A
// header's tensors, dimensions and depth are bounded.
#ifndef WISP_TOOLS_CONVERT_SAFETENSORS_H_
#define WISP_TOOLS_CONVERT_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/file.h"
#include "runtime/core/status.h"

namespace wisp::convert {

inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
inline constexpr size_t kMaxTensors = 100'000;            // the largest architecture has about 4,100
inline constexpr size_t kMaxMetadataEntries = 10'000;
inline constexpr size_t kMaxDimensions = 8;
inline constexpr size_t kMaxNameBytes = 1024;

// The first three are for weights. For the others only their size in bytes is read.
enum class ElementType : uint8_t { kF32, kF16, kBf16, kF64, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool };
const char* TypeName(ElementType type);  // "F32", "F16", "BF16"
size_t ElementBytes(ElementType type);
inline bool IsWeight(ElementType type) { return type <= ElementType::kBf16; }
// The types that a file may have: files of other programs also hold masks and positions, which nobody reads.
enum class AcceptedTypes : uint8_t { kWeights, kAll };

// A tensor of a file. `bytes` points into the file's bytes and is not aligned.
struct SafeTensor {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<uint64_t> shape;  // row-major; empty: one number
  std::span<const std::byte> bytes;

  uint64_t num_elements() const { return bytes.size() / ElementBytes(type); }
  // Only for weights. `out` holds num_elements() floats. The bits of F32 are kept; every F16 and BF16 value is a float.
  void CopyTo(std::span<float> out) const;
};

// Movable. Tensors are valid as long as this object, or the one that it was moved to, lives.
class SafeTensorsFile {
 public:
  // Returns kIo if it cannot be read, kInvalidData if it breaks the format or its limits, and kUnsupported for another
  // type of numbers. Each sentence starts with `path` and names the tensor.
  static Result<SafeTensorsFile> Open(const std::string& path, AcceptedTypes types = AcceptedTypes::kWeights);
  // Parses a file in memory, which must outlive the result. `name` is used in messages.
  static Result<SafeTensorsFile> Parse(const std::string& name, std::span<const std::byte> bytes,
                                       AcceptedTypes types = AcceptedTypes::kWeights);

  // The tensors in the order of their data.
  const std::vector<SafeTensor>& tensors() const { return tensors_; }
  const SafeTensor* Find(std::string_view name) const;  // null if not found
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

 private:
  MappedFile file_;
  std::vector<SafeTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

// A tensor to write; `values` is read during the call only.
struct TensorToWrite {
  std::string name;
  std::vector<uint64_t> shape;
  std::span<const float> values;  // as many as the product of `shape`
};

// Writes `path` whole or not at all (FileReplacement), all tensors as F32 in the given order. Equal contents give equal
// bytes. Returns kInvalidArgument for contents that the reader would refuse, and kIo if the system refused.
Status WriteSafeTensors(const std::string& path, std::span<const TensorToWrite> tensors,
                        const std::map<std::string, std::string>& metadata);

// Returns a text such as "[3416, 64]".
std::string ShapeInWords(std::span<const uint64_t> shape);
// Prepares a text of a file for a message: cuts it, and removes characters that a terminal would act on.
std::string Shown(std::string_view text);

}  // namespace wisp::convert

#endif  // WISP_TOOLS_CONVERT_SAFETENSORS_H_
