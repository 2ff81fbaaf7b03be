// Built for speed: a loop over every event of a log.
#include "runtime/data/sessions.h"

#include <algorithm>
#include <numeric>

namespace wisp::data {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

class Cutter {
 public:
  Cutter(std::span<const ArrivedEvent> events, int64_t gap)
      : events_(events), gap_(gap), session_of_(events.size(), kNone) {}

  std::vector<uint32_t> Cut() {
    std::vector<uint32_t> order(events_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return events_[a].reading < events_[b].reading; });
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      for (end = begin + 1; end < order.size() && Continues(order[end - 1], order[end]); ++end) continue;
      Place(std::span(order).subspan(begin, end - begin));
    }
    return std::move(session_of_);
  }

 private:
  bool Continues(uint32_t a, uint32_t b) const {
    return events_[a].reading == events_[b].reading && events_[b].time - events_[a].time <= gap_;
  }

  // Events that came with one reading, without a pause between them. They join the session that began to be known
  // first, of all that have an event within the gap; or none, and begin one.
  void Place(std::span<const uint32_t> run) {
    const auto by_time = [](const ArrivedEvent& e, int64_t time) { return e.time < time; };
    const int64_t first = events_[run.front()].time - gap_, last = events_[run.back()].time + gap_;
    auto at = std::lower_bound(events_.begin(), events_.end(), first, by_time) - events_.begin();
    uint32_t session = kNone;
    for (; at < std::ssize(events_) && events_[static_cast<size_t>(at)].time <= last; ++at) {
      const uint32_t other = session_of_[static_cast<size_t>(at)];
      if (other == kNone || (session != kNone && first_arrival_[other] >= first_arrival_[session])) continue;
      session = other;
    }
    if (session == kNone) {
      session = static_cast<uint32_t>(first_arrival_.size());
      first_arrival_.push_back(kNone);
      for (const uint32_t i : run) first_arrival_.back() = std::min(first_arrival_.back(), events_[i].arrival);
    }
    for (const uint32_t i : run) session_of_[i] = session;
  }

  std::span<const ArrivedEvent> events_;
  int64_t gap_;
  std::vector<uint32_t> session_of_;
  std::vector<uint32_t> first_arrival_;  // of each session: later events arrive later
};

}  // namespace

std::vector<uint32_t> CutSessions(std::span<const ArrivedEvent> events, int64_t gap) {
  return Cutter(events, gap).Cut();
}

}  // namespace wisp::data
