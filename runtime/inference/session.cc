// Built for speed: a loop over every item's score.
#include "runtime/inference/session.h"

#include <algorithm>

#include "runtime/inference/not_finite.h"

namespace wisp {
namespace {

// Cold code is compiled for size, which takes 4.1 KB off the library (g++ 12.2, 2026-11-21).
[[gnu::cold]] Status NoSuchItem(const char* what, int32_t id, size_t num_items) {
  return InvalidArgument(what, " names item ", id, "; the model has items 0 to ", num_items - 1);
}
[[gnu::cold]] Status WrongRoom(size_t given, size_t num_items) {
  return InvalidArgument("room for ", given, " scores, the model has ", num_items, " items");
}

}  // namespace

[[gnu::cold]] Status Session::NotFinite() const {
  return NotFiniteOn(graph_->device(), file_.name(), "the score of an item");
}

Status Session::CheckItems(const char* what, std::span<const int32_t> items) const {
  for (int32_t id : items) {
    if (id < 0 || static_cast<size_t>(id) >= scores_.size()) return NoSuchItem(what, id, scores_.size());
  }
  return OkStatus();
}

void Session::ScoreTo(std::span<const int32_t> window, float* scores) {
  RecordContext context{.weights = weights_.view(),
                        .buffers = buffers_,
                        .cache = &cache_,
                        .past = ItemsKept(window),
                        .helpers = helpers_.get()};
  graph_->Score(context, window, scores);
  encoded_.assign(window.begin(), window.end());
}

[[gnu::cold]] Status Session::Represent(std::span<const int32_t> history, std::span<float> state) {
  if (on_host_ != nullptr) return on_host_->Represent(history, state);
  WISP_RETURN_IF_ERROR(CheckItems("the history", history));
  const std::span<const int32_t> window = GetWindow(history);
  if (window.empty()) return InvalidArgument("the history has no item that the model has learned, so it has no vector");
  RecordContext context{.weights = weights_.view(),
                        .buffers = buffers_,
                        .cache = &cache_,
                        .past = ItemsKept(window),
                        .helpers = helpers_.get()};
  const float* const h = graph_->Represent(context, window);
  encoded_.assign(window.begin(), window.end());
  graph_->device().memory.copy_out(state.data(), h, state.size_bytes());
  WISP_RETURN_IF_ERROR(Arrived());
  const bool finite = std::all_of(state.begin(), state.end(), [](float x) { return x - x == 0; });
  return finite ? OkStatus() : NotFiniteOn(graph_->device(), file_.name(), "the vector of a history");
}

Status Session::Score(std::span<const int32_t> history, std::span<float> scores) {
  if (on_host_ != nullptr) return on_host_->Score(history, scores);
  if (scores.size() != scores_.size()) return WrongRoom(scores.size(), scores_.size());
  WISP_RETURN_IF_ERROR(CheckItems("the history", history));
  const std::span<const int32_t> window = GetWindow(history);
  if (window.empty()) {
    WISP_RETURN_IF_ERROR(FindPopular());
    std::copy(popular_.begin(), popular_.end(), scores.begin());
  } else if (is_host()) {
    ScoreTo(window, scores.data());
  } else {
    WISP_RETURN_IF_ERROR(ScoreOnDevice(window, scores));
  }
  AddSuccessions(file_.lists().successions, history, scores);
  return OkStatus();
}

[[gnu::cold]] Status Session::Arrived() {
  if (is_host()) return OkStatus();
  Status status = WaitForDevice(graph_->device());
  if (!status.ok()) encoded_.clear();
  return status;
}

[[gnu::cold]] Status Session::ScoreOnDevice(std::span<const int32_t> window, std::span<float> scores) {
  const kernels::Memory& memory = graph_->device().memory;
  const Gathering gathering(memory);
  ScoreTo(window, on_device_->data());
  memory.copy_out(scores.data(), on_device_->data(), scores.size_bytes());
  return Arrived();
}

[[gnu::cold]] Result<std::vector<Recommendation>> Session::RecommendOnDevice(std::span<const int32_t> history,
                                                                             const RecommendOptions& options,
                                                                             size_t count) {
  Result<DeviceScores::Best> best = on_device_->Recommend(history, options, file_.lists(), count,
                                                          [&](float* scores) { ScoreTo(GetWindow(history), scores); });
  if (!best.ok()) {
    encoded_.clear();
    return best.status();
  }
  if (!best->all_finite) return NotFinite();
  return std::move(best->items);
}

// The number of items, from the front of the last history, that need not be computed again. The newest item is always
// computed, because its hidden state is the result.
size_t Session::ItemsKept(std::span<const int32_t> window) const {
  if (!graph_->KeepsKeys(encoded_.size(), window.size())) return 0;
  const auto differs = std::mismatch(encoded_.begin(), encoded_.end(), window.begin(), window.end() - 1).first;
  return static_cast<size_t>(differs - encoded_.begin());
}

Result<std::vector<Recommendation>> Session::Recommend(std::span<const int32_t> history,
                                                       const RecommendOptions& options) {
  if (on_host_ != nullptr) return on_host_->Recommend(history, options);
  WISP_RETURN_IF_ERROR(CheckItems("the list of excluded items", options.excluded));
  WISP_RETURN_IF_ERROR(CheckItems("the list of candidates", options.candidates));
  WISP_RETURN_IF_ERROR(CheckItems("the history", history));
  if (const size_t count = std::min(options.count, scores_.size());
      !is_host() && count <= kernels::kMostTopK && !GetWindow(history).empty() &&
      FindSuccessions(file_.lists().successions, history).empty())
    return RecommendOnDevice(history, options, count);
  WISP_RETURN_IF_ERROR(Score(history, scores_));
  std::vector<Recommendation> best(std::min(options.count, scores_.size()));
  const ServedList::Chosen chosen = list_.Choose(scores_, history, options, best);
  if (!chosen.all_finite) return NotFinite();
  best.resize(chosen.count);
  return best;
}

}  // namespace wisp
