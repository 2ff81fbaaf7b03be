// Cuts the events of one user into sessions. An event that was read once stays in its session, whatever comes late.
// docs/algorithms.md, section 11, has the rule and why no record changes by another's absence.
//
//   SessionMemory memory = ...;  // what earlier readings found: session_table.h
//   const std::vector<int64_t> session_of = memory.Cut("anna", times, gap);
#ifndef WISP_RUNTIME_DATA_SESSIONS_H_
#define WISP_RUNTIME_DATA_SESSIONS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/sequences.h"

namespace wisp::data {

// A session or a day may have events from time 0 to this one. Training leaves others out.
inline int64_t LatestTime(uint32_t times_per_second) { return (kLatestSecond + 1) * int64_t{times_per_second} - 1; }

// A user had an event at that time when the log was read, in that session.
struct ReadTime {
  int64_t time = 0;
  int64_t session = 0;  // named by the time of its first event when it was first read
};

// The session of each event of one user, by its name; `times` ascend. `read` are the times of earlier readings,
// ascending, each once. In a log that was never read, a session is a series without a pause longer than `gap`.
std::vector<int64_t> CutSessions(std::span<const int64_t> times, std::span<const ReadTime> read, int64_t gap);

// The times of all users that were read before, and those that one more reading adds.
class SessionMemory {
 public:
  struct News {
    std::string user;
    ReadTime read;
  };

  // Call in ascending time for each user.
  void Add(std::string_view user, ReadTime read);
  // CutSessions, called once for each user. It collects times that were not read before in news().
  std::vector<int64_t> Cut(const std::string& user, std::span<const int64_t> times, int64_t gap);
  const std::vector<News>& news() const { return news_; }

 private:
  std::map<std::string, std::vector<ReadTime>, std::less<>> read_;
  std::vector<News> news_;
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SESSIONS_H_
