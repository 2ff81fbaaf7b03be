// Model files: an accepted one can be read to its end and, if it is small, recommends; any other is refused in a
// sentence.
#include <stdlib.h>

#include <cmath>
#include <memory>
#include <vector>

#include "kernels/half.h"
#include "runtime/inference/session.h"
#include "runtime/model/item_texts.h"
#include "runtime/model/model_file.h"
#include "schema/generated/model_generated.h"
#include "tests/fuzz/container_input.h"

namespace {

using namespace wisp;

std::string FitArrays(const std::string& metadata, std::string_view data) {
  if (!fuzz::IsWellFormed<schema::Model>(metadata)) return metadata;
  const auto* packed = flatbuffers::GetRoot<schema::Model>(metadata.data());
  if (!fuzz::IsAligned(packed->segment_bytes())) return metadata;
  for (const auto* tensor : *packed->tensors()) {
    if (!fuzz::IsAligned(tensor->shape())) return metadata;
  }
  schema::ModelT root;
  packed->UnPackTo(&root);
  for (const auto& tensor : root.tensors) {
    if (tensor != nullptr) fuzz::FitHash(*tensor, data);
  }
  return fuzz::Packed<schema::Model>(root, "WSPM");
}

// Reads everything that an open model offers.
double ReadEverything(const ModelFile& file) {
  double sum = static_cast<double>(file.content_hash() % 2 + file.description().size() + file.created_by().size());
  for (const StoredTensor& tensor : file.tensors()) {
    const ParameterSpec& p = file.parameters()[static_cast<size_t>(&tensor - file.tensors().data())];
    for (const std::byte b : GetBytes(p, tensor)) sum += static_cast<double>(b);
    for (size_t k = 0; tensor.panels.data == nullptr && k < p.size(); ++k) {
      const float value = tensor.halves != nullptr ? kernels::ToFloat(tensor.halves[k]) : tensor.floats[k];
      sum += std::isfinite(value) ? value : 0;
    }
  }
  std::vector<float> room;
  for (float value : file.AllWeights(room)) sum += std::isfinite(value) ? value : 0;
  for (uint32_t i = 0; i < file.num_items(); ++i) {
    sum += static_cast<double>(file.item_key(i).size() + file.item_name(i).size()) +
           file.FindItem(file.item_key(i)).value_or(0);
  }
  for (const ProvenanceEntry& entry : file.provenance())
    sum += static_cast<double>(entry.description.size() + entry.mechanisms.size());
  return sum;
}

void Recommend(ModelFile file, Backend backend) {
  const Architecture a = file.architecture();
  if (FlatSize(ListParameters(a)) > 1 << 16 || a.max_length > 256 || a.blocks.size() > 8) return;
  const bool sound = file.VerifyWeights().ok();
  Result<InferenceMemory> plan = Session::PlanMemory(file, backend);
  fuzz::Require(plan.ok() || !plan.status().message().empty(), "a plan or a sentence");
  auto session = Session::Create(std::move(file), backend);
  if (!session.ok()) return fuzz::RequireSentence(session.status().message());
  const std::vector<int32_t> history = {0, static_cast<int32_t>(a.num_items) - 1, 0};
  const auto top = (*session)->Recommend(history, {.count = 3, .seen = SeenItems::kAllow});
  fuzz::Require(!sound || top.ok() || !top.status().message().empty(), "items or a sentence");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t choice = input.Byte();
  const std::string bytes = fuzz::MakeFile(input, 'M', kModelFormatVersion, FitArrays);
  // Exactly these bytes, on 64 bytes.
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, bytes.empty() ? 1 : bytes.size()) != 0) return 0;
  const std::unique_ptr<void, decltype(&free)> owner(memory, &free);
  std::memcpy(memory, bytes.data(), bytes.size());
  const std::span<const std::byte> file(static_cast<const std::byte*>(memory), bytes.size());
  const Verify verify = choice & 1 ? Verify::kFull : Verify::kStructure;

  auto model = ModelFile::OpenMemory("memory", file, verify, Accept::kAny);
  if (!model.ok()) fuzz::RequireSentence(model.status().message());
  if (model.ok()) {
    const double sum = ReadEverything(*model);
    fuzz::Require(std::isfinite(sum), "a sum of finite numbers");
    (void)CopyItemTexts(*model);
    if (model->is_classifier()) {
      (void)model->classifier().class_names.size();
    } else {
      Recommend(*std::move(model), choice & 2 ? Backend::kInt8 : Backend::kSimd);
    }
  }
  return 0;
}
