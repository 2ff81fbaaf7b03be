// Model and checkpoint files from the bytes of a fuzzer. Hashes would reject almost every change at once, and segments
// lie on 16 KiB. So an input consists of a mode byte, the size of the metadata, the metadata and the numbers, and the
// file is built from it.
#ifndef WISP_TESTS_FUZZ_CONTAINER_INPUT_H_
#define WISP_TESTS_FUZZ_CONTAINER_INPUT_H_

#include <flatbuffers/flatbuffers.h>

#include <string>

#include "runtime/core/hash.h"
#include "runtime/model/container.h"
#include "tests/fuzz/input.h"

namespace wisp::fuzz {

enum How : uint8_t {
  kAsItIs = 1,     // the input is the file itself
  kFitArrays = 2,  // hashes of arrays are corrected if the metadata is well formed
  kOddHeader = 4,  // the input changes one byte of the header at an offset that it gives; the hash is corrected
};

template <class T>
void Put(std::string& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

inline uint64_t ComputeHash(std::string_view bytes) {
  return Hash64(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

// Builds the file from these parts, with valid hashes of header and metadata (offsets as container.h documents them).
inline std::string Assemble(char kind, uint32_t version, std::string_view metadata, std::string_view data) {
  std::string file(container::kHeaderBytes, '\0');
  std::memcpy(file.data(), "\x89WSP?\r\n\x1a", 8);
  file[4] = kind;
  Put<uint32_t>(file, 8, version);
  Put<uint32_t>(file, 12, 1);
  Put<uint64_t>(file, 24, container::kHeaderBytes);
  Put<uint64_t>(file, 32, metadata.size());
  Put<uint64_t>(file, 40, ComputeHash(metadata));
  file += metadata;
  file.resize(container::AlignUp(file.size(), container::kSegmentAlignment), '\0');
  file += data;
  Put<uint64_t>(file, 16, file.size());
  return file;
}

// `fit` takes metadata and data, and returns metadata whose arrays have the hashes of the data.
template <class Fit>
std::string MakeFile(Input& input, char kind, uint32_t version, Fit&& fit) {
  const uint8_t how = input.Byte();
  if (how & kAsItIs) return std::string(input.Rest());
  const uint8_t at = input.Byte(), value = input.Byte();
  std::string metadata(input.Piece(input.Number<uint16_t>()));
  const std::string_view data = input.Rest();
  if (how & kFitArrays) metadata = fit(metadata, data);
  std::string file = Assemble(kind, version, metadata, data);
  if (how & kOddHeader) file[at % container::kHeaderBytes] = static_cast<char>(value);
  Put<uint64_t>(file, 56, ComputeHash(std::string_view(file).substr(0, 56)));
  return file;
}

// Returns true if `metadata` is a well-formed flat buffer of this kind, in a copy on 64 bytes, as its reader has it.
template <class Root>
bool IsWellFormed(const std::string& metadata) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(metadata.data()), metadata.size(), 64, 1000);
  return metadata.size() >= 8 && verifier.VerifyBuffer<Root>(nullptr);
}

// For a list of 64-bit numbers, a verifier only requires that its length is aligned. The readers check the rest
// (metadata.h), unpacking does not.
inline bool IsAligned(const flatbuffers::Vector<uint64_t>* numbers) {
  return numbers == nullptr || reinterpret_cast<uintptr_t>(numbers->data()) % alignof(uint64_t) == 0;
}

template <class Root>
std::string Packed(const typename Root::NativeTableType& root, const char* identifier) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Root::Pack(builder, &root), identifier);
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

template <class Tensor>
void FitHash(Tensor& tensor, std::string_view data) {
  if (tensor.segment != 0 || tensor.offset > data.size() || tensor.bytes > data.size() - tensor.offset) return;
  tensor.hash = ComputeHash(data.substr(tensor.offset, tensor.bytes));
}

}  // namespace wisp::fuzz

#endif  // WISP_TESTS_FUZZ_CONTAINER_INPUT_H_
