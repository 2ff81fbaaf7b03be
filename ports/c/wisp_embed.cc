// Models opened from memory or a descriptor, and what an open model says of itself.
#include "ports/c/wisp_embed.h"

#include <algorithm>
#include <cmath>

#include "ports/c/model_c.h"
#include "runtime/core/stored_tensor.h"

namespace {

using wisp::InvalidArgument;
using wisp::ModelFile;
using wisp::Result;
using wisp::Status;
using wisp::ports::Guarded;
using wisp::ports::OpenChoice;

Result<OpenChoice> ChoiceWithoutPath(const char* called, const wisp_open_options* given) {
  WISP_ASSIGN_OR_RETURN(OpenChoice choice, wisp::ports::ParseChoice(given));
  if (choice.verify == WISP_VERIFY_ONCE)
    return InvalidArgument(called, ": WISP_VERIFY_ONCE remembers a file by its path, and this model has no path");
  if (!choice.adapter.empty())
    return InvalidArgument(called, ": adapter_path is for a model with a path; merge the two beforehand");
  return choice;
}

Status OpenMemory(const char* name, const void* bytes, size_t num_bytes, const wisp_open_options* given,
                  wisp_model** out) {
  if (name == nullptr || bytes == nullptr || out == nullptr)
    return InvalidArgument("wisp_model_open_memory: name, bytes and model must not be NULL");
  if (num_bytes > PTRDIFF_MAX)
    return InvalidArgument("wisp_model_open_memory: num_bytes is ", num_bytes, ", more than memory can hold");
  WISP_ASSIGN_OR_RETURN(OpenChoice choice, ChoiceWithoutPath("wisp_model_open_memory", given));
  WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::OpenMemory(name, {static_cast<const std::byte*>(bytes), num_bytes},
                                                              choice.verifies()));
  return wisp::ports::Finish(std::move(file), std::move(choice), out);
}

Status OpenDescriptor(const char* name, int descriptor, uint64_t offset, uint64_t length,
                      const wisp_open_options* given, wisp_model** out) {
  if (name == nullptr || out == nullptr)
    return InvalidArgument("wisp_model_open_descriptor: name and model must not be NULL");
  WISP_ASSIGN_OR_RETURN(OpenChoice choice, ChoiceWithoutPath("wisp_model_open_descriptor", given));
  WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::OpenDescriptor(name, descriptor, offset, length, choice.verifies()));
  return wisp::ports::Finish(std::move(file), std::move(choice), out);
}

Status Info(const wisp_model* model, wisp_model_info* out) {
  if (model == nullptr || out == nullptr)
    return InvalidArgument("wisp_model_info_read: model and info must not be NULL");
  const ModelFile& file = model->session->file();
  const wisp::Architecture& a = file.architecture();
  const wisp_model_info info{.size = sizeof(wisp_model_info),
                             .num_items = a.num_items,
                             .max_length = a.max_length,
                             .width = a.width,
                             .num_blocks = static_cast<uint32_t>(a.blocks.size()),
                             .num_retired = static_cast<uint32_t>(file.retired().size()),
                             .num_provenance = static_cast<uint32_t>(file.provenance().size()),
                             .format = file.format_version(),
                             .has_keys = file.has_item_keys() ? 1 : 0,
                             .content_hash = file.content_hash(),
                             .file_bytes = file.size_bytes(),
                             .allow_seen = file.lists().allow_seen ? 1 : 0,
                             .not_read = 0};
  return wisp::ports::FillResult(info, out, "wisp_model_info");
}

std::vector<std::string> ListMechanisms(std::span<const wisp::ProvenanceEntry> entries) {
  std::vector<std::string> all;
  for (const wisp::ProvenanceEntry& entry : entries) {
    std::string& lines = all.emplace_back();
    for (const std::string& mechanism : entry.mechanisms) lines += (lines.empty() ? "" : "\n") + mechanism;
  }
  return all;
}

Status Provenance(wisp_model* model, uint32_t index, wisp_provenance* out) {
  if (model == nullptr || out == nullptr)
    return InvalidArgument("wisp_model_provenance: model and provenance must not be NULL");
  const std::span<const wisp::ProvenanceEntry> entries = model->session->file().provenance();
  if (index >= entries.size())
    return InvalidArgument("wisp_model_provenance: index is ", index, ", the model has ", entries.size(), " entries");
  if (model->mechanisms.empty()) model->mechanisms = ListMechanisms(entries);
  const wisp::ProvenanceEntry& entry = entries[index];
  const wisp_provenance provenance{.size = sizeof(wisp_provenance),
                                   .description = entry.description.c_str(),
                                   .mechanisms = model->mechanisms[index].c_str(),
                                   .epsilon = entry.epsilon.value_or(std::nan("")),
                                   .delta = entry.delta,
                                   .accountant = entry.accountant.c_str(),
                                   .privacy_unit = entry.privacy_unit.c_str(),
                                   .adjacency = entry.adjacency.c_str(),
                                   .sampling = entry.sampling.c_str(),
                                   .dataset = entry.dataset.c_str(),
                                   .date = entry.date.c_str(),
                                   .steps = entry.steps,
                                   .base_hash = entry.base_model_hash,
                                   .secure_noise = entry.noise == wisp::NoiseOrigin::kSecure ? 1 : 0,
                                   .not_read = 0};
  return wisp::ports::FillResult(provenance, out, "wisp_provenance");
}

Status CheckRoom(const char* called, const void* model, const void* out, size_t capacity, size_t needed) {
  if (model == nullptr || out == nullptr) return InvalidArgument(called, ": the model and the array must not be NULL");
  if (capacity == needed) return wisp::OkStatus();
  return InvalidArgument(called, ": capacity is ", capacity, ", allowed is ", needed);
}

size_t NumItems(const wisp_model* model) { return model == nullptr ? 0 : model->session->architecture().num_items; }
size_t Width(const wisp_model* model) { return model == nullptr ? 0 : model->session->architecture().width; }

Status ItemVectors(const wisp_model* model, float* vectors, size_t capacity) {
  WISP_RETURN_IF_ERROR(CheckRoom("wisp_item_vectors", model, vectors, capacity, NumItems(model) * Width(model)));
  const ModelFile& file = model->session->file();
  const std::vector<wisp::ParameterSpec> parameters = wisp::ListParameters(file.architecture());
  const auto own = wisp::FindParameter(parameters, wisp::ParameterRole::kOutputTable);
  const auto table = own ? own : wisp::FindParameter(parameters, wisp::ParameterRole::kItemTable);
  if (!table || parameters[*table].size() != capacity)
    return InvalidArgument(file.name(), ": has no table with a vector for each item");
  wisp::CopyAsFloats(parameters[*table], file.tensors()[*table], vectors);
  return wisp::OkStatus();
}

}  // namespace

extern "C" {

wisp_code wisp_score(wisp_model* model, const int32_t* history, size_t num_history, float* scores, size_t capacity,
                     wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    WISP_RETURN_IF_ERROR(CheckRoom("wisp_score", model, scores, capacity, NumItems(model)));
    WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_score", history, num_history));
    WISP_RETURN_IF_ERROR(model->session->Score({history, num_history}, {scores, capacity}));
    const auto is_finite = [](float score) { return score - score == 0; };
    return std::all_of(scores, scores + capacity, is_finite) ? wisp::OkStatus() : model->session->NotFinite();
  });
}

wisp_code wisp_history_vector(wisp_model* model, const int32_t* history, size_t num_history, float* vector,
                              size_t capacity, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    WISP_RETURN_IF_ERROR(CheckRoom("wisp_history_vector", model, vector, capacity, Width(model)));
    WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_history_vector", history, num_history));
    return model->session->Represent({history, num_history}, {vector, capacity});
  });
}

wisp_code wisp_item_vectors(const wisp_model* model, float* vectors, size_t capacity, wisp_error* error) {
  return Guarded(error, [&] { return ItemVectors(model, vectors, capacity); });
}

wisp_code wisp_model_open_memory(const char* name, const void* bytes, size_t num_bytes,
                                 const wisp_open_options* options, wisp_model** model, wisp_error* error) {
  return Guarded(error, [&] { return OpenMemory(name, bytes, num_bytes, options, model); });
}

wisp_code wisp_model_open_descriptor(const char* name, int descriptor, uint64_t offset, uint64_t length,
                                     const wisp_open_options* options, wisp_model** model, wisp_error* error) {
  return Guarded(error, [&] { return OpenDescriptor(name, descriptor, offset, length, options, model); });
}

wisp_code wisp_model_info_read(const wisp_model* model, wisp_model_info* info, wisp_error* error) {
  return Guarded(error, [&] { return Info(model, info); });
}

wisp_code wisp_model_provenance(wisp_model* model, uint32_t index, wisp_provenance* provenance, wisp_error* error) {
  return Guarded(error, [&] { return Provenance(model, index, provenance); });
}

}  // extern "C"
