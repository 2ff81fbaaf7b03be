#include "runtime/private_sampling/check_paid.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/privacy/ledger/earlier_claims.h"

namespace wisp {

Status CheckPaid(const ModelFile& model, const std::string& name, std::span<const std::string> public_datasets,
                 const privacy::Ledger& ledger) {
  std::vector<privacy::EarlierClaim> claims;
  const std::string& paid_for = ledger.dataset();
  for (const ProvenanceEntry& entry : model.provenance()) {
    const bool is_public =
        std::find(public_datasets.begin(), public_datasets.end(), entry.dataset) != public_datasets.end();
    // A ledger without a name may belong to any data set.
    const bool other = !paid_for.empty() && privacy::DatasetName(entry.dataset) != privacy::DatasetName(paid_for);
    if (entry.dataset.empty() || is_public || other) continue;
    if (entry.epsilon && std::isfinite(*entry.epsilon))
      claims.push_back({entry.dataset, *entry.epsilon, entry.delta, entry.receipt});
  }
  return privacy::CheckCharged(claims, name, ledger);
}

}  // namespace wisp
