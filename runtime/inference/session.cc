// Built for speed: a loop over every item's score.
#include "runtime/inference/session.h"

#include <algorithm>
#include <new>

#include "runtime/inference/on_device.h"

namespace wisp {
namespace {

// Cold: compiled for size, which takes 4.1 KB off the library (g++ 12.2, 2026-11-21).
[[gnu::cold]] Status NoSuchItem(const char* what, int32_t id, size_t num_items) {
  return InvalidArgument(what, " names item ", id, "; the model has items 0 to ", num_items - 1);
}
[[gnu::cold]] Status WrongRoom(size_t given, size_t num_items) {
  return InvalidArgument("room for ", given, " scores, the model has ", num_items, " items");
}

Result<size_t> ThreadsOf(size_t num_threads, Backend backend) {
  WISP_RETURN_IF_ERROR(CheckThreads(num_threads));
  const size_t most = backend == Backend::kXnnpack ? 1 : DefaultThreads();
  const size_t threads = num_threads == 0 ? most : num_threads;
  if (threads == 1 || backend != Backend::kXnnpack) return threads;
  return Unsupported("a session on ", threads, " threads is not for XNNPACK, whose packed weights are for one");
}

// The device of a session with these options.
Result<kernels::Device> DeviceOf(const SessionOptions& o) {
  if (o.device.memory.is_host()) {
    WISP_ASSIGN_OR_RETURN(const kernels::OpTable* const ops, OpsOf(o.backend));
    return kernels::Device(*ops);
  }
  if (o.backend != Backend::kSimd)
    return Unsupported("8-bit integers and XNNPACK are the processor's: a session on the device ", o.device.ops->name,
                       " has kernels of its own");
  if (o.num_threads <= 1) return o.device;
  return Unsupported("a session on ", o.num_threads, " threads is for the processor, not for the device ",
                     o.device.ops->name);
}

}  // namespace

Result<const kernels::OpTable*> OpsOf(Backend backend) {
  const kernels::OpTable* ops = &kernels::BestOps();
  if (backend == Backend::kXnnpack) ops = kernels::XnnpackOps();
  if (backend == Backend::kInt8) ops = kernels::Int8Ops();
  if (ops != nullptr) return ops;
  return Unsupported(
      backend == Backend::kInt8
          ? "there are no 8-bit kernels for this processor"
          : "this build has no XNNPACK (configure with -DWISP_XNNPACK=ON), or it does not run on this processor");
}

Session::Session(ModelFile file, const kernels::Device& device, size_t num_threads, const Executor& executor)
    : file_(std::move(file)),
      graph_(file_.architecture(), device,
             {.use = GraphUse::kInference,
              .head = HeadPackingFor(*device.ops, file_.architecture(), ParameterSource(file_.tensors()))}),
      buffers_(graph_.AllocateForInference()),
      cache_(graph_.AllocateCache(KeptBlocks::kAll)),
      helpers_(graph_.AllocateHelpers(num_threads, executor)),
      tensors_(is_host() ? nullptr
                         : std::make_unique<DeviceWeights>(file_.parameters(), file_.tensors(), device.memory)),
      weights_(graph_, is_host() ? ParameterSource(file_.tensors()) : tensors_->source()),
      scores_(file_.architecture().num_items),
      excluded_(file_.architecture().num_items, 0),
      top_(is_host() ? nullptr : std::make_unique<DeviceTop>(device, file_.architecture().num_items, 1)) {
  encoded_.reserve(file_.architecture().max_length);
}

Result<std::unique_ptr<Session>> Session::Open(const std::string& path, const SessionOptions& options, Verify verify) {
  WISP_ASSIGN_OR_RETURN(ModelFile file,
                        ModelFile::Open(path, options.backend == Backend::kInt8 ? Verify::kFull : verify));
  return Create(std::move(file), options);
}

Result<std::unique_ptr<Session>> Session::Create(ModelFile file, const SessionOptions& options) {
  WISP_ASSIGN_OR_RETURN(const kernels::Device device, DeviceOf(options));
  WISP_ASSIGN_OR_RETURN(const size_t threads, ThreadsOf(options.num_threads, options.backend));
  if (device.memory.is_host())
    return std::unique_ptr<Session>(new Session(std::move(file), device, threads, options.executor));
  WISP_ASSIGN_OR_RETURN(const InferenceMemory plan, PlanMemory(file, options));
  try {
    std::unique_ptr<Session> session(new Session(std::move(file), device, 1, {}));
    WISP_RETURN_IF_ERROR(session->Arrived());
    return session;
  } catch (const std::bad_alloc&) {
    return NoRoomOnDevice(device, "a session", plan.on_device, plan.total() - plan.on_device);
  }
}

Result<InferenceMemory> Session::PlanMemory(const Architecture& architecture, Backend backend, size_t num_threads) {
  WISP_RETURN_IF_ERROR(Validate(architecture));
  return PlanOf(architecture, {}, {.backend = backend, .num_threads = num_threads});
}

Result<InferenceMemory> Session::PlanMemory(const ModelFile& file, Backend backend, size_t num_threads) {
  return PlanMemory(file, {.backend = backend, .num_threads = num_threads});
}

Result<InferenceMemory> Session::PlanMemory(const ModelFile& file, const SessionOptions& options) {
  return PlanOf(file.architecture(), file.tensors(), options);
}

Result<InferenceMemory> Session::PlanOf(const Architecture& a, std::span<const StoredTensor> tensors,
                                        const SessionOptions& options) {
  WISP_ASSIGN_OR_RETURN(const kernels::Device device, DeviceOf(options));
  WISP_ASSIGN_OR_RETURN(const size_t threads, ThreadsOf(options.num_threads, options.backend));
  const HeadPacking head =
      tensors.empty() ? HeadPacking::kTiles : HeadPackingFor(*device.ops, a, ParameterSource(tensors));
  return MemoryOf(Recommender(a, device, {.use = GraphUse::kInference, .head = head}), tensors,
                  device.memory.is_host() ? threads : 1);
}

InferenceMemory Session::MemoryOf(const Recommender& graph, std::span<const StoredTensor> tensors, size_t num_threads) {
  const Architecture& a = graph.architecture();
  InferenceMemory memory{.activations = graph.inference_bytes() + graph.helper_bytes(num_threads) +
                                        graph.cache_bytes(KeptBlocks::kAll),
                         .packed_weights = PackedWeights::PlanBytes(graph),
                         .scores = a.num_items * (sizeof(float) + sizeof(uint8_t)) + a.max_length * sizeof(int32_t)};
  if (graph.device().memory.is_host()) return memory;
  const DeviceTop::Bytes top = DeviceTop::PlanBytes(graph.ops(), a.num_items, 1);
  memory.weights = DeviceWeights::PlanBytes(graph.parameters(), tensors);
  memory.on_device = memory.activations - graph.host_bytes() + memory.packed_weights + memory.weights + top.on_device;
  memory.scores += top.on_device + top.on_host;
  return memory;
}

InferenceMemory Session::memory() const {
  InferenceMemory memory = MemoryOf(graph_, file_.tensors(), num_threads());
  memory.packed_weights = weights_.allocated_bytes();
  memory.scores = scores_.capacity() * sizeof(float) + excluded_.capacity() + encoded_.capacity() * sizeof(int32_t);
  if (top_ != nullptr) memory.scores += top_->bytes().on_device + top_->bytes().on_host;
  return memory;
}

Status Session::Arrived() {
  if (is_host()) return OkStatus();
  const Status status = WaitForDevice(graph_.device());
  if (!status.ok()) encoded_.clear();
  return status;
}

[[gnu::cold]] Status Session::NotFinite() const {
  return InvalidData(file_.name(), ": the score of an item is no finite number: the weights are damaged, or of no use");
}

Status Session::CheckItems(const char* what, std::span<const int32_t> items) const {
  for (int32_t id : items) {
    if (id < 0 || static_cast<size_t>(id) >= scores_.size()) return NoSuchItem(what, id, scores_.size());
  }
  return OkStatus();
}

Status Session::CheckHistory(std::span<const int32_t> history) const {
  if (history.empty()) return InvalidArgument("the history is empty: at least one item is needed");
  return CheckItems("the history", history);
}

void Session::ScoreTo(std::span<const int32_t> history, float* scores) {
  const auto window = history.last(std::min<size_t>(history.size(), graph_.architecture().max_length));
  RecordContext context{.weights = weights_.view(),
                        .buffers = buffers_,
                        .cache = &cache_,
                        .past = ItemsKept(window),
                        .helpers = helpers_.get()};
  graph_.Score(context, window, scores);
  encoded_.assign(window.begin(), window.end());
}

Status Session::Score(std::span<const int32_t> history, std::span<float> scores) {
  if (history.empty()) return CheckHistory(history);
  if (scores.size() != scores_.size()) return WrongRoom(scores.size(), scores_.size());
  WISP_RETURN_IF_ERROR(CheckHistory(history));
  if (is_host()) {
    ScoreTo(history, scores.data());
    return OkStatus();
  }
  const kernels::Memory& memory = graph_.device().memory;
  const Gathering gathering(memory);
  ScoreTo(history, top_->scores());
  memory.copy_out(scores.data(), top_->scores(), scores.size_bytes());
  return Arrived();
}

// The first of the last history that need no second look. The newest item is always computed: its hidden state is what
// is asked for.
size_t Session::ItemsKept(std::span<const int32_t> window) const {
  if (!graph_.KeepsKeys(encoded_.size(), window.size())) return 0;
  const auto differs = std::mismatch(encoded_.begin(), encoded_.end(), window.begin(), window.end() - 1).first;
  return static_cast<size_t>(differs - encoded_.begin());
}

Result<std::vector<Recommendation>> Session::Recommend(std::span<const int32_t> history,
                                                       const RecommendOptions& options) {
  WISP_RETURN_IF_ERROR(CheckItems("the list of excluded items", options.excluded));
  WISP_RETURN_IF_ERROR(CheckItems("the list of candidates", options.candidates));
  if (const size_t count = std::min(options.count, scores_.size()); !is_host() && count <= kernels::kMostTopK)
    return RecommendOnDevice(history, options, count);
  WISP_RETURN_IF_ERROR(Score(history, scores_));
  std::fill(excluded_.begin(), excluded_.end(), uint8_t{0});
  if (options.seen == SeenItems::kExclude) {
    for (int32_t id : history) excluded_[static_cast<size_t>(id)] = 1;
  }
  for (int32_t id : options.excluded) excluded_[static_cast<size_t>(id)] = 1;
  std::vector<Recommendation> best(std::min(options.count, scores_.size()));
  TopK top(best);
  if (options.candidates.empty()) top.OfferAll(0, scores_, [this](size_t id) { return excluded_[id] != 0; });
  for (int32_t id : options.candidates) {
    uint8_t& taken = excluded_[static_cast<size_t>(id)];
    if (taken == 0) top.Offer({id, scores_[static_cast<size_t>(id)]});
    taken = 1;  // a candidate named twice is offered once
  }
  best.resize(top.Finish());
  if (!top.all_finite()) return NotFinite();
  return best;
}

void Session::MarkTaken(std::span<const int32_t> history, const RecommendOptions& options) {
  top_->ClearExcluded(0, options.candidates.empty() ? Offered::kAll : Offered::kNone);
  uint32_t* taken = top_->excluded(0);
  for (int32_t id : options.candidates) Unmark(taken, id);
  for (int32_t id : options.excluded) Mark(taken, id);
  if (options.seen != SeenItems::kExclude) return;
  for (int32_t id : history) Mark(taken, id);
}

Result<std::vector<Recommendation>> Session::RecommendOnDevice(std::span<const int32_t> history,
                                                               const RecommendOptions& options, size_t count) {
  WISP_RETURN_IF_ERROR(CheckHistory(history));
  MarkTaken(history, options);
  {
    const Gathering gathering(graph_.device().memory);
    top_->SendExcluded(1);
    ScoreTo(history, top_->scores());
    top_->Run(1, count);
  }
  WISP_RETURN_IF_ERROR(Arrived());
  if (!top_->all_finite(0)) return NotFinite();
  std::vector<Recommendation> best;
  best.reserve(count);
  for (const kernels::Scored& item : top_->best(0)) best.push_back({item.item, item.score});
  return best;
}

}  // namespace wisp
