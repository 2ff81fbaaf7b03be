#include "runtime/privacy/ledger/earlier_claims.h"

#include "runtime/core/text.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy {

std::string_view DatasetName(std::string_view label) { return label.substr(label.find_last_of('/') + 1); }

Status CheckCharged(std::span<const EarlierClaim> claims, const std::string& name, const Ledger& ledger) {
  for (const EarlierClaim& claim : claims) {
    if (claim.epsilon <= 0 && claim.delta <= 0) continue;
    const std::string trained = name + ": it was trained on '" + OneLine(claim.dataset) + "' before, for epsilon " +
                                EpsilonText(claim.epsilon) + " at delta " + DoubleText(claim.delta);
    if (claim.receipt.empty()) {
      return PrivacyRefused(trained, ", and has no receipt that says which ledger paid for it: ",
                            "begin with a model that did not learn from this data. ", kIfOtherData);
    }
    WISP_ASSIGN_OR_RETURN(const bool has_paid, ledger.HasPaid(claim.receipt));
    if (has_paid) continue;
    return PrivacyRefused(trained, ", and ledger '", ledger.path(),
                          "' did not pay for it: take the ledger that did, in its newest copy. ", kIfOtherData);
  }
  return OkStatus();
}

}  // namespace wisp::privacy
