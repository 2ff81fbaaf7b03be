// safetensors files: an accepted one can be read to its end, and its architecture is compared with its tensors.
#include <memory>
#include <vector>

#include "tests/fuzz/input.h"
#include "tools/convert/safetensors.h"
#include "tools/convert/torch_names.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace wisp;
  using convert::SafeTensorsFile;
  // A byte says if the length of the header, the first 8 bytes of a file, is corrected: otherwise any byte that a
  // fuzzer adds would end every try there.
  fuzz::Input input(data, size);
  const bool fit = input.Byte() % 2 == 1;
  std::string bytes;
  if (fit) {
    const uint64_t header = input.Number<uint16_t>();
    const std::string_view json = input.Piece(header);
    const uint64_t length = json.size();
    bytes.assign(reinterpret_cast<const char*>(&length), sizeof(length));
    bytes += json;
  }
  bytes += input.Rest();
  const std::vector<std::byte> exact(std::as_bytes(std::span(bytes.data(), bytes.size())).begin(),
                                     std::as_bytes(std::span(bytes.data(), bytes.size())).end());
  const auto file = SafeTensorsFile::Parse("memory", exact);
  if (!file.ok()) {
    fuzz::RequireSentence(file.status().message());
    return 0;
  }
  for (const convert::SafeTensor& tensor : file->tensors()) {
    std::vector<float> values(tensor.num_elements());
    tensor.CopyTo(values);
    fuzz::Require(file->Find(tensor.name) != nullptr, "a tensor is found by its name");
    (void)convert::ShapeInWords(tensor.shape);
  }
  const auto architecture = convert::InferArchitecture("memory", *file);
  if (!architecture.ok()) {
    fuzz::RequireSentence(architecture.status().message());
    return 0;
  }
  const auto weights = convert::ReadWeights("memory", *file, *architecture);
  if (!weights.ok()) fuzz::RequireSentence(weights.status().message());
  return 0;
}
