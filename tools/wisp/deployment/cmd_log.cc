// Implements `wisp log`.
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/text.h"
#include "runtime/data/date_time.h"
#include "runtime/data/event_log.h"
#include "runtime/data/sequences.h"
#include "runtime/train/run/records.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/deployment/check_options.h"
#include "tools/wisp/deployment/deployment_data.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

Result<data::EventLog> OpenToWrite(const std::string& path) {
  WISP_RETURN_IF_ERROR(OpenToRead(path).status());
  return data::EventLog::Open(path);
}

void Show(const Json& j, OutputFormat format, const std::string& sentence) {
  if (format == OutputFormat::kJson) {
    PrintJson(j);
  } else {
    PrintText("%s\n", sentence.c_str());
  }
}

// A day is converted to the log's times, and nothing tells which unit these have. With the wrong unit, every event or
// no event would be older than the day.
Status CheckTimes(const LogArguments& a, const data::EventLog& log) {
  constexpr int64_t kEarliestSecond = 631152000;  // 1990
  WISP_ASSIGN_OR_RETURN(const data::LogCount count, log.Count(a.times_per_second));
  for (const std::optional<int64_t>& time : {count.oldest, count.newest}) {
    if (!time) continue;
    const int64_t second = *time / a.times_per_second;
    if (second >= kEarliestSecond && second <= data::kLatestSecond) continue;
    return InvalidArgument(a.path, ": the time of an event is ", *time,
                           ", which is no time between 1990 and 2223 where a second has ", a.times_per_second,
                           " of them, so '", OneLine(a.before),
                           "' would not mean what it says; allowed is the log's own unit (--times-per-second), or "
                           "--before as a number in the log's own times");
  }
  return OkStatus();
}

// Returns the beginning of a day, or a number in the log's own times.
Result<int64_t> GetTime(const LogArguments& a, const data::EventLog& log) {
  const char* end = a.before.data() + a.before.size();
  int64_t number = 0;
  if (const auto read = std::from_chars(a.before.data(), end, number); read.ec == std::errc() && read.ptr == end)
    return number;
  int64_t time = 0;
  if (!data::ParseDate(a.before, a.times_per_second, time))
    return InvalidArgument("--before is '", OneLine(a.before),
                           "', allowed is a day such as 2026-01-01, or a number in the log's own times");
  WISP_RETURN_IF_ERROR(CheckTimes(a, log));
  return time;
}

}  // namespace

Status LogCount(const LogArguments& a, OutputFormat format) {
  WISP_RETURN_IF_ERROR(CheckTimesPerSecond(a.times_per_second));
  WISP_ASSIGN_OR_RETURN(const data::EventLog log, OpenToRead(a.path));
  WISP_ASSIGN_OR_RETURN(const data::LogCount count, log.Count(a.times_per_second));
  Json j = {{"log", a.path},        {"events", count.events},         {"users", count.users},
            {"items", count.items}, {"unreadable", count.unreadable}, {"dates", count.dates}};
  if (count.oldest) j["oldest"] = *count.oldest, j["newest"] = *count.newest;
  j["not_private"] = ListFigureNames(j);
  Show(j, format,
       OneLine(a.path) + ": " + FormatCount(count.events, "event") + " of " + FormatCount(count.users, "user") + ", " +
           FormatCount(count.items, "item") +
           (count.oldest ? ", from " + std::to_string(*count.oldest) + " to " + std::to_string(*count.newest) : "") +
           DescribeUnreadable(count) + "\n" + DatesIn(count, a.times_per_second) + kLocalOnly);
  return OkStatus();
}

Status LogList(const LogArguments& a, OutputFormat format) {
  WISP_RETURN_IF_ERROR(CheckTimesPerSecond(a.times_per_second));
  WISP_ASSIGN_OR_RETURN(const data::EventLog log, OpenToRead(a.path));
  WISP_ASSIGN_OR_RETURN(const std::vector<data::LogUser> users, log.Users(a.after, a.count, a.times_per_second));
  WISP_ASSIGN_OR_RETURN(const data::LogCount count, log.Count(a.times_per_second));
  Json j = {{"log", a.path}, {"users", Json::array()}, {"unreadable", count.unreadable}, {"dates", count.dates}};
  std::string lines;
  for (const data::LogUser& user : users) {
    j["users"].push_back({{"user", user.user}, {"events", user.events}});
    if (user.newest) j["users"].back()["newest"] = *user.newest;
    lines += OneLine(user.user) + "\t" + Counted(user.events, "event") +
             (user.newest ? "\tnewest " + std::to_string(*user.newest) : "") + "\n";
  }
  j["not_private"] = ListFigureNames(j);
  if (count.unreadable > 0) lines += OneLine(a.path) + DescribeUnreadable(count) + "\n";
  Show(j, format, lines + DatesIn(count, a.times_per_second) + kLocalOnly);
  return OkStatus();
}

Status LogErase(const LogArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(data::EventLog log, OpenToWrite(a.path));
  WISP_ASSIGN_OR_RETURN(const uint64_t erased, log.Erase(a.user));
  Json j = {{"log", a.path}, {"user", a.user}, {"erased", erased}};
  j["not_private"] = ListFigureNames(j);
  Show(j, format,
       erased == 0
           ? "nothing matched: " + OneLine(a.path) + " has no event of '" + OneLine(a.user) + "'"
           : Thousands(erased) + " events of '" + OneLine(a.user) +
                 "' are gone from the log. What models learned from them stays in these, under their "
                 "guarantee; to be rid of\n"
                 "that too, delete the personalised model with its candidate, checkpoint and start, and start over "
                 "from the base");
  return OkStatus();
}

Status LogPrune(const LogArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const ChosenUnit unit, UnitChosen(a.unit));
  WISP_RETURN_IF_ERROR(CheckPrune(a, unit.unit));
  data::PruneOptions options{.newest_per_user = a.newest_per_user};
  WISP_ASSIGN_OR_RETURN(options.units, CheckedUnits(unit.unit, a.session_gap, a.times_per_second));
  WISP_ASSIGN_OR_RETURN(data::EventLog log, OpenToWrite(a.path));
  if (!a.before.empty()) {
    WISP_ASSIGN_OR_RETURN(options.before, GetTime(a, log));
    if (*options.before < 0)
      return InvalidArgument("--before is '", OneLine(a.before), "', allowed is from 1970-01-01 on, or 0 and more");
  }
  WISP_ASSIGN_OR_RETURN(const uint64_t pruned, log.Prune(options));
  WISP_ASSIGN_OR_RETURN(const data::LogCount count, log.Count());
  Json j = {{"log", a.path}, {"pruned", pruned}, {"unreadable", count.unreadable}};
  j["not_private"] = ListFigureNames(j);
  Show(j, format,
       (pruned == 0 ? "nothing matched: every event of " + OneLine(a.path) + " is to be kept"
                    : Thousands(pruned) + " events are gone from " + OneLine(a.path)) +
           DescribeUnreadable(count));
  return OkStatus();
}

Status LogBackup(const LogArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const data::EventLog log, OpenToRead(a.path));
  WISP_RETURN_IF_ERROR(log.Backup(a.copy));
  Show({{"log", a.path}, {"copy", a.copy}}, format,
       OneLine(a.copy) + ": a whole copy of " + OneLine(a.path) + "; it holds what people did, so keep it as private");
  return OkStatus();
}

Status LogRestore(const LogArguments& a, OutputFormat format) {
  WISP_RETURN_IF_ERROR(
      OpenToRead(a.copy,
                 {.what = "the copy", .advice = "; nothing was restored; give the file that wisp log backup wrote"})
          .status());
  WISP_RETURN_IF_ERROR(CheckIsLog(a.path));
  WISP_RETURN_IF_ERROR(data::EventLog::Restore(a.path, a.copy));
  Show({{"log", a.path}, {"copy", a.copy}}, format,
       OneLine(a.path) + " holds what " + OneLine(a.copy) +
           " held. Whoever was erased since is back: erase them again. The ledger stays as it is, whatever the log "
           "holds");
  return OkStatus();
}

}  // namespace wisp::tools
