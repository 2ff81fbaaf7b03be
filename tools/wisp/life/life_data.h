// What the commands of a life share: its ledger, its data set's name, its unit.
#ifndef WISP_TOOLS_WISP_LIFE_LIFE_DATA_H_
#define WISP_TOOLS_WISP_LIFE_LIFE_DATA_H_

#include <memory>
#include <optional>
#include <string>

#include "runtime/data/event_log.h"
#include "runtime/data/sequences.h"
#include "runtime/personalise/lifetime.h"
#include "runtime/privacy/ledger/ledger.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {

// --ledger, or the name of --data with another ending.
std::string LedgerPath(const LifeArguments& life);
// --dataset, or the file's name.
std::string DatasetOf(const LifeArguments& life);

struct ChosenUnit {
  privacy::PrivacyUnit unit = privacy::PrivacyUnit::kUser;
  bool chosen = false;
};
Result<ChosenUnit> UnitChosen(const std::optional<std::string>& text);

// "2,000", for people.
std::string Thousands(uint64_t number);
// "1 event", "1,200 events": of words whose plural is an s more.
std::string ThousandsOf(uint64_t number, std::string_view what);
// "; training cannot read 3 of its events: ..."; empty where it can read them all.
std::string UnreadableIn(const data::LogCount& count);
// A log that is there: a misspelt name must not make an empty one, nor another file become one. `what` names it in the
// sentence about a file that cannot be opened.
struct LogToRead {
  const char* what = "the log";
  const char* advice = "; give the SQLite file that the app writes its events to, by its whole path if need be";
};
Result<data::EventLog> OpenToRead(const std::string& path, const LogToRead& log = {});
// Whether judgings are counted at all: local ones are as many as there are nights.
bool CountsJudgings(const LifetimeSettings& settings);
// ", 3 of 12 judgings", behind `before`; empty where none are counted.
std::string JudgingsLeft(const LifetimeSettings& settings, const LifetimeLeft& left, const char* before);
std::string Megabytes(uint64_t bytes);
// "12 s", "3 min", "2.5 h".
std::string Duration(double seconds);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_LIFE_LIFE_DATA_H_
