// SQLite files as logs of events: the reader reads them, also with remembered sessions, and the event log opens,
// appends, prunes and queries them.
#include "runtime/data/event_log.h"
#include "runtime/data/readers.h"
#include "tests/fuzz/input.h"
#include "tests/unit/core/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace wisp;
  static const test::TemporaryFolder folder;
  const std::string path = folder / "log.db";
  fuzz::Input input(data, size);
  const uint8_t how = input.Byte();
  for (const char* side : {"", "-wal", "-shm", "-journal"}) std::remove((path + side).c_str());
  fuzz::WriteFile(path, input.Rest());

  data::ReadOptions options;
  if (how & 1) options.table = "other \"table\"";
  if (how & 2) options.time = data::TimeSource::kFileOrder;
  const data::Units sessions = {.unit = data::RecordUnit::kSession, .session_gap = 10};
  if (how & 8) options.units = sessions, options.private_run = true;
  const auto result = data::ReadLog(path, options);
  if (!result.ok()) fuzz::RequireSentence(result.status().message());
  auto log = data::EventLog::Open(path);
  if (!log.ok()) {
    fuzz::RequireSentence(log.status().message());
    return 0;
  }
  const auto history = log->History("anna", how & 4 ? 2 : 1000);
  if (!history.ok()) fuzz::RequireSentence(history.status().message());
  const Status appended = log->Append({.user = "anna", .item = "espresso", .time = 3});
  if (!appended.ok()) fuzz::RequireSentence(appended.message());
  const auto gone = how & 16 ? log->Prune({.before = 3, .units = sessions}) : log->Erase("anna");
  if (!gone.ok()) fuzz::RequireSentence(gone.status().message());
  return 0;
}
