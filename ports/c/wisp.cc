// The C interface over the runtime: handles and messages. It lets no exception out.
#include "ports/c/wisp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ports/c/device_c.h"
#include "ports/c/model_c.h"
#include "runtime/core/platform.h"

namespace wisp::ports {
namespace {

// Identifies the file at `path` and its state, without its contents' hash, which is the first word. All words are zero
// if the system cannot tell; then nothing is remembered.
wisp_verified MakeMark(const char* path) {
  platform::FileInfo info;
  if (platform::GetInfo(std::string(path), info) != 0) return {};
  return {{0, info.size, static_cast<uint64_t>(info.changed_ns), info.number ^ info.device << 40}};
}

// Combines the marks of the model and its adapter, if there is one.
wisp_verified MakeMark(const char* path, const std::string& adapter) {
  wisp_verified mark = MakeMark(path);
  if (adapter.empty() || mark.words[2] == 0) return mark;
  const wisp_verified other = MakeMark(adapter.c_str());
  if (other.words[2] == 0) return {};
  // Odd factors: the mark also changes if the two files swap places or change by the same amount.
  for (size_t i = 1; i < 4; ++i) mark.words[i] = mark.words[i] * 0x9e3779b97f4a7c15 + other.words[i];
  if (mark.words[2] == 0) mark.words[2] = 1;
  return mark;
}

}  // namespace

Result<std::unique_ptr<kernels::HostAllocator>> MakeAllocator(const wisp_allocator* given) {
  if (given == nullptr) return std::unique_ptr<kernels::HostAllocator>();
  WISP_ASSIGN_OR_RETURN(const wisp_allocator a, MakeOptions(given, "wisp_allocator"));
  if (a.allocate == nullptr || a.release == nullptr)
    return InvalidArgument("wisp_allocator: allocate and release must not be NULL");
  return std::make_unique<kernels::HostAllocator>(
      kernels::HostAllocator{.allocate = a.allocate, .release = a.release, .data = a.data});
}

Result<OpenChoice> ParseChoice(const wisp_open_options* given) {
  WISP_ASSIGN_OR_RETURN(const auto o, MakeOptions(given, "wisp_open_options"));
  const int32_t verify = GetNumber(o.verify), backend = GetNumber(o.backend);
  if (verify < WISP_VERIFY_DEFAULT || verify > WISP_VERIFY_NEVER)
    return InvalidArgument("wisp_open_options: there is no verification ", verify);
  if (verify == WISP_VERIFY_ONCE && o.verified == nullptr)
    return InvalidArgument("wisp_open_options: verified must not be NULL with WISP_VERIFY_ONCE");
  if (o.float16_cache != 0 && o.float16_cache != 1)
    return InvalidArgument("wisp_open_options: float16_cache is ", o.float16_cache, ", allowed are 0 and 1");
  if (o.one_history_on_device != 0 && o.one_history_on_device != 1)
    return InvalidArgument("wisp_open_options: one_history_on_device is ", o.one_history_on_device,
                           ", allowed are 0 and 1");
  WISP_RETURN_IF_ERROR(CheckThreads(o.num_threads));
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, DeviceOrProcessor(o.device, DeviceUse::kInference));
  // Refused with or without the device, so that an app tested without a GPU behaves the same with one.
  const bool wants_device = !device.is_processor() || !device.missing.empty();
  if (wants_device && backend != WISP_BACKEND_SIMD) return BackendOnDevice(o.device->name);
  WISP_ASSIGN_OR_RETURN(auto allocator, MakeAllocator(o.allocator));
  OpenChoice choice{.backend = Backend::kSimd,
                    .verify = verify,
                    .verified = o.verified,
                    .adapter = o.adapter_path == nullptr ? "" : o.adapter_path,
                    .num_threads = std::max<size_t>(1, o.num_threads),
                    .executor = MakeExecutor(o.run_tasks, o.run_tasks_data),
                    .kept = o.float16_cache == 1 ? kernels::CacheType::kHalf : kernels::CacheType::kFloat,
                    .device = device.device,
                    .one_history = o.one_history_on_device == 1 || device.arithmetic != kernels::Arithmetic::kFloat32
                                       ? OneHistory::kOnDevice
                                       : OneHistory::kWhereFaster,
                    .max_bytes = o.max_bytes,
                    .allocator = std::move(allocator)};
  if (choice.allocator != nullptr && device.is_processor())
    choice.device.memory = kernels::HostMemory(*choice.allocator);
  switch (backend) {
    case WISP_BACKEND_SIMD:
      return choice;
    case WISP_BACKEND_XNNPACK:
      choice.backend = Backend::kXnnpack;
      return choice;
    case WISP_BACKEND_INT8:
      choice.backend = Backend::kInt8;
      return choice;
  }
  return InvalidArgument("wisp_open_options: there is no backend ", backend);
}

Result<wisp_model_memory> GetPlan(const ModelFile& file, const OpenChoice& choice) {
  WISP_ASSIGN_OR_RETURN(const InferenceMemory plan, Session::PlanMemory(file, choice.session()));
  wisp_model_memory m{.size = sizeof(wisp_model_memory),
                      .file_bytes = file.size_bytes(),
                      .activation_bytes = plan.activations,
                      .packed_weights_bytes = plan.packed_weights,
                      .score_bytes = plan.scores,
                      .name_bytes = PlanItemTexts(file),
                      .device_bytes = plan.on_device,
                      .cold_start_bytes = plan.cold_start};
  m.total_bytes = plan.total() + m.name_bytes;
  return m;
}

Status Finish(ModelFile file, OpenChoice choice, wisp_model** out) {
  WISP_ASSIGN_OR_RETURN(const wisp_model_memory needed, GetPlan(file, choice));
  const uint64_t bytes = needed.total_bytes + file.copied_bytes();
  if (choice.max_bytes > 0 && bytes > choice.max_bytes)
    return InvalidArgument(file.name(), ": opening it takes ", bytes,
                           " bytes of memory, wisp_open_options.max_bytes allows ", choice.max_bytes);
  auto model = std::make_unique<wisp_model>();
  model->allocator = std::move(choice.allocator);
  WISP_ASSIGN_OR_RETURN(model->session, Session::Create(std::move(file), choice.session()));
  model->texts = CopyItemTexts(model->session->file());
  *out = model.release();
  return OkStatus();
}

const Session& GetSession(const wisp_model* model) { return *model->session; }
Session& GetSession(wisp_model* model) { return *model->session; }

// The mark is taken before the files are opened. A file that replaces this one meanwhile has another content hash, or
// is verified again next time.
Result<ModelFile> OpenFile(const char* path, const OpenChoice& choice, Accept accept) {
  const bool always = choice.verify != WISP_VERIFY_ONCE && choice.verifies() == Verify::kFull;
  wisp_verified mark = choice.verify == WISP_VERIFY_ONCE ? MakeMark(path, choice.adapter) : wisp_verified{};
  WISP_ASSIGN_OR_RETURN(ModelFile file, ModelFile::OpenWithAdapter(
                                            path, choice.adapter, always ? Verify::kFull : Verify::kStructure, accept));
  if (choice.verify == WISP_VERIFY_ONCE) {
    mark.words[0] = file.content_hash();
    const bool known = mark.words[2] != 0 && std::memcmp(&mark, choice.verified, sizeof(mark)) == 0;
    if (!known && !always) WISP_RETURN_IF_ERROR(file.VerifyWeights());
    *choice.verified = mark;
  }
  return file;
}

}  // namespace wisp::ports

namespace {

using wisp::InvalidArgument;
using wisp::OkStatus;
using wisp::Result;
using wisp::Status;
using wisp::ports::Guarded;
using wisp::ports::OpenChoice;

// `called` is the name of the public function, for messages.
Status PlanModel(const std::string& called, const char* path, const wisp_open_options* given, wisp_model_memory* out) {
  if (path == nullptr || out == nullptr) return InvalidArgument(called, ": path and memory must not be NULL");
  WISP_ASSIGN_OR_RETURN(const OpenChoice choice, wisp::ports::ParseChoice(given));
  WISP_ASSIGN_OR_RETURN(const wisp::ModelFile file, wisp::ModelFile::OpenWithAdapter(path, choice.adapter));
  WISP_ASSIGN_OR_RETURN(const wisp_model_memory m, wisp::ports::GetPlan(file, choice));
  return wisp::ports::FillResult(m, out, "wisp_model_memory");
}

Status OpenModel(const std::string& called, const char* path, const wisp_open_options* given, wisp_model** out) {
  if (path == nullptr || out == nullptr) return InvalidArgument(called, ": path and model must not be NULL");
  WISP_ASSIGN_OR_RETURN(OpenChoice choice, wisp::ports::ParseChoice(given));
  WISP_ASSIGN_OR_RETURN(wisp::ModelFile file, wisp::ports::OpenFile(path, choice));
  return wisp::ports::Finish(std::move(file), std::move(choice), out);
}

Result<wisp::RecommendOptions> MakeRecommendOptions(const wisp_recommend_options* given, size_t count) {
  WISP_ASSIGN_OR_RETURN(const auto o, wisp::ports::MakeOptions(given, "wisp_recommend_options"));
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_recommend", o.excluded, o.num_excluded));
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_recommend", o.candidates, o.num_candidates));
  WISP_ASSIGN_OR_RETURN(const wisp::SeenItems seen, wisp::ports::ReadSeen(o));
  return wisp::RecommendOptions{.count = wisp::ports::GetCount(o, count),
                                .seen = seen,
                                .excluded = {o.excluded, o.num_excluded},
                                .candidates = {o.candidates, o.num_candidates}};
}

Status RecommendItems(wisp_model* model, const int32_t* history, size_t num_history,
                      const wisp_recommend_options* given, wisp_recommendation* out, size_t* count) {
  if (model == nullptr || (history == nullptr && num_history > 0) || out == nullptr || count == nullptr) {
    return InvalidArgument("wisp_recommend: model, out and count must not be NULL, nor history with a num_history");
  }
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_recommend", history, num_history));
  WISP_ASSIGN_OR_RETURN(const wisp::RecommendOptions options, MakeRecommendOptions(given, *count));
  WISP_ASSIGN_OR_RETURN(const auto top, model->session->Recommend({history, num_history}, options));
  for (size_t i = 0; i < top.size(); ++i) out[i] = {top[i].item, top[i].score};
  *count = top.size();
  return OkStatus();
}

// Creates the batch recommender that `how` asks for, with at most one thread per history, because each thread has
// buffers of its own. Keeps an existing one that has more threads.
Status MakeBatch(wisp_model* model, const wisp_batch_options& how, size_t num_histories) {
  WISP_RETURN_IF_ERROR(wisp::CheckThreads(how.num_threads));
  const bool on_device = wisp_model_on_device(model) != 0;
  const size_t wanted = on_device ? 1 : how.num_threads == 0 ? wisp::DefaultThreads() : how.num_threads;
  const size_t threads = std::clamp<size_t>(num_histories, 1, wanted);
  const wisp_batch_options& was = model->batch_how;
  const bool same =
      was.num_threads == how.num_threads && was.run_tasks == how.run_tasks && was.run_tasks_data == how.run_tasks_data;
  if (model->batch != nullptr && same && model->batch->num_threads() >= threads) return OkStatus();
  model->batch.reset();  // frees the old one first, so that two never exist at once
  WISP_ASSIGN_OR_RETURN(
      model->batch, wisp::BatchRecommender::Create(
                        *model->session, {.num_threads = threads,
                                          .executor = wisp::ports::MakeExecutor(how.run_tasks, how.run_tasks_data)}));
  model->batch_how = how;
  return OkStatus();
}

Status RecommendBatch(wisp_model* model, const int32_t* const* histories, const size_t* lengths, size_t num_histories,
                      const wisp_recommend_options* given, const wisp_batch_options* given_how, size_t count,
                      wisp_recommendation* out, size_t* found) {
  if (model == nullptr || histories == nullptr || lengths == nullptr || out == nullptr || found == nullptr) {
    return InvalidArgument("wisp_recommend_batch: model, histories, lengths, out and found must not be NULL");
  }
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_recommend_batch", histories, num_histories));
  // A list never holds more items than the model has. `count` is still the distance between two lists in `out`, so it
  // is checked against the largest address below.
  const size_t best_of = std::min<size_t>(count, model->session->architecture().num_items);
  const size_t most = PTRDIFF_MAX / sizeof(wisp_recommendation);
  if (num_histories > most || (num_histories > 1 && count > (most - best_of) / (num_histories - 1))) {
    return InvalidArgument("wisp_recommend_batch: ", num_histories, " histories with ", count,
                           " items each are too many");
  }
  WISP_ASSIGN_OR_RETURN(const wisp::RecommendOptions options, MakeRecommendOptions(given, best_of));
  WISP_ASSIGN_OR_RETURN(wisp_batch_options how, wisp::ports::MakeOptions(given_how, "wisp_batch_options"));
  if (given_how == nullptr) how.num_threads = 1;
  model->histories.clear();
  for (size_t i = 0; i < num_histories; ++i) {
    if (histories[i] == nullptr) return InvalidArgument("wisp_recommend_batch: history ", i, " is NULL");
    WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_recommend_batch", histories[i], lengths[i]));
    model->histories.emplace_back(histories[i], lengths[i]);
  }
  WISP_RETURN_IF_ERROR(MakeBatch(model, how, num_histories));
  model->best.resize(num_histories * options.count);
  model->found.resize(num_histories);
  WISP_RETURN_IF_ERROR(model->batch->Recommend(model->histories, options, model->best, model->found));
  for (size_t i = 0; i < num_histories; ++i) {
    const wisp::Recommendation* best = model->best.data() + i * options.count;
    found[i] = model->found[i];
    for (size_t r = 0; r < found[i]; ++r) out[i * count + r] = {best[r].item, best[r].score};
  }
  return OkStatus();
}

const char* TextAt(const std::vector<std::string>& texts, int32_t item) {
  return item >= 0 && static_cast<size_t>(item) < texts.size() ? texts[static_cast<size_t>(item)].c_str() : "";
}

}  // namespace

extern "C" {

const char* wisp_version(void) { return WISP_VERSION; }

wisp_code wisp_model_open(const char* path, wisp_model** model, wisp_error* error) {
  return Guarded(error, [&] { return OpenModel("wisp_model_open", path, nullptr, model); });
}

wisp_code wisp_model_open_with(const char* path, const wisp_open_options* options, wisp_model** model,
                               wisp_error* error) {
  return Guarded(error, [&] { return OpenModel("wisp_model_open_with", path, options, model); });
}

wisp_code wisp_model_plan_memory(const char* path, wisp_model_memory* memory, wisp_error* error) {
  return Guarded(error, [&] { return PlanModel("wisp_model_plan_memory", path, nullptr, memory); });
}

wisp_code wisp_model_plan_memory_with(const char* path, const wisp_open_options* options, wisp_model_memory* memory,
                                      wisp_error* error) {
  return Guarded(error, [&] { return PlanModel("wisp_model_plan_memory_with", path, options, memory); });
}

void wisp_model_close(wisp_model* model) { delete model; }

int32_t wisp_model_on_device(const wisp_model* model) {
  if (model == nullptr || model->session->graph().device().memory.is_host()) return 0;
  return model->session->one_history_on_device() ? 1 : 2;
}

size_t wisp_model_num_items(const wisp_model* model) {
  return model == nullptr ? 0 : model->session->architecture().num_items;
}

int32_t wisp_model_find_item(const wisp_model* model, const char* key) {
  if (model == nullptr || key == nullptr) return -1;
  const auto item = model->session->file().FindItem(key);
  return item ? static_cast<int32_t>(*item) : -1;
}

const char* wisp_model_item_key(const wisp_model* model, int32_t item) {
  return model == nullptr ? "" : TextAt(model->texts.keys, item);
}

const char* wisp_model_item_name(const wisp_model* model, int32_t item) {
  return model == nullptr ? "" : TextAt(model->texts.names, item);
}

wisp_code wisp_recommend(wisp_model* model, const int32_t* history, size_t num_history,
                         const wisp_recommend_options* options, wisp_recommendation* out, size_t* count,
                         wisp_error* error) {
  return Guarded(error, [&] { return RecommendItems(model, history, num_history, options, out, count); });
}

wisp_code wisp_recommend_batch(wisp_model* model, const int32_t* const* histories, const size_t* lengths,
                               size_t num_histories, const wisp_recommend_options* options,
                               const wisp_batch_options* how, size_t count, wisp_recommendation* out, size_t* found,
                               wisp_error* error) {
  return Guarded(
      error, [&] { return RecommendBatch(model, histories, lengths, num_histories, options, how, count, out, found); });
}

}  // extern "C"
