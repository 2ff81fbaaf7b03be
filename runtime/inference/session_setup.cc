// Makes sessions and plans their memory.
#include <new>

#include "runtime/inference/session.h"

namespace wisp {
namespace {

Result<size_t> CountThreads(size_t num_threads, Backend backend) {
  WISP_RETURN_IF_ERROR(CheckThreads(num_threads));
  const size_t most = backend == Backend::kXnnpack ? 1 : DefaultThreads();
  const size_t threads = num_threads == 0 ? most : num_threads;
  if (threads == 1 || backend != Backend::kXnnpack) return threads;
  return Unsupported("a session on ", threads, " threads is not for XNNPACK, whose packed weights are for one");
}

// The device that a session with these options uses.
Result<kernels::Device> ChooseDevice(const SessionOptions& o) {
  if (o.device.memory.is_host()) {
    WISP_ASSIGN_OR_RETURN(const kernels::OpTable* const ops, GetOps(o.backend));
    return kernels::Device(*ops, o.device.memory);
  }
  if (o.backend != Backend::kSimd) return BackendOnDevice(o.device.ops->name);
  WISP_RETURN_IF_ERROR(CheckDevice(o.device));
  return o.device;
}

Status CheckKept(const SessionOptions& o, const kernels::Device& device, const Architecture& a) {
  if (o.kept == kernels::CacheType::kFloat) return OkStatus();
  if (!device.memory.is_host())
    return Unsupported("a float16 key/value cache is for the processor, and the session is on the device ",
                       device.ops->name);
  if (a.re_attention == ReAttention::kOn)
    return Unsupported("a float16 key/value cache is for models without Re-Attention, and the model has it");
  return OkStatus();
}

// The session of the processor beside a device's.
SessionOptions ForOneOnHost(const SessionOptions& o) { return {.num_threads = o.num_threads, .executor = o.executor}; }

// Both make the scores for users without history at most once, so `cold_start` is not added.
void Add(const InferenceMemory& more, InferenceMemory& memory) {
  memory.activations += more.activations;
  memory.packed_weights += more.packed_weights;
  memory.scores += more.scores;
}

}  // namespace

Status BackendOnDevice(const char* device) {
  return Unsupported("8-bit integers and XNNPACK are backends of the processor: a session on the device ", device,
                     " has kernels of its own, of 8-bit integers too, which its arithmetic chooses");
}

Result<const kernels::OpTable*> GetOps(Backend backend) {
  const kernels::OpTable* ops = &kernels::BestOps();
  if (backend == Backend::kXnnpack) ops = kernels::XnnpackOps();
  if (backend == Backend::kInt8) ops = kernels::Int8Ops();
  if (ops != nullptr) return ops;
  return Unsupported(
      backend == Backend::kInt8
          ? "there are no 8-bit kernels for this processor"
          : "this build has no XNNPACK (configure with -DWISP_XNNPACK=ON), or it does not run on this processor");
}

Session::Session(ModelFile file, const kernels::Device& device, size_t num_threads, const SessionOptions& options)
    : file_(std::move(file)),
      graph_(MakeModelView(file_.architecture(), device,
                           MakeInferenceOptions(device, file_.architecture(), file_.tensors()))),
      buffers_(graph_->AllocateForInference()),
      cache_(graph_->AllocateCache(CacheBlocks::kAll, 0, options.kept)),
      helpers_(graph_->AllocateHelpers(num_threads, options.executor)),
      tensors_(is_host() ? nullptr : MakeDeviceWeights(file_.parameters(), file_.tensors(), device.memory)),
      weights_(*graph_, is_host() ? ParameterSource(file_.tensors()) : tensors_->source()),
      scores_(file_.architecture().num_items),
      list_(file_.architecture().num_items, file_.lists()),
      on_device_(is_host() ? nullptr : MakeDeviceScores(device, file_.architecture().num_items)) {
  encoded_.reserve(file_.architecture().max_length);
}

Result<std::unique_ptr<Session>> Session::Open(const std::string& path, const SessionOptions& options, Verify verify) {
  WISP_ASSIGN_OR_RETURN(ModelFile file,
                        ModelFile::Open(path, options.backend == Backend::kInt8 ? Verify::kFull : verify));
  return Create(std::move(file), options);
}

Result<std::unique_ptr<Session>> Session::Create(ModelFile file, const SessionOptions& options) {
  WISP_ASSIGN_OR_RETURN(const kernels::Device device, ChooseDevice(options));
  WISP_ASSIGN_OR_RETURN(const size_t threads, CountThreads(options.num_threads, options.backend));
  WISP_RETURN_IF_ERROR(CheckKept(options, device, file.architecture()));
  if (device.memory.is_host()) return std::unique_ptr<Session>(new Session(std::move(file), device, threads, options));
  WISP_ASSIGN_OR_RETURN(const InferenceMemory plan, PlanMemory(file, options));
  const size_t at_most = PlanDeviceWeights(file.parameters(), file.tensors(), device.memory).at_most;
  try {
    std::unique_ptr<Session> session(new Session(std::move(file), device, 1, {}));
    WISP_RETURN_IF_ERROR(session->Arrived());
    if (options.one_history == OneHistory::kWhereFaster) WISP_RETURN_IF_ERROR(session->ChooseForOneHistory(options));
    return session;
  } catch (const std::bad_alloc&) {
    return NoRoomOnDevice(device, "a session", plan.on_device - plan.weights + at_most, plan.total() - plan.on_device);
  }
}

[[gnu::cold]] Status Session::ChooseForOneHistory(const SessionOptions& o) {
  WISP_ASSIGN_OR_RETURN(std::unique_ptr<Session> on_host, Create(file_.Share(), ForOneOnHost(o)));
  WISP_ASSIGN_OR_RETURN(const bool device_is_faster, IsFasterForOne(*this, *on_host));
  if (!device_is_faster) on_host_ = std::move(on_host);
  return OkStatus();
}

Result<InferenceMemory> Session::PlanMemory(const Architecture& architecture, Backend backend, size_t num_threads) {
  WISP_RETURN_IF_ERROR(Validate(architecture));
  return GetPlan(architecture, {}, {.backend = backend, .num_threads = num_threads});
}

Result<InferenceMemory> Session::PlanMemory(const ModelFile& file, Backend backend, size_t num_threads) {
  return PlanMemory(file, {.backend = backend, .num_threads = num_threads});
}

Result<InferenceMemory> Session::PlanMemory(const ModelFile& file, const SessionOptions& options) {
  return GetPlan(file.architecture(), file.tensors(), options);
}

Result<InferenceMemory> Session::GetPlan(const Architecture& a, std::span<const StoredTensor> tensors,
                                         const SessionOptions& options) {
  WISP_ASSIGN_OR_RETURN(const kernels::Device device, ChooseDevice(options));
  WISP_ASSIGN_OR_RETURN(const size_t threads, CountThreads(options.num_threads, options.backend));
  InferenceMemory memory = CountMemory(*MakeModelView(a, device, MakeInferenceOptions(device, a, tensors)), tensors,
                                       device.memory.is_host() ? threads : 1, options.kept);
  if (device.memory.is_host() || options.one_history == OneHistory::kOnDevice) return memory;
  WISP_ASSIGN_OR_RETURN(const InferenceMemory on_host, GetPlan(a, tensors, ForOneOnHost(options)));
  Add(on_host, memory);
  return memory;
}

InferenceMemory Session::CountMemory(const ModelView& graph, std::span<const StoredTensor> tensors, size_t num_threads,
                                     kernels::CacheType kept) {
  const Architecture& a = graph.architecture();
  InferenceMemory memory{
      .activations =
          graph.inference_bytes() + graph.helper_bytes(num_threads) + graph.cache_bytes(CacheBlocks::kAll, 0, kept),
      .packed_weights = PackedWeights::PlanBytes(graph),
      .scores = a.num_items * (sizeof(float) + sizeof(uint8_t)) + a.max_length * sizeof(int32_t),
      .cold_start = (a.num_items + 2 * a.width) * sizeof(float) + AlignedArray<float>::AllocatedBytes(a.width)};
  if (graph.device().memory.is_host()) return memory;
  const DeviceBytes top = PlanDeviceScores(graph.ops(), a.num_items);
  memory.weights = PlanDeviceWeights(graph.parameters(), tensors, graph.device().memory).expected;
  memory.on_device = memory.activations - graph.host_bytes() + memory.packed_weights + memory.weights + top.on_device;
  memory.scores += top.on_device + top.on_host;
  return memory;
}

InferenceMemory Session::memory() const {
  InferenceMemory memory = CountMemory(*graph_, file_.tensors(), num_threads(), kept());
  memory.packed_weights = weights_.allocated_bytes();
  memory.scores = scores_.capacity() * sizeof(float) + list_.bytes() + encoded_.capacity() * sizeof(int32_t);
  if (on_device_ != nullptr) memory.scores += on_device_->bytes().on_device + on_device_->bytes().on_host;
  if (tensors_ != nullptr) {  // the driver may have shared nothing
    memory.on_device += tensors_->allocated_bytes() - memory.weights;
    memory.weights = tensors_->allocated_bytes();
  }
  if (on_host_ != nullptr) Add(on_host_->memory(), memory);
  return memory;
}

}  // namespace wisp
