// Built for speed: a loop over every event of a log.
#include "runtime/data/sessions.h"

#include <algorithm>
#include <optional>

namespace wisp::data {
namespace {

bool IsBefore(const ReadTime& read, int64_t time) { return read.time < time; }

// The session of new events without a pause between them. Of all sessions that have an event within the gap of one of
// these, they join the one that began first; without such a session they begin one.
int64_t GetSession(int64_t first, int64_t last, std::span<const ReadTime> read, int64_t gap) {
  std::optional<int64_t> session;
  for (auto at = std::lower_bound(read.begin(), read.end(), first - gap, IsBefore);
       at != read.end() && at->time <= last + gap; ++at)
    session = std::min(session.value_or(at->session), at->session);
  return session.value_or(first);
}

}  // namespace

std::vector<int64_t> CutSessions(std::span<const int64_t> times, std::span<const ReadTime> read, int64_t gap) {
  std::vector<int64_t> session_of(times.size());
  std::vector<size_t> run;  // events that were not read before
  const auto end_run = [&] {
    if (run.empty()) return;
    const int64_t session = GetSession(times[run.front()], times[run.back()], read, gap);
    for (const size_t i : run) session_of[i] = session;
    run.clear();
  };
  for (size_t i = 0; i < times.size(); ++i) {
    const auto at = std::lower_bound(read.begin(), read.end(), times[i], IsBefore);
    if (at != read.end() && at->time == times[i]) {
      session_of[i] = at->session;
      continue;
    }
    if (!run.empty() && times[i] - times[run.back()] > gap) end_run();
    run.push_back(i);
  }
  end_run();
  return session_of;
}

void SessionMemory::Add(std::string_view user, ReadTime read) {
  auto at = read_.find(user);
  if (at == read_.end()) at = read_.emplace(user, std::vector<ReadTime>()).first;
  at->second.push_back(read);
}

std::vector<int64_t> SessionMemory::Cut(const std::string& user, std::span<const int64_t> times, int64_t gap) {
  const auto found = read_.find(user);
  const std::span<const ReadTime> read = found == read_.end() ? std::span<const ReadTime>() : found->second;
  std::vector<int64_t> session_of = CutSessions(times, read, gap);
  for (size_t i = 0, at = 0; i < times.size(); ++i) {
    if (i > 0 && times[i] == times[i - 1]) continue;
    while (at < read.size() && read[at].time < times[i]) ++at;
    if (at == read.size() || read[at].time != times[i])
      news_.push_back({.user = user, .read = {.time = times[i], .session = session_of[i]}});
  }
  return session_of;
}

}  // namespace wisp::data
