// Checkpoints: an accepted one is written again and read back equal; any other is refused in a sentence.
#include <cmath>

#include "runtime/model/checkpoint.h"
#include "schema/generated/checkpoint_generated.h"
#include "tests/fuzz/container_input.h"
#include "tests/unit/core/temporary_folder.h"

namespace {

using namespace wisp;

std::string FitArrays(const std::string& metadata, std::string_view data) {
  if (!fuzz::IsWellFormed<schema::Checkpoint>(metadata)) return metadata;
  const auto* packed = flatbuffers::GetRoot<schema::Checkpoint>(metadata.data());
  if (!fuzz::IsAligned(packed->segment_bytes())) return metadata;
  for (const auto* array : *packed->arrays()) {
    if (!fuzz::IsAligned(array->shape())) return metadata;
  }
  schema::CheckpointT root;
  packed->UnPackTo(&root);
  for (const auto& array : root.arrays) {
    if (array != nullptr) fuzz::FitHash(*array, data);
  }
  return fuzz::Packed<schema::Checkpoint>(root, "WSPC");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const test::TemporaryFolder folder;
  const std::string path = folder / "run.ckpt";
  fuzz::Input input(data, size);
  fuzz::WriteFile(path, fuzz::MakeFile(input, 'C', kCheckpointFormatVersion, FitArrays));
  const auto checkpoint = ReadCheckpoint(path);
  if (!checkpoint.ok()) {
    fuzz::RequireSentence(checkpoint.status().message());
    return 0;
  }
  for (float value : checkpoint->weights) fuzz::Require(std::isfinite(value), "an accepted weight is finite");
  const Status written = WriteCheckpoint(path, *checkpoint);
  fuzz::Require(written.ok(), "what was read can be written");
  const auto again = ReadCheckpoint(path);
  fuzz::Require(again.ok() && *again == *checkpoint, "what was written reads the same");
  return 0;
}
