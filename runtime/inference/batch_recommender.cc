#include "runtime/inference/batch_recommender.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

namespace wisp {
namespace {

constexpr size_t kMaxRows = 1024, kWordBits = 64;

size_t CountWords(size_t num_items) { return (num_items + kWordBits - 1) / kWordBits; }

void Take(uint64_t* words, int32_t item) {
  words[static_cast<size_t>(item) / kWordBits] |= uint64_t{1} << (static_cast<size_t>(item) % kWordBits);
}
void GiveBack(uint64_t* words, int32_t item) {
  words[static_cast<size_t>(item) / kWordBits] &= ~(uint64_t{1} << (static_cast<size_t>(item) % kWordBits));
}
bool IsTaken(const uint64_t* words, size_t item) { return (words[item / kWordBits] >> (item % kWordBits) & 1) != 0; }

size_t CountThreads(const BatchOptions& options) {
  return options.num_threads == 0 ? DefaultThreads() : options.num_threads;
}

Status CheckOptions(const BatchOptions& options, const kernels::OpTable& ops) {
  WISP_RETURN_IF_ERROR(CheckThreads(options.num_threads));
  if (options.rows == 0 || options.rows > kMaxRows) {
    return InvalidArgument("rows is ", options.rows, ", allowed are 1 to ", kMaxRows);
  }
  if (ops.release_packed != nullptr)
    return Unsupported(
        "recommending for several histories at once is not for XNNPACK, whose packed weights are for one thread");
  return OkStatus();
}

}  // namespace

Result<InferenceMemory> BatchRecommender::PlanMemory(const Architecture& a, const BatchOptions& options,
                                                     Backend backend, kernels::CacheType kept) {
  WISP_RETURN_IF_ERROR(Validate(a));
  WISP_ASSIGN_OR_RETURN(const kernels::OpTable* ops, GetOps(backend));
  WISP_RETURN_IF_ERROR(CheckOptions(options, *ops));
  const std::unique_ptr<const ModelView> graph = MakeModelView(a, *ops, {.use = GraphUse::kInference});
  const size_t rows = options.rows, words = CountWords(a.num_items);
  const size_t of_share = AlignedArray<float>::AllocatedBytes(rows * a.width) +
                          AlignedArray<float>::AllocatedBytes(rows * kHeadTile) +
                          AlignedArray<uint64_t>::AllocatedBytes(rows * words) + rows * sizeof(TopK);
  return InferenceMemory{.activations = CountThreads(options) *
                                        (graph->inference_bytes() + graph->cache_bytes(CacheBlocks::kInTurn, 0, kept)),
                         .scores = CountThreads(options) * of_share + AlignedArray<uint64_t>::AllocatedBytes(words)};
}

Result<InferenceMemory> BatchRecommender::PlanMemory(const Architecture& a, const BatchOptions& options,
                                                     const kernels::Device& device) {
  WISP_RETURN_IF_ERROR(Validate(a));
  WISP_RETURN_IF_ERROR(CheckOptions(options, *device.ops));
  WISP_RETURN_IF_ERROR(CheckDevice(device));
  return PlanDeviceBatch(a, device, DeviceBatchRows(a, options.rows));
}

InferenceMemory BatchRecommender::memory() const {
  if (on_device_ != nullptr) return PlanDeviceBatch(session_.architecture(), session_.graph().device(), rows_);
  InferenceMemory memory{.scores = taken_by_all_.allocated_bytes()};
  for (const Share& s : shares_) {
    memory.activations +=
        session_.graph().inference_bytes() + session_.graph().cache_bytes(CacheBlocks::kInTurn, 0, session_.kept());
    memory.scores += s.hidden.allocated_bytes() + s.scores.allocated_bytes() + s.taken.allocated_bytes() +
                     s.tops.capacity() * sizeof(TopK);
  }
  return memory;
}

Result<std::unique_ptr<BatchRecommender>> BatchRecommender::Create(Session& session, const BatchOptions& options) {
  WISP_RETURN_IF_ERROR(CheckOptions(options, session.graph().ops()));
  const kernels::Device& device = session.graph().device();
  if (device.memory.is_host()) return std::unique_ptr<BatchRecommender>(new BatchRecommender(session, options));
  try {
    return std::unique_ptr<BatchRecommender>(new BatchRecommender(session, options));
  } catch (const std::bad_alloc&) {
    WISP_ASSIGN_OR_RETURN(const InferenceMemory plan, PlanMemory(session.architecture(), options, device));
    return NoRoomOnDevice(device, "a batch", plan.on_device, plan.total() - plan.on_device);
  }
}

BatchRecommender::BatchRecommender(Session& session, const BatchOptions& options)
    : session_(session),
      rows_(is_host() ? options.rows : DeviceBatchRows(session.architecture(), options.rows)),
      words_(CountWords(session.architecture().num_items)),
      workers_(is_host() ? CountThreads(options) : 1, options.executor),
      taken_by_all_(is_host() ? words_ : 0, session.graph().device().memory),
      work_([this](size_t worker) { Work(worker); }) {
  if (!is_host()) {
    on_device_ = MakeDeviceBatch(session, rows_);
    return;
  }
  const kernels::Memory& memory = session.graph().device().memory;
  for (size_t w = 0; w < workers_.size(); ++w) {
    shares_.push_back({.buffers = session.graph().AllocateForInference(),
                       .cache = session.graph().AllocateCache(CacheBlocks::kInTurn, 0, session.kept()),
                       .hidden = AlignedArray<float>(rows_ * session.architecture().width, memory),
                       .scores = AlignedArray<float>(rows_ * kHeadTile, memory),
                       .taken = AlignedArray<uint64_t>(rows_ * words_, memory)});
    shares_.back().tops.reserve(rows_);
  }
}

Status BatchRecommender::Check(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                               std::span<Recommendation> best, std::span<size_t> found) const {
  if (found.size() < histories.size() || (options.count > 0 && best.size() / options.count < histories.size())) {
    return InvalidArgument("room for ", best.size(), " items and ", found.size(), " numbers of them is too little for ",
                           histories.size(), " histories with ", options.count, " items each");
  }
  WISP_RETURN_IF_ERROR(session_.CheckItems("the list of excluded items", options.excluded));
  WISP_RETURN_IF_ERROR(session_.CheckItems("the list of candidates", options.candidates));
  for (size_t i = 0; i < histories.size(); ++i) {
    if (histories[i].empty())
      return InvalidArgument(
          "history ", i,
          " is empty: in a batch each has an item; ask for the list of a user without history on its own");
    if (session_.CheckItems("", histories[i]).ok()) continue;
    return session_.CheckItems(("history " + std::to_string(i)).c_str(), histories[i]);
  }
  return OkStatus();
}

void BatchRecommender::MarkTakenByAll(const RecommendOptions& options) {
  std::memset(taken_by_all_.data(), options.candidates.empty() ? 0 : 0xff, words_ * sizeof(uint64_t));
  for (int32_t id : options.candidates) GiveBack(taken_by_all_.data(), id);
  TakeExcluded(options, session_.file().lists(), [this](int32_t id) { Take(taken_by_all_.data(), id); });
}

Status BatchRecommender::Recommend(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                                   std::span<Recommendation> best, std::span<size_t> found) {
  WISP_RETURN_IF_ERROR(Check(histories, options, best, found));
  if (histories.empty()) return OkStatus();
  if (on_device_ != nullptr) {
    WISP_RETURN_IF_ERROR(on_device_->Recommend(histories, options, best.data(), found.data()));
  } else {
    WISP_RETURN_IF_ERROR(RecommendOnHost(histories, options, best, found));
  }
  return RecommendAlone(histories, options, best, found);
}

Status BatchRecommender::RecommendAlone(std::span<const std::span<const int32_t>> histories,
                                        const RecommendOptions& options, std::span<Recommendation> best,
                                        std::span<size_t> found) {
  const ModelLists lists = session_.file().lists();
  std::vector<int32_t> room;
  for (size_t i = 0; i < histories.size(); ++i) {
    const bool is_known = !HistoryWindow(histories[i], lists.untrained, 1, room).empty(),
               is_complete = on_device_ == nullptr || FindSuccessions(lists.successions, histories[i]).empty();
    if (is_known && is_complete) continue;
    WISP_ASSIGN_OR_RETURN(const std::vector<Recommendation> list, session_.Recommend(histories[i], options));
    std::copy(list.begin(), list.end(), best.begin() + static_cast<std::ptrdiff_t>(i * options.count));
    found[i] = list.size();
  }
  return OkStatus();
}

Status BatchRecommender::RecommendOnHost(std::span<const std::span<const int32_t>> histories,
                                         const RecommendOptions& options, std::span<Recommendation> best,
                                         std::span<size_t> found) {
  MarkTakenByAll(options);
  // All pieces have one size, so that no thread gets only a few rows at the end.
  const size_t threads = workers_.size(),
               pieces = threads * ((histories.size() + threads * rows_ - 1) / (threads * rows_));
  call_ = {.histories = histories,
           .options = &options,
           .best = best.data(),
           .found = found.data(),
           .rows = (histories.size() + pieces - 1) / pieces};
  next_ = 0;
  all_finite_ = true;
  workers_.Run(work_);
  return all_finite_ ? OkStatus() : session_.NotFinite();
}

void BatchRecommender::Work(size_t worker) {
  const size_t count = call_.histories.size();
  for (size_t first = next_.fetch_add(call_.rows); first < count; first = next_.fetch_add(call_.rows)) {
    RecommendSome(shares_[worker], first, std::min(call_.rows, count - first));
  }
}

void BatchRecommender::RecommendSome(Share& share, size_t first, size_t rows) {
  const ModelView& graph = session_.graph();
  const Weights& weights = session_.weights();
  const size_t d = graph.architecture().width, num_items = graph.architecture().num_items,
               max_length = graph.architecture().max_length;
  const RecommendOptions& options = *call_.options;
  const std::span<const Succession> successions = session_.file().lists().successions;
  share.tops.clear();
  for (size_t r = 0; r < rows; ++r) {
    const std::span<const int32_t> history = call_.histories[first + r];
    RecordContext context{.weights = weights, .buffers = share.buffers, .cache = &share.cache};
    auto window = HistoryWindow(history, session_.file().untrained(), max_length, share.window);
    if (window.empty()) window = history.last(1);  // RecommendAlone will answer this one
    std::memcpy(share.hidden.data() + r * d, graph.Represent(context, window), d * sizeof(float));
    uint64_t* taken = share.taken.data() + r * words_;
    std::memcpy(taken, taken_by_all_.data(), words_ * sizeof(uint64_t));
    TakeSeen(history, options.seen, session_.file().lists(), [taken](int32_t id) { Take(taken, id); });
    share.tops.emplace_back(std::span(call_.best + (first + r) * options.count, std::min(options.count, num_items)));
  }
  for (size_t tile = 0; tile * kHeadTile < num_items; ++tile) {
    const size_t id = tile * kHeadTile, n = std::min(kHeadTile, num_items - id);
    graph.ScoreTile(weights, share.hidden.data(), rows, tile, share.scores.data());
    for (size_t r = 0; r < rows; ++r) {
      const uint64_t* taken = share.taken.data() + r * words_;
      AddSuccessions(successions, call_.histories[first + r], {share.scores.data() + r * n, n}, id);
      share.tops[r].OfferAll(id, {share.scores.data() + r * n, n}, [&](size_t item) { return IsTaken(taken, item); });
    }
  }
  for (size_t r = 0; r < rows; ++r) {
    call_.found[first + r] = share.tops[r].Finish();
    if (!share.tops[r].all_finite()) all_finite_ = false;
  }
}

}  // namespace wisp
