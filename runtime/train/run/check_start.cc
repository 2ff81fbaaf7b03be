#include "runtime/train/run/check_start.h"

#include <vector>

#include "runtime/privacy/ledger/earlier_claims.h"

namespace wisp {

Status CheckStart(const ModelFile& base, const std::string& path, const StartOptions& options,
                  const privacy::Ledger& ledger) {
  const auto provenance = base.provenance();
  if (provenance.empty() || provenance.front().base_model_hash != 0) {
    return PrivacyRefused(path, ": nothing says what data its weights came from: that may be '", options.dataset,
                          "', and then no epsilon of a private run would hold");
  }
  std::vector<privacy::EarlierClaim> claims;
  for (const ProvenanceEntry& entry : provenance) {
    if ((entry.dataset.empty() || entry.dataset == kUnknownDataset) && !entry.epsilon) {
      return PrivacyRefused(
          path, ": it was imported, or made by a program that did not say what data it learned from: that may be '",
          options.dataset, "', and then no epsilon of a private run would hold. An import takes its name (`dataset`)");
    }
    if (privacy::DatasetName(entry.dataset) != privacy::DatasetName(options.dataset) || options.other_data) continue;
    if (!entry.epsilon) {
      return PrivacyRefused(path, ": it was trained on '", options.dataset,
                            "' before, without a guarantee: no epsilon of a private run on the same data would hold. ",
                            privacy::kIfOtherData);
    }
    claims.push_back({entry.dataset, *entry.epsilon, entry.delta, entry.receipt});
  }
  return privacy::CheckCharged(claims, path, ledger);
}

}  // namespace wisp
