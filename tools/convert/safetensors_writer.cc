#include <nlohmann/json.hpp>

#include "tools/convert/safetensors.h"
#include "tools/convert/safetensors_header.h"

namespace wisp::convert {
namespace {

// Writes the header, padded with blanks so that the data begin on 8 bytes.
Result<std::string> HeaderText(const std::string& path, std::span<const TensorToWrite> tensors,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t next = 0;
  for (const TensorToWrite& t : tensors) {
    uint64_t elements = 1;
    for (uint64_t n : t.shape) elements *= n;
    if (elements != t.values.size()) {
      return InvalidArgument(path, ": tensor ", Shown(t.name), " has ", t.values.size(), " numbers, its shape ",
                             ShapeInWords(t.shape), " takes ", elements);
    }
    if (header.contains(t.name))
      return InvalidArgument(path, ": tensor ", Shown(t.name), " is there twice, allowed is once");
    header[t.name] = {{"dtype", "F32"}, {"shape", t.shape}, {"data_offsets", {next, next + t.values.size_bytes()}}};
    next += t.values.size_bytes();
  }
  // Bytes that are not UTF-8 become replacement characters instead of an exception.
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxHeaderBytes) {
    return InvalidArgument(path, ": the header would have ", text.size(), " bytes, allowed are ", kMaxHeaderBytes);
  }
  return text;
}

}  // namespace

Status WriteSafeTensors(const std::string& path, std::span<const TensorToWrite> tensors,
                        const std::map<std::string, std::string>& metadata) {
  WISP_ASSIGN_OR_RETURN(const std::string header, HeaderText(path, tensors, metadata));
  // The reader's checks of a header run here, before a file is made.
  if (const auto parsed = ParseHeader(path, header); !parsed.ok()) return InvalidArgument(parsed.status().message());
  const uint64_t length = header.size();
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(&length, 1))));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(header))));
  for (const TensorToWrite& t : tensors) WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(t.values)));
  return file.Commit();
}

}  // namespace wisp::convert
