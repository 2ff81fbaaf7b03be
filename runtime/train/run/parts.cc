#include "runtime/train/run/parts.h"

#include <algorithm>

#include "runtime/data/session_table.h"
#include "runtime/privacy/ledger/record_parts.h"

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

data::Sequences SelectSequences(privacy::RecordPart part, const privacy::LedgerSplit& split,
                                const data::Sequences& sequences) {
  if (part == privacy::RecordPart::kAll) return sequences;
  data::Sequences kept;
  kept.item_keys = sequences.item_keys;
  for (size_t u = 0; u < sequences.num_users(); ++u) {
    privacy::RecordName name{.user = sequences.user_keys[u]};
    if (!sequences.unit_begins.empty()) name.begins = sequences.unit_begins[u];
    if (privacy::GetPart(split, name) != part) continue;
    const std::span<const int32_t> items = sequences.User(u);
    kept.items.insert(kept.items.end(), items.begin(), items.end());
    const std::span<const int64_t> times = sequences.GetTimes(u);
    kept.times.insert(kept.times.end(), times.begin(), times.end());
    kept.offsets.push_back(kept.items.size());
    kept.user_keys.push_back(sequences.user_keys[u]);
    if (name.begins) kept.unit_begins.push_back(*name.begins);
  }
  return kept;
}

}  // namespace wisp
