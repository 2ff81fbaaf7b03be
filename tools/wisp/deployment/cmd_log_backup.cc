// Implements `wisp log import` and `wisp log export`: events of other files go into a log, and a log is written as
// text.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>

#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "runtime/data/event_log.h"
#include "runtime/data/marked_keys.h"
#include "runtime/data/readers.h"
#include "runtime/data/time_units.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/deployment/check_options.h"
#include "tools/wisp/deployment/deployment_data.h"
#include "tools/wisp/output.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {
namespace {

void ShowMoved(const Json& j, OutputFormat format, const std::string& sentence) {
  PrintText("%s\n", format == OutputFormat::kJson ? JsonText(j, 2).c_str() : sentence.c_str());
}

// Writes a key as a field between separators. Keys have no control characters, so no tabs and no line ends.
std::string KeyField(const std::string& key, char separator) {
  if (key.find(separator) == std::string::npos && key.front() != '"') return key;
  std::string field = "\"";
  for (const char c : key) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + "\"";
}

Status WriteTo(FileReplacement& out, const std::string& text) { return out.Write(std::as_bytes(std::span(text))); }

}  // namespace

Status LogImport(const LogArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const data::Units units, CheckedUnits(privacy::PrivacyUnit::kUser, 0, a.times_per_second));
  WISP_RETURN_IF_ERROR(CheckIsLog(a.path));
  WISP_ASSIGN_OR_RETURN(const std::vector<data::Event> events, ReadGivenEvents(a.data, units));
  WISP_ASSIGN_OR_RETURN(data::EventLog log, data::EventLog::Open(a.path));
  WISP_RETURN_IF_ERROR(log.AppendAll(events));
  data::MarkedKeys marked;
  data::TimeUnits times;
  std::unordered_set<std::string_view> looked;
  for (const data::Event& e : events) {
    times.Look(e.time);
    for (const std::string* key : {&e.user, &e.item}) {
      if (looked.insert(*key).second) marked.Look(*key);
    }
  }
  if (marked.count > 0) Warn(a.data.path + ": " + marked.Warning() + " (local only)");
  if (const std::string other = times.Warning(units.times_per_second); !other.empty())
    Warn(a.data.path + ": " + other + " (local only)");
  const Json j = {{"log", a.path}, {"imported", events.size()}, {"not_private", {"imported"}}};
  ShowMoved(j, format,
            FormatCount(events.size(), "event") + " of " + a.data.path + " added to " + a.path +
                "; to import the same file again would add them again\n" + kLocalOnly);
  return OkStatus();
}

Status LogExport(const LogArguments& a, OutputFormat format) {
  const data::Format wanted = data::FormatFromName(a.copy);
  if (wanted != data::Format::kCsv && wanted != data::Format::kTsv)
    return InvalidArgument("--out is '", OneLine(a.copy), "', allowed are names that end in .csv or .tsv");
  const char separator = wanted == data::Format::kCsv ? ',' : '\t';
  WISP_RETURN_IF_ERROR(CheckTimesPerSecond(a.times_per_second));
  WISP_ASSIGN_OR_RETURN(const data::EventLog log, OpenToRead(a.path));
  const NamedFile out_file{"--out", a.copy};
  WISP_RETURN_IF_ERROR(CheckOutput(out_file, {{"the log", a.path}}));
  WISP_RETURN_IF_ERROR(CheckReplacesNothing(out_file));
  WISP_ASSIGN_OR_RETURN(FileReplacement out, FileReplacement::Begin(a.copy));
  WISP_RETURN_IF_ERROR(WriteTo(out, std::string("user") + separator + "item" + separator + "time\n"));
  constexpr size_t kUsersAtOnce = 1000;
  uint64_t exported = 0;
  for (std::string after;;) {
    WISP_ASSIGN_OR_RETURN(const std::vector<data::LogUser> users, log.Users(after, kUsersAtOnce));
    for (const data::LogUser& user : users) {
      WISP_ASSIGN_OR_RETURN(const std::vector<data::Event> events, log.Events(user.user, a.times_per_second));
      std::string lines;
      for (const data::Event& e : events)
        lines += KeyField(e.user, separator) + separator + KeyField(e.item, separator) + separator +
                 std::to_string(e.time) + "\n";
      WISP_RETURN_IF_ERROR(WriteTo(out, lines));
      exported += events.size();
    }
    if (users.size() < kUsersAtOnce) break;
    after = users.back().user;
  }
  WISP_ASSIGN_OR_RETURN(const data::LogCount count, log.Count(a.times_per_second));
  WISP_RETURN_IF_ERROR(out.Commit());
  const Json j = {{"log", a.path},        {"out", a.copy},
                  {"exported", exported}, {"unreadable", count.unreadable},
                  {"dates", count.dates}, {"not_private", {"exported", "unreadable", "dates"}}};
  ShowMoved(j, format,
            FormatCount(exported, "event") + " of " + a.path + " written to " + a.copy +
                ", which is as private as the log" + DescribeUnreadable(count) +
                (count.unreadable > 0 ? ". These are not exported" : "") + "\n" + DatesIn(count, a.times_per_second) +
                kLocalOnly);
  return OkStatus();
}

}  // namespace wisp::tools
