// The common structure of model and checkpoint files: header, metadata, segments. Internal to runtime/model.
// model_file.h and checkpoint.h give the metadata its meaning.
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
  char kind;               // the kind byte of the magic
  const char* noun;        // "wisp model"
  uint32_t version;        // the version that is written, and the newest that is read
  uint32_t oldest_reader;  // the oldest reader, as written to the header
};

constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// A file whose header and metadata are intact. It points into the bytes given to Parse.
struct View {
  std::string name;  // the file's name, for messages
  std::span<const std::byte> file;
  std::span<const std::byte> metadata;  // a FlatBuffer that is not verified yet
  uint32_t version = 0, oldest_reader = 0;
  uint64_t hash = 0;  // covers the whole file
};

// Checks magic, versions, sizes and the two hashes. Messages have this order: not such a file, damaged, too new, cut
// short. `file` must start on 64 bytes (kInvalidArgument otherwise). Allocates nothing.
Result<View> Parse(const std::string& name, std::span<const std::byte> file, const Format& format);
// The first checks of Parse, for memory with any alignment: the file is of this kind and has the length that it states.
Status CheckHeader(const std::string& name, std::span<const std::byte> file, const Format& format);

// An array that the metadata describes.
struct Array {
  std::string_view name;
  uint64_t segment, offset, bytes, hash;
};

// The bytes of each array, in the order given. Checks that segments tile the file and that arrays tile segments.
Result<std::vector<std::span<const std::byte>>> Locate(const View& view, std::span<const uint64_t> segment_bytes,
                                                       std::span<const Array> arrays);

// Checks that the bytes of `arrays` (from Locate) match their hashes, and that gaps after arrays are zero.
Status CheckArrays(const View& view, std::span<const Array> arrays,
                   std::span<const std::span<const std::byte>> located);

// Offsets of arrays in one segment, and its size.
struct Placement {
  std::vector<uint64_t> offsets;
  uint64_t segment_bytes = 0;
};
Placement Place(std::span<const std::span<const std::byte>> arrays);

// Writes header, metadata and one segment with `arrays` at the offsets from Place. Whole or not at all
// (FileReplacement).
struct Contents {
  std::span<const std::byte> metadata;
  std::span<const std::span<const std::byte>> arrays;
  FileReplacement* reserved = nullptr;  // begun at the path, with reserved space; used instead of a new one
};
Status Write(const std::string& path, const Format& format, const Contents& contents);

}  // namespace wisp::container

#endif  // WISP_RUNTIME_MODEL_CONTAINER_H_
