// Folders of Hugging Face: whatever config.json, the files beside it and the tensors say, the result is a sentence or a
// model that the runtime accepts, and the written model can be read.
#include <cmath>
#include <filesystem>

#include "tests/fuzz/input.h"
#include "tests/unit/core/temporary_folder.h"
#include "tools/convert/hugging_face/export.h"
#include "tools/convert/hugging_face/tensors.h"

namespace {

namespace hf = wisp::convert::hugging_face;
using wisp::fuzz::Input;
using wisp::fuzz::Require;
using wisp::fuzz::RequireSentence;
using wisp::fuzz::WriteFile;

// Writes a piece with its length before it; an empty piece means no file.
void WritePiece(Input& input, const std::string& path) {
  std::filesystem::remove(path);
  const std::string_view piece = input.Piece(input.Number<uint16_t>());
  if (!piece.empty()) WriteFile(path, piece);
}

// Writes a safetensors file whose header has the right length.
void WriteTensors(Input& input, const std::string& path) {
  const std::string_view header = input.Piece(input.Number<uint16_t>());
  const uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes += header;
  bytes += input.Rest();
  WriteFile(path, bytes);
}

void RequireReadsAsWritten(const hf::Description& d) {
  Require(Validate(d.architecture).ok(), "an accepted architecture is a valid one");
  const auto text = hf::WriteConfig("config.json", *d.family, d.architecture, d.class_names);
  if (!text.ok()) return RequireSentence(text.status().message());
  const auto again = hf::ReadConfig("config.json", *text, {});
  Require(again.ok(), "what is written of a config can be read");
}

void CheckConfig(Input& input) {
  const uint32_t max_length = input.Number<uint16_t>();
  const auto read = hf::ReadConfig("config.json", input.Rest(), {.max_length = max_length});
  if (!read.ok()) return RequireSentence(read.status().message());
  RequireReadsAsWritten(*read);
}

wisp::Status Convert(const std::string& path, hf::ChosenPooling pooling) {
  WISP_ASSIGN_OR_RETURN(const hf::Folder folder, hf::Folder::Open(path));
  WISP_ASSIGN_OR_RETURN(const hf::Description d, hf::Describe(folder, {.pooling = pooling}));
  RequireReadsAsWritten(d);
  WISP_ASSIGN_OR_RETURN(const hf::Matching matching, hf::MatchTensors(folder, d));
  WISP_ASSIGN_OR_RETURN(const hf::Weights weights, hf::ReadWeights(folder, d, matching));
  for (const hf::Match& match : matching.matches) {
    const std::span<const float> values = weights.values().subspan(match.parameter.offset, match.parameter.size());
    for (const float value : values) Require(std::isfinite(value), "an accepted weight is finite");
  }
  WISP_ASSIGN_OR_RETURN(const hf::ExportedTensors out,
                        hf::ExportTensors("m.wisp", *d.family, d.architecture, weights.values()));
  Require(!out.tensors.empty(), "a model has tensors");
  return wisp::OkStatus();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const wisp::test::TemporaryFolder folder;
  Input input(data, size);
  const uint8_t choice = input.Byte();
  if (choice % 2 == 0) {
    CheckConfig(input);
    return 0;
  }
  std::filesystem::create_directories(folder / "1_Pooling");
  for (const char* name : {"config.json", "modules.json", "1_Pooling/config.json", "tokenizer.json",
                           "special_tokens_map.json", "vocab.txt", "model.safetensors.index.json"})
    WritePiece(input, folder / name);
  // With an index the tensors are a shard.
  const bool sharded = std::filesystem::exists(folder / "model.safetensors.index.json");
  std::filesystem::remove(folder / "model.safetensors");
  WriteTensors(input, folder / (sharded ? "a.safetensors" : "model.safetensors"));
  const wisp::Status status = Convert(folder.path(), static_cast<hf::ChosenPooling>(choice / 2 % 4));
  if (!status.ok()) RequireSentence(status.message());
  return 0;
}
