#include "tools/wisp/deployment/deployment_data.h"

#include <cerrno>
#include <cstdio>

#include "runtime/core/platform.h"
#include "runtime/core/reason.h"
#include "tools/wisp/output.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {

std::string LedgerPath(const DeploymentArguments& deployment) {
  if (!deployment.ledger.empty()) return deployment.ledger;
  const std::string& data = deployment.data.path;
  const size_t dot = data.rfind('.'), slash = data.rfind('/');
  const bool has_ending = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) && dot > 0;
  return (has_ending ? data.substr(0, dot) : data) + ".ledger";
}

std::string GetDataset(const DeploymentArguments& deployment) {
  return deployment.dataset.empty() ? FileName(deployment.data.path) : deployment.dataset;
}

Result<ChosenUnit> UnitChosen(const std::optional<std::string>& text) {
  if (!text) return ChosenUnit{};
  WISP_ASSIGN_OR_RETURN(const privacy::PrivacyUnit unit, privacy::PrivacyUnitFromText(*text));
  return ChosenUnit{unit, true};
}

std::string Thousands(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string FormatCount(uint64_t number, std::string_view what) {
  return Thousands(number) + " " + std::string(what) + (number == 1 ? "" : "s");
}

std::string DescribeUnreadable(const data::LogCount& count) {
  if (count.unreadable == 0) return "";
  return "; training cannot read " + Thousands(count.unreadable) +
         " of its events: their user or item is no key (an integer, or a text of 1 to 256 bytes of UTF-8 without "
         "control "
         "characters), or their time not a number or a date";
}

std::string DatesIn(const data::LogCount& count, uint32_t times_per_second) {
  if (count.dates == 0) return "";
  return "times of " + FormatCount(count.dates, "event") + " are dates, and given as numbers since 1970 with " +
         std::to_string(times_per_second) + " to the second (--times-per-second)\n";
}

Status CheckIsLog(const std::string& path, const char* what) {
  if (CheckReplaces(FileKind::kLog, {"", path}).ok()) return OkStatus();
  return InvalidData(path, ": ", what, " is no SQLite file, which is needed; `wisp log import LOG --data FILE` ",
                     "adds the events of a text file to one");
}

Result<data::EventLog> OpenToRead(const std::string& path, const LogToRead& log) {
  const int file = platform::Open(path, platform::kRead);
  if (file < 0) return IoError(path, ": ", log.what, " cannot be opened: ", Reason(errno), log.advice);
  platform::Close(file);
  WISP_RETURN_IF_ERROR(CheckIsLog(path, log.what));
  return data::EventLog::OpenExisting(path);
}

std::string EvaluationsLeft(const DeploymentSettings& s, const DeploymentLeft& left, const char* before) {
  if (!EvaluatesPrivately(s)) return "";
  return before + Thousands(left.evaluations) + " of " + Thousands(s.evaluations) + " evaluations";
}

std::string Megabytes(uint64_t bytes) { return Fixed(static_cast<double>(bytes) / 1e6, 1) + " MB"; }

std::string Duration(double seconds) {
  if (seconds < 0.095) return Fixed(seconds * 1000, 0) + " ms";
  if (seconds < 9.95) return Fixed(seconds, 1) + " s";
  if (seconds < 120) return Fixed(seconds, 0) + " s";
  return seconds < 7200 ? Fixed(seconds / 60, 0) + " min" : Fixed(seconds / 3600, 1) + " h";
}

}  // namespace wisp::tools
