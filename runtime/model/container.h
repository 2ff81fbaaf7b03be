// The bytes that model and checkpoint files have in common: header, metadata, segments. Internal to runtime/model.
// Not the meaning of the metadata: model_file.h and checkpoint.h have that.
//
//   offset      size  header (64 bytes, little-endian; this layout is the same in every format version)
//   0              8  magic: 0x89 'W' 'S' 'P' kind '\r' '\n' 0x1a, kind 'M' (model) or 'C' (checkpoint)
//   8              4  format version of the writer
//   12             4  oldest format version whose reader can read the file
//   16             8  size of the file in bytes
//   24             8  offset of the metadata: 64
//   32             8  size of the metadata in bytes, at most 64 MiB
//   40             8  XXH3-64 of the metadata
//   48             8  zero
//   56             8  XXH3-64 of bytes 0 to 55; through the metadata, which has all arrays' hashes, it covers the file
//   64                metadata: a FlatBuffer (schema/model.fbs, schema/checkpoint.fbs)
//   then              segments, each from the next multiple of 16384 on, in order, sizes as in the metadata. In
//                     each, arrays from the next multiple of 64 bytes on, in order. Bytes between are zero. Nothing
//                     follows the last segment.
//
// Every byte is therefore covered: by a hash that is always checked (header, metadata), by being zero (gaps before
// segments: always; between arrays: with the arrays), or by the hash of an array (checked on demand).
//
// 16384: the largest page of the phones that wisp runs on. 64: a cache line, an AVX-512 register.
#ifndef WISP_RUNTIME_MODEL_CONTAINER_H_
#define WISP_RUNTIME_MODEL_CONTAINER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/file.h"
#include "runtime/core/status.h"

namespace wisp::container {

inline constexpr size_t kHeaderBytes = 64;
inline constexpr size_t kSegmentAlignment = 16384;
inline constexpr size_t kArrayAlignment = 64;
inline constexpr uint64_t kMaxMetadataBytes = uint64_t{64} << 20;
inline constexpr size_t kMaxSegments = 64;

struct Format {
  char kind;               // in the magic
  const char* noun;        // "wisp model"
  uint32_t version;        // written, and the newest that is read
  uint32_t oldest_reader;  // written
};

constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// A file whose header and metadata are intact. Points into the bytes given to Parse.
struct View {
  std::string name;  // of the file, for messages
  std::span<const std::byte> file;
  std::span<const std::byte> metadata;  // its FlatBuffer is not verified yet
  uint32_t version = 0, oldest_reader = 0;
  uint64_t hash = 0;  // stands for the whole file
};

// Checks magic, versions, sizes and the two hashes, in this order of messages: not such a file, damaged, too new, cut
// short. `file` must start on 64 bytes (kInvalidArgument otherwise). Allocates nothing.
Result<View> Parse(const std::string& name, std::span<const std::byte> file, const Format& format);
// Its first checks, wherever the memory starts: whether it is a file of this kind and has the length that it states.
Status CheckHeader(const std::string& name, std::span<const std::byte> file, const Format& format);

// An array as the metadata describes it.
struct Array {
  std::string_view name;
  uint64_t segment, offset, bytes, hash;
};

// The bytes of each array, in the order given, once it is certain that segments tile the file and arrays segments.
Result<std::vector<std::span<const std::byte>>> Locate(const View& view, std::span<const uint64_t> segment_bytes,
                                                       std::span<const Array> arrays);

// Whether the bytes of `arrays` (from Locate) have their hashes, and the bytes behind each up to the next are zero.
Status CheckArrays(const View& view, std::span<const Array> arrays,
                   std::span<const std::span<const std::byte>> located);

// Offsets within one segment, and its size.
struct Placement {
  std::vector<uint64_t> offsets;
  uint64_t segment_bytes = 0;
};
Placement Place(std::span<const std::span<const std::byte>> arrays);

// Writes header, metadata and one segment that holds `arrays` as Place has put them. All or nothing: FileReplacement.
struct Contents {
  std::span<const std::byte> metadata;
  std::span<const std::span<const std::byte>> arrays;
  FileReplacement* reserved = nullptr;  // begun at the path, with room: written instead of a new one
};
Status Write(const std::string& path, const Format& format, const Contents& contents);

}  // namespace wisp::container

#endif  // WISP_RUNTIME_MODEL_CONTAINER_H_
