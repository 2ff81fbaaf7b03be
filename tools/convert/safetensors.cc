#include "tools/convert/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/core/first_characters.h"
#include "runtime/core/text.h"
#include "tools/convert/safetensors_header.h"

namespace wisp::convert {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers of the format are little-endian and copied as they are");

constexpr size_t kLengthBytes = 8;

struct TypeRow {
  const char* name;
  ElementType type;
  size_t bytes;
};
// The rows follow the order of ElementType.
constexpr TypeRow kTypes[] = {
    {"F32", ElementType::kF32, 4},  {"F16", ElementType::kF16, 2}, {"BF16", ElementType::kBf16, 2},
    {"F64", ElementType::kF64, 8},  {"I64", ElementType::kI64, 8}, {"I32", ElementType::kI32, 4},
    {"I16", ElementType::kI16, 2},  {"I8", ElementType::kI8, 1},   {"U64", ElementType::kU64, 8},
    {"U32", ElementType::kU32, 4},  {"U16", ElementType::kU16, 2}, {"U8", ElementType::kU8, 1},
    {"BOOL", ElementType::kBool, 1}};

// Converts IEEE 754 half precision. Every float16 value is a float, subnormal ones too.
float FloatOfHalf(uint16_t half) {
  const uint32_t sign = uint32_t{half} >> 15 << 31, exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

float BrainToFloat(uint16_t brain) { return std::bit_cast<float>(uint32_t{brain} << 16); }

// Returns the bytes of a tensor of this shape; kInvalidData beyond 2^64 - 1.
Result<uint64_t> GetBytes(const std::string& where, std::span<const uint64_t> shape, ElementType type) {
  uint64_t bytes = ElementBytes(type);
  // A dimension of 0 makes the product 0, whatever the other dimensions are.
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return uint64_t{0};
  for (uint64_t n : shape) {
    if (bytes > std::numeric_limits<uint64_t>::max() / n) {
      return InvalidData(where, " has the shape ", ShapeInWords(shape), ", more than 2^64 - 1 bytes");
    }
    bytes *= n;
  }
  return bytes;
}

// Checks the header's claims on one tensor against the data.
Result<SafeTensor> CheckTensor(const std::string& file, DescribedTensor& described, std::span<const std::byte> data,
                               AcceptedTypes types) {
  const std::string where = file + ": tensor " + Shown(described.name);
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& t) { return described.dtype == t.name; });
  if (type == std::end(kTypes) || (types == AcceptedTypes::kWeights && !IsWeight(type->type)))
    return Unsupported(where, " has the dtype ", Shown(described.dtype), ", allowed are F32, F16 and BF16");
  const uint64_t begin = described.offsets[0], end = described.offsets[1];
  if (begin > end || end > data.size()) {
    return InvalidData(where, " has the data_offsets ", ShapeInWords(described.offsets),
                       ", allowed is a range within the ", data.size(), " bytes of data");
  }
  WISP_ASSIGN_OR_RETURN(const uint64_t bytes, GetBytes(where, described.shape, type->type));
  if (bytes != end - begin) {
    return InvalidData(where, " has ", end - begin, " bytes, its shape ", ShapeInWords(described.shape), " and dtype ",
                       type->name, " take ", bytes);
  }
  return SafeTensor{std::move(described.name), type->type, std::move(described.shape),
                    data.subspan(begin, end - begin)};
}

// Checks tensors in the order of their data: each begins where the one before ends, and the last one ends with the
// data.
Status CheckCover(const std::string& file, const std::vector<SafeTensor>& tensors, std::span<const std::byte> data) {
  const std::byte* next = data.data();
  for (const SafeTensor& t : tensors) {
    if (t.bytes.data() != next) {
      return InvalidData(file, ": tensor ", Shown(t.name), " begins at byte ", t.bytes.data() - data.data(),
                         " of the data, allowed is ", next - data.data(), ", where the one before it ends");
    }
    next = t.bytes.data() + t.bytes.size();
  }
  if (next == data.data() + data.size()) return OkStatus();
  return InvalidData(file, ": there are ", data.data() + data.size() - next,
                     " bytes of data behind the last tensor, allowed are 0");
}

// Detects files of torch that people give in place of a safetensors file: it saves zip archives, and older versions
// save pickles.
Status CheckIsNotTorch(const std::string& name, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool pickle = text[0] == '\x80' && text[1] >= '\x02' && text[1] <= '\x05';
  if (!pickle && !text.starts_with("PK\x03\x04")) return OkStatus();
  return Unsupported(name, ": it is ", (pickle ? "a pickle" : "a zip archive"),
                     ", as torch saves (.pt, .pth, .bin), supported is safetensors: tools/convert/to_safetensors.py "
                     "writes that, with torch");
}

}  // namespace

const char* TypeName(ElementType type) { return kTypes[static_cast<size_t>(type)].name; }
size_t ElementBytes(ElementType type) { return kTypes[static_cast<size_t>(type)].bytes; }

std::string ShapeInWords(std::span<const uint64_t> shape) {
  std::string words = "[";
  for (size_t i = 0; i < shape.size(); ++i) words += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return words + "]";
}

std::string Shown(std::string_view text) {
  constexpr size_t kMost = 120;
  const std::string_view beginning = FirstCharacters(text, kMost);
  return "'" + OneLine(std::string(beginning)) + (beginning.size() < text.size() ? "...'" : "'");
}

void SafeTensor::CopyTo(std::span<float> out) const {
  if (bytes.empty()) return;
  if (type == ElementType::kF32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  for (size_t i = 0; i < num_elements(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, sizeof(bits));
    out[i] = type == ElementType::kF16 ? FloatOfHalf(bits) : BrainToFloat(bits);
  }
}

Result<SafeTensorsFile> SafeTensorsFile::Open(const std::string& path, AcceptedTypes types) {
  WISP_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  WISP_ASSIGN_OR_RETURN(SafeTensorsFile file, Parse(path, mapped.bytes(), types));
  file.file_ = std::move(mapped);
  return file;
}

Result<SafeTensorsFile> SafeTensorsFile::Parse(const std::string& name, std::span<const std::byte> bytes,
                                               AcceptedTypes types) {
  if (bytes.size() < kLengthBytes) {
    return InvalidData(name, ": it has ", bytes.size(), " bytes, a safetensors file has 8 or more");
  }
  WISP_RETURN_IF_ERROR(CheckIsNotTorch(name, bytes));
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  const uint64_t most = std::min<uint64_t>(kMaxHeaderBytes, bytes.size() - kLengthBytes);
  if (length > most && length <= kMaxHeaderBytes && bytes.size() > kLengthBytes &&
      bytes[kLengthBytes] == std::byte{'{'}) {
    return InvalidData(name, ": it is cut short, or damaged: the header promises ", length,
                       " bytes of itself, there are ", most);
  }
  if (length < 2 || length > most) {
    return InvalidData(name, ": it is no safetensors file, or damaged: the header's length is ", length,
                       ", allowed are 2 to ", most);
  }
  const std::string_view json(reinterpret_cast<const char*>(bytes.data() + kLengthBytes), length);
  if (json[0] != '{')
    return InvalidData(name, ": it is no safetensors file, or damaged: the header begins with ",
                       Shown(json.substr(0, 1)), ", allowed is '{'");
  WISP_ASSIGN_OR_RETURN(Header header, ParseHeader(name, json));
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  uint64_t promised = 0;
  for (const DescribedTensor& described : header.tensors) promised = std::max(promised, described.offsets[1]);
  if (promised > data.size()) {
    return InvalidData(name, ": it is cut short, or damaged: the header promises ", promised,
                       " bytes of data, there are ", data.size());
  }
  SafeTensorsFile file;
  file.metadata_ = std::move(header.metadata);
  for (DescribedTensor& described : header.tensors) {
    WISP_ASSIGN_OR_RETURN(SafeTensor tensor, CheckTensor(name, described, data, types));
    file.tensors_.push_back(std::move(tensor));
  }
  // An empty tensor that begins where another one does comes first.
  std::stable_sort(file.tensors_.begin(), file.tensors_.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
  });
  WISP_RETURN_IF_ERROR(CheckCover(name, file.tensors_, data));
  for (size_t i = 0; i < file.tensors_.size(); ++i) file.by_name_.emplace(file.tensors_[i].name, i);
  return file;
}

const SafeTensor* SafeTensorsFile::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace wisp::convert
