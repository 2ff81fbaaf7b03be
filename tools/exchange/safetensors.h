// The safetensors format: named arrays of numbers in one file, as PyTorch and others write them. A strict reader and a
// writer. Not a model: which tensors there must be is said in torch_names.h.
//
//   WISP_ASSIGN_OR_RETURN(SafeTensorsFile file, SafeTensorsFile::Open("m.safetensors"));
//   const SafeTensor* table = file.Find("item_embedding.weight");
//   table->CopyTo(floats);                                        // F16 and BF16 are widened, exactly
//
// Format: 8 bytes, little-endian, the length of the header; the header, one JSON object; the data. The header maps each
// tensor's name to {"dtype", "shape", "data_offsets": [begin, end]}, offsets from the start of the data, and
// "__metadata__" to texts. The data are covered exactly: no gap, no overlap, nothing behind the last tensor.
//
// Files come from anywhere. Nothing is allocated by a number of the file that has not been held against the file's
// size; what a header can say of tensors, dimensions and depth is bounded.
#ifndef WISP_TOOLS_EXCHANGE_SAFETENSORS_H_
#define WISP_TOOLS_EXCHANGE_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/file.h"
#include "runtime/core/status.h"

namespace wisp::exchange {

inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
inline constexpr size_t kMaxTensors = 100'000;            // the largest architecture has some 4,100
inline constexpr size_t kMaxMetadataEntries = 10'000;
inline constexpr size_t kMaxDimensions = 8;
inline constexpr size_t kMaxNameBytes = 1024;

// The first three are weights; of the others nothing is read but how many bytes they take.
enum class ElementType : uint8_t { kF32, kF16, kBf16, kF64, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool };
const char* TypeName(ElementType type);  // "F32", "F16", "BF16"
size_t ElementBytes(ElementType type);
inline bool IsWeight(ElementType type) { return type <= ElementType::kBf16; }
// Which tensors a file may have: files of other programs also hold masks and positions, which nobody reads.
enum class AcceptedTypes : uint8_t { kWeights, kAll };

// A tensor of a file. `bytes` points into the file's bytes and is not aligned.
struct SafeTensor {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<uint64_t> shape;  // row-major; none: one number
  std::span<const std::byte> bytes;

  uint64_t num_elements() const { return bytes.size() / ElementBytes(type); }
  // Of weights. `out`: num_elements() floats. The bits of F32 stay as they are; every F16 and BF16 is a float.
  void CopyTo(std::span<float> out) const;
};

// Movable; tensors are valid as long as it, or what it was moved to, lives.
class SafeTensorsFile {
 public:
  // kIo: cannot be read. kInvalidData: not of the format, or outside of its limits. kUnsupported: of another type of
  // numbers. Each sentence starts with `path` and names the tensor.
  static Result<SafeTensorsFile> Open(const std::string& path, AcceptedTypes types = AcceptedTypes::kWeights);
  // The same from memory, which must outlive what is returned. `name` is used in messages.
  static Result<SafeTensorsFile> Parse(const std::string& name, std::span<const std::byte> bytes,
                                       AcceptedTypes types = AcceptedTypes::kWeights);

  // In the order of their data.
  const std::vector<SafeTensor>& tensors() const { return tensors_; }
  const SafeTensor* Find(std::string_view name) const;  // null: there is none
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

 private:
  MappedFile file_;
  std::vector<SafeTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

// What is to be written; `values` is read during the call only.
struct TensorToWrite {
  std::string name;
  std::vector<uint64_t> shape;
  std::span<const float> values;  // as many as the product of `shape`
};

// Writes `path` whole or not at all (FileReplacement), all tensors as F32 in the order given. The same contents give
// the same bytes. kInvalidArgument: contents that the reader would refuse. kIo: the system refused.
Status WriteSafeTensors(const std::string& path, std::span<const TensorToWrite> tensors,
                        const std::map<std::string, std::string>& metadata);

// "[3416, 64]".
std::string ShapeInWords(std::span<const uint64_t> shape);
// A text of a file as a message shows it: cut, and without what a terminal would act on.
std::string Shown(std::string_view text);

}  // namespace wisp::exchange

#endif  // WISP_TOOLS_EXCHANGE_SAFETENSORS_H_
