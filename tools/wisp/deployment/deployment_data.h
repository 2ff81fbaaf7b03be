// Functions that the commands of a deployment share: its ledger, its data set's name, its unit.
#ifndef WISP_TOOLS_WISP_DEPLOYMENT_DEPLOYMENT_DATA_H_
#define WISP_TOOLS_WISP_DEPLOYMENT_DEPLOYMENT_DATA_H_

#include <memory>
#include <optional>
#include <string>

#include "runtime/data/event_log.h"
#include "runtime/data/sequences.h"
#include "runtime/personalise/deployment.h"
#include "runtime/privacy/ledger/ledger.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {

// Returns --ledger, or the path of --data with another ending.
std::string LedgerPath(const DeploymentArguments& deployment);
// Returns --dataset, or the file's name.
std::string GetDataset(const DeploymentArguments& deployment);

struct ChosenUnit {
  privacy::PrivacyUnit unit = privacy::PrivacyUnit::kUser;
  bool chosen = false;
};
Result<ChosenUnit> UnitChosen(const std::optional<std::string>& text);

// Returns "2,000", for people.
std::string Thousands(uint64_t number);
// Returns "1 event" or "1,200 events", for words whose plural adds an s.
std::string FormatCount(uint64_t number, std::string_view what);
// Returns "; training cannot read 3 of its events: ...", or an empty text if it can read them all.
std::string DescribeUnreadable(const data::LogCount& count);
// Returns a line that says how to give times that are dates, or an empty text if no time is a date.
std::string DatesIn(const data::LogCount& count, uint32_t times_per_second);
// Opens an existing log: a misspelt name must not create an empty one, and another file must not become a log. `what`
// names it in the error about a file that cannot be opened.
struct LogToRead {
  const char* what = "the log";
  const char* advice = "; give the SQLite file that the app writes its events to, by its whole path if need be";
};
// Refuses a file that has content and is no SQLite file, before SQLite says that it is "not a database".
Status CheckIsLog(const std::string& path, const char* what = "the log");
Result<data::EventLog> OpenToRead(const std::string& path, const LogToRead& log = {});
// Returns ", 3 of 12 evaluations" after `before`; empty if evaluations are not counted.
std::string EvaluationsLeft(const DeploymentSettings& settings, const DeploymentLeft& left, const char* before);
std::string Megabytes(uint64_t bytes);
// Returns "12 s", "3 min" or "2.5 h".
std::string Duration(double seconds);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DEPLOYMENT_DEPLOYMENT_DATA_H_
