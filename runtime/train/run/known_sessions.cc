#include "runtime/train/run/known_sessions.h"

#include <algorithm>

#include "runtime/data/session_table.h"

namespace wisp {

Status CheckSessionsAreKnown(const privacy::Ledger& ledger, const data::Sequences& sequences) {
  if (sequences.sessions == nullptr) return OkStatus();
  const std::vector<std::string>& known = sequences.sessions->ledgers;
  WISP_ASSIGN_OR_RETURN(const std::string id, ledger.Id());
  if (std::find(known.begin(), known.end(), id) != known.end()) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  // Private samples do not read the log, so their charges do not count here.
  const auto reads_a_log = [](const privacy::LedgerEntry& e) {
    return e.record ? !e.record->is_of_texts() : !e.mechanism.is_sample();
  };
  if (std::none_of(entries.begin(), entries.end(), reads_a_log)) return data::AddLedger(*sequences.sessions, id);
  return PrivacyRefused(
      sequences.sessions->path, ": the log does not remember the sessions that ledger '", ledger.path(),
      "' has charges for: two that were used apart could be one now. Allowed is the log that was read then, or a copy "
      "of it that wisp log backup made; a new log needs a ledger of its own");
}

}  // namespace wisp
