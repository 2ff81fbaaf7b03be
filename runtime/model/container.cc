#include "runtime/model/container.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "runtime/core/hash.h"

namespace wisp::container {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and mapped as they are");

constexpr size_t kHashedHeaderBytes = 56;
using Magic = std::array<char, 8>;

struct Header {
  Magic magic;
  uint32_t version;
  uint32_t oldest_reader;
  uint64_t file_bytes;
  uint64_t metadata_offset;
  uint64_t metadata_bytes;
  uint64_t metadata_hash;
  uint64_t zero;
  uint64_t hash;
};
static_assert(sizeof(Header) == kHeaderBytes && offsetof(Header, hash) == kHashedHeaderBytes);

constexpr char kModelKind = 'M', kCheckpointKind = 'C';

// The first byte occurs in no text. The line end detects a transfer in text mode. 0x1a ends the output of `type`.
constexpr Magic MakeMagic(char kind) { return {'\x89', 'W', 'S', 'P', kind, '\r', '\n', '\x1a'}; }

uint64_t ComputeHash(const Header& header) {
  return Hash64(std::as_bytes(std::span(&header, 1)).first(kHashedHeaderBytes));
}

std::string Text(uint64_t value) { return std::to_string(value); }

bool IsZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

Status CheckMagic(const std::string& name, std::span<const std::byte> file, const Format& format) {
  if (file.empty()) return InvalidData(name, ": is empty, a ", format.noun, " file is needed");
  Magic magic{};
  std::memcpy(magic.data(), file.data(), std::min(file.size(), magic.size()));
  if (magic == MakeMagic(format.kind)) return OkStatus();
  if (magic == MakeMagic(kModelKind)) {
    return InvalidData(name, ": is a wisp model, a ", format.noun, " file is needed");
  }
  if (magic == MakeMagic(kCheckpointKind)) {
    return InvalidData(name, ": is a wisp checkpoint, a ", format.noun, " file is needed");
  }
  return InvalidData(name, ": is not a ", format.noun, " file (its first bytes are others)");
}

Status CheckVersions(const std::string& name, const Header& header, const Format& format) {
  if (header.oldest_reader > format.version) {
    return Unsupported(name, ": written by format ", header.version, " for readers of format ", header.oldest_reader,
                       " or newer, this build reads up to ", format.version);
  }
  if (header.oldest_reader == 0 || header.version < header.oldest_reader) {
    return InvalidData(name, ": the header states format ", header.version, " and oldest reader ", header.oldest_reader,
                       ", which cannot be");
  }
  return OkStatus();
}

}  // namespace

namespace {

Result<Header> ReadHeader(const std::string& name, std::span<const std::byte> file, const Format& format) {
  WISP_RETURN_IF_ERROR(CheckMagic(name, file, format));
  if (file.size() < kHeaderBytes) {
    return InvalidData(name, ": was cut short: it has ", file.size(), " bytes, the header alone takes ", kHeaderBytes);
  }
  Header header;
  std::memcpy(&header, file.data(), sizeof(header));
  if (ComputeHash(header) != header.hash) return InvalidData(name, ": the header is damaged (its checksum differs)");
  WISP_RETURN_IF_ERROR(CheckVersions(name, header, format));
  if (header.file_bytes != file.size()) {
    return InvalidData(name, ": has ", file.size(), " bytes, its header says ", header.file_bytes,
                       ": it was cut short or appended to");
  }
  return header;
}

}  // namespace

Status CheckHeader(const std::string& name, std::span<const std::byte> file, const Format& format) {
  return ReadHeader(name, file, format).status();
}

Result<View> Parse(const std::string& name, std::span<const std::byte> file, const Format& format) {
  if (reinterpret_cast<uintptr_t>(file.data()) % kArrayAlignment != 0) {
    return InvalidArgument(name, ": the memory must start on a multiple of ", kArrayAlignment, " bytes");
  }
  WISP_ASSIGN_OR_RETURN(const Header header, ReadHeader(name, file, format));
  if (header.metadata_offset != kHeaderBytes || header.zero != 0) {
    return InvalidData(name, ": the header has metadata at offset ", header.metadata_offset, ", allowed is ",
                       kHeaderBytes);
  }
  const uint64_t most = std::min<uint64_t>(kMaxMetadataBytes, file.size() - kHeaderBytes);
  if (header.metadata_bytes == 0 || header.metadata_bytes > most) {
    return InvalidData(name, ": the header states ", header.metadata_bytes, " bytes of metadata, allowed are 1 to ",
                       most);
  }
  View view{.name = name,
            .file = file,
            .version = header.version,
            .oldest_reader = header.oldest_reader,
            .hash = header.hash};
  view.metadata = file.subspan(kHeaderBytes, static_cast<size_t>(header.metadata_bytes));
  if (Hash64(view.metadata) != header.metadata_hash) {
    return InvalidData(name, ": the metadata is damaged (its checksum differs)");
  }
  return view;
}

namespace {

// Finds the bytes of each segment. Checks that segments tile the file and that gaps are zero.
Result<std::vector<std::span<const std::byte>>> LocateSegments(const View& view, std::span<const uint64_t> sizes) {
  if (sizes.empty() || sizes.size() > kMaxSegments) {
    return InvalidData(view.name, ": has ", sizes.size(), " segments, allowed are 1 to ", kMaxSegments);
  }
  std::vector<std::span<const std::byte>> segments;
  uint64_t end = kHeaderBytes + view.metadata.size();
  for (uint64_t size : sizes) {
    const uint64_t start = AlignUp(end, kSegmentAlignment);
    const std::string which = view.name + ": segment " + Text(segments.size());
    if (start > view.file.size() || size > view.file.size() - start) {
      return InvalidData(which, " of ", size, " bytes would end behind the file, which has ", view.file.size());
    }
    if (size == 0 || size % kArrayAlignment != 0) {
      return InvalidData(which, " has ", size, " bytes, allowed are multiples of ", kArrayAlignment);
    }
    if (!IsZero(view.file.subspan(static_cast<size_t>(end), static_cast<size_t>(start - end)))) {
      return InvalidData(which, ": the bytes before it are damaged (not zero)");
    }
    segments.push_back(view.file.subspan(static_cast<size_t>(start), static_cast<size_t>(size)));
    end = start + size;
  }
  if (end != view.file.size()) {
    return InvalidData(view.name, ": the segments end at byte ", end, ", the file has ", view.file.size());
  }
  return segments;
}

}  // namespace

Result<std::vector<std::span<const std::byte>>> Locate(const View& view, std::span<const uint64_t> segment_bytes,
                                                       std::span<const Array> arrays) {
  WISP_ASSIGN_OR_RETURN(const auto segments, LocateSegments(view, segment_bytes));
  std::vector<std::span<const std::byte>> located;
  located.reserve(arrays.size());
  size_t segment = 0;
  uint64_t next = 0;
  for (const Array& array : arrays) {
    const std::string which = view.name + ": tensor " + std::string(array.name);
    if (segment + 1 < segments.size() && next == segments[segment].size()) {
      ++segment;
      next = 0;
    }
    if (array.segment != segment || array.offset != next) {
      return InvalidData(which, " is at offset ", array.offset, " of segment ", array.segment,
                         ", it must follow the one before, at ", next, " of ", segment);
    }
    const uint64_t room = segments[segment].size() - next;
    if (array.bytes == 0 || array.bytes > room) {
      return InvalidData(which, " has ", array.bytes, " bytes, allowed are 1 to ", room);
    }
    located.push_back(segments[segment].subspan(static_cast<size_t>(next), static_cast<size_t>(array.bytes)));
    if (reinterpret_cast<uintptr_t>(located.back().data()) % kArrayAlignment != 0) {
      return InvalidData(which, " does not start on ", kArrayAlignment, " bytes in memory");
    }
    next = AlignUp(next + array.bytes, kArrayAlignment);
  }
  if (segment + 1 != segments.size() || next != segments[segment].size()) {
    return InvalidData(view.name, ": the tensors end at byte ", next, " of segment ", segment,
                       ", which is not the end of the last");
  }
  return located;
}

Status CheckArrays(const View& view, std::span<const Array> arrays,
                   std::span<const std::span<const std::byte>> located) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::string_view name = arrays[i].name;
    if (Hash64(located[i]) != arrays[i].hash) {
      return InvalidData(view.name, ": tensor ", name, " is damaged (its checksum differs)");
    }
    const size_t padding = static_cast<size_t>(AlignUp(located[i].size(), kArrayAlignment) - located[i].size());
    const size_t end = static_cast<size_t>(located[i].data() - view.file.data()) + located[i].size();
    if (!IsZero(view.file.subspan(end, padding))) {
      return InvalidData(view.name, ": the bytes behind tensor ", name, " are damaged (not zero)");
    }
  }
  return OkStatus();
}

Placement Place(std::span<const std::span<const std::byte>> arrays) {
  Placement placement;
  for (const auto& array : arrays) {
    placement.offsets.push_back(placement.segment_bytes);
    placement.segment_bytes += AlignUp(array.size(), kArrayAlignment);
  }
  return placement;
}

Status Write(const std::string& path, const Format& format, const Contents& contents) {
  const uint64_t metadata_end = kHeaderBytes + contents.metadata.size(),
                 start = AlignUp(metadata_end, kSegmentAlignment);
  if (contents.metadata.size() > kMaxMetadataBytes) {
    return InvalidArgument(path, ": the metadata would take ", contents.metadata.size(), " bytes, allowed are ",
                           kMaxMetadataBytes, ": shorten the item names and keys");
  }
  Header header{.magic = MakeMagic(format.kind),
                .version = format.version,
                .oldest_reader = format.oldest_reader,
                .file_bytes = start + Place(contents.arrays).segment_bytes,
                .metadata_offset = kHeaderBytes,
                .metadata_bytes = contents.metadata.size(),
                .metadata_hash = Hash64(contents.metadata),
                .zero = 0,
                .hash = 0};
  header.hash = ComputeHash(header);
  std::optional<FileReplacement> begun;
  if (contents.reserved == nullptr) {
    WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path));
    begun.emplace(std::move(file));
  }
  FileReplacement& out = begun ? *begun : *contents.reserved;
  WISP_RETURN_IF_ERROR(out.Write(std::as_bytes(std::span(&header, 1))));
  WISP_RETURN_IF_ERROR(out.Write(contents.metadata));
  WISP_RETURN_IF_ERROR(out.WriteZeros(static_cast<size_t>(start - metadata_end)));
  for (const auto& array : contents.arrays) {
    WISP_RETURN_IF_ERROR(out.Write(array));
    WISP_RETURN_IF_ERROR(out.WriteZeros(static_cast<size_t>(AlignUp(array.size(), kArrayAlignment) - array.size())));
  }
  return out.Commit();
}

}  // namespace wisp::container
