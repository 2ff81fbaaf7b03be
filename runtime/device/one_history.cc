// Measures whether a device or the processor answers one history sooner.
#include <algorithm>
#include <chrono>
#include <iterator>

#include "runtime/inference/session.h"

namespace wisp {
namespace {

constexpr size_t kItemsBefore = 16, kEvents = 9;

// A history of items that the model reads; empty if it reads none.
std::vector<int32_t> MakeHistory(const Session& session) {
  const std::span<const int32_t> untrained = session.file().untrained();
  std::vector<int32_t> read;
  for (int32_t id = 0; static_cast<size_t>(id) < session.architecture().num_items; ++id) {
    if (std::binary_search(untrained.begin(), untrained.end(), id)) continue;
    read.push_back(id);
    if (read.size() == kItemsBefore + kEvents) return read;
  }
  const size_t count = read.size();
  for (size_t i = 0; count > 0 && read.size() < kItemsBefore + kEvents; ++i) read.push_back(read[i % count]);
  return read;
}

using Seconds = std::chrono::duration<double>;

Result<Seconds> MeasureEvent(Session& session, std::span<const int32_t> history) {
  const RecommendOptions options{.count = 10};
  WISP_RETURN_IF_ERROR(session.Recommend(history.first(kItemsBefore), options).status());
  std::vector<Seconds> times;
  for (size_t length = kItemsBefore + 1; length <= history.size(); ++length) {
    const auto start = std::chrono::steady_clock::now();
    WISP_RETURN_IF_ERROR(session.Recommend(history.first(length), options).status());
    times.push_back(std::chrono::steady_clock::now() - start);
  }
  const auto median = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), median, times.end());
  return *median;
}

}  // namespace

[[gnu::cold]] Result<bool> IsFasterForOne(Session& on_device, Session& on_host) {
  const std::vector<int32_t> history = MakeHistory(on_device);
  if (history.empty()) return false;
  const Result<Seconds> there = MeasureEvent(on_device, history), here = MeasureEvent(on_host, history);
  for (const Result<Seconds>* measured : {&there, &here}) {
    if (measured->ok()) continue;
    // Weights that are damaged are said when somebody asks.
    if (measured->status().code() == StatusCode::kInvalidData) return false;
    return measured->status();
  }
  return *there < *here;
}

}  // namespace wisp
