#include "runtime/privacy/ledger_statement.h"

#include <algorithm>

namespace wisp::privacy {

Result<PrivacyStatement> StatementOf(const Ledger& ledger, const std::string& path, const Delta& delta) {
  WISP_ASSIGN_OR_RETURN(const std::vector<LedgerEntry> entries, ledger.Entries());
  PrivacyStatement s;
  s.dataset = ledger.dataset();
  s.unit = ledger.unit();
  s.adjacency = ledger.adjacency();
  s.delta = delta.value();
  s.ledger_path = path;
  WISP_ASSIGN_OR_RETURN(s.limit, ledger.Limit());
  WISP_ASSIGN_OR_RETURN(s.ledger_epsilon, ledger.Spent(delta));
  s.epsilon = s.ledger_epsilon;
  std::vector<std::string> runs;
  for (const LedgerEntry& entry : entries) {
    if (entry.noise == NoiseKind::kReproducible) s.noise = NoiseKind::kReproducible;
    s.loss_slack += entry.loss_slack;
    s.num_steps += entry.mechanism.steps();
    if (std::find(runs.begin(), runs.end(), entry.run) == runs.end()) runs.push_back(entry.run);
    const auto same = std::find_if(s.mechanisms.begin(), s.mechanisms.end(), [&](const Mechanism& m) { return m.DiffersInStepsOnly(entry.mechanism); });
    if (same == s.mechanisms.end()) {
      s.mechanisms.push_back(entry.mechanism);
    } else {
      WISP_ASSIGN_OR_RETURN(*same, same->WithSteps(same->steps() + entry.mechanism.steps()));
    }
  }
  for (const std::string& run : runs) s.run += (s.run.empty() ? "" : "; ") + run;
  return s;
}

}  // namespace wisp::privacy
