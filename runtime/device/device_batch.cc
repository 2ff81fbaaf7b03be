#include "runtime/device/device_batch.h"

#include <algorithm>

namespace wisp {
namespace {

constexpr size_t kMostScoreBytes = size_t{64} << 20;

}  // namespace

size_t DeviceBatchRows(const Architecture& a, size_t wanted) {
  return std::clamp<size_t>(kMostScoreBytes / (a.num_items * sizeof(float)), 1, wanted);
}

std::unique_ptr<DeviceBatch> MakeDeviceBatch(const Session& session, size_t rows) {
  return std::make_unique<RowsOnDevice>(session, rows);
}

[[gnu::cold]] InferenceMemory PlanDeviceBatch(const Architecture& a, const kernels::Device& device, size_t rows) {
  const std::unique_ptr<const ModelView> graph =
      MakeModelView(a, device, {.use = GraphUse::kInference, .max_records = rows});
  const DeviceBytes top = DeviceTop::PlanBytes(*device.ops, a.num_items, rows);
  InferenceMemory memory{.activations = graph->inference_bytes() + graph->cache_bytes(CacheBlocks::kInTurn),
                         .scores = top.on_device + top.on_host + a.num_items * sizeof(float) + rows * sizeof(Record)};
  memory.on_device = memory.activations - graph->host_bytes() + top.on_device;
  return memory;
}

RowsOnDevice::RowsOnDevice(const Session& session, size_t rows)
    : session_(session),
      rows_(rows),
      graph_(MakeModelView(
          session.architecture(), session.graph().device(),
          {.use = GraphUse::kInference, .head = session.graph().pack_plan().head_packing(), .max_records = rows})),
      buffers_(graph_->AllocateForInference()),
      cache_(graph_->AllocateCache(CacheBlocks::kInTurn)),
      top_(graph_->device(), session.architecture().num_items, rows),
      windows_(rows),
      scores_(session.architecture().num_items) {
  records_.reserve(rows);
}

void RowsOnDevice::MarkTaken(size_t row, std::span<const int32_t> history, const RecommendOptions& options) {
  top_.ClearExcluded(row, options.candidates.empty() ? Offered::kAll : Offered::kNone);
  uint32_t* taken = top_.excluded(row);
  for (int32_t id : options.candidates) Unmark(taken, id);
  TakeUnoffered(history, options, session_.file().lists(), [taken](int32_t id) { Mark(taken, id); });
}

void RowsOnDevice::ChooseOnHost(size_t row, std::span<Recommendation> best, size_t& found, bool& all_finite) {
  graph_->device().memory.copy_out(scores_.data(), top_.scores() + row * scores_.size(),
                                   scores_.size() * sizeof(float));
  const uint32_t* taken = top_.excluded(row);
  TopK top(best);
  top.OfferAll(0, scores_, [taken](size_t id) { return IsMarked(taken, id); });
  found = top.Finish();
  all_finite = all_finite && top.all_finite();
}

Status RowsOnDevice::RecommendSome(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                                   Recommendation* best, size_t* found, bool& all_finite) {
  const size_t rows = histories.size(), max_length = graph_->architecture().max_length;
  const size_t count = std::min(options.count, scores_.size());
  records_.clear();
  for (size_t r = 0; r < rows; ++r) {
    MarkTaken(r, histories[r], options);
    auto window = HistoryWindow(histories[r], session_.file().untrained(), max_length, windows_[r]);
    if (window.empty()) window = histories[r].last(1);  // BatchRecommender::RecommendAlone answers this one
    records_.push_back({.inputs = window, .targets = {}});
  }
  RecordContext context{.weights = session_.weights(), .buffers = buffers_, .cache = &cache_};
  graph_->ScoreRows(session_.weights(), graph_->RepresentTogether(context, records_), rows, top_.scores());
  if (count > kernels::kMostTopK) {
    for (size_t r = 0; r < rows; ++r) ChooseOnHost(r, {best + r * options.count, count}, found[r], all_finite);
    return WaitForDevice(graph_->device());
  }
  top_.SendExcluded(rows);
  top_.Run(rows, count);
  WISP_RETURN_IF_ERROR(WaitForDevice(graph_->device()));
  for (size_t r = 0; r < rows; ++r) {
    found[r] = top_.best(r).size();
    all_finite = all_finite && top_.all_finite(r);
    Recommendation* next = best + r * options.count;
    for (const kernels::Scored& item : top_.best(r)) *next++ = {item.item, item.score};
  }
  return OkStatus();
}

Status RowsOnDevice::Recommend(std::span<const std::span<const int32_t>> histories, const RecommendOptions& options,
                               Recommendation* best, size_t* found) {
  bool all_finite = true;
  for (size_t first = 0; first < histories.size(); first += rows_) {
    const size_t rows = std::min(rows_, histories.size() - first);
    WISP_RETURN_IF_ERROR(RecommendSome(histories.subspan(first, rows), options, best + first * options.count,
                                       found + first, all_finite));
  }
  return all_finite ? OkStatus() : session_.NotFinite();
}

}  // namespace wisp
