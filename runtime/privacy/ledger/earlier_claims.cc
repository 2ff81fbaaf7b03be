#include "runtime/privacy/ledger/earlier_claims.h"

#include <map>

#include "runtime/privacy/json.h"

namespace wisp::privacy {

std::string_view DatasetName(std::string_view label) { return label.substr(label.find_last_of('/') + 1); }

// The ledger is asked once for each delta, for the largest epsilon stated at it.
Status CheckCharged(std::span<const EarlierClaim> claims, const std::string& name, const Ledger& ledger) {
  // Figures of one run and of all together come from different grids of the accountant.
  constexpr double kSlack = 0.98;
  std::map<double, const EarlierClaim*> largest;
  for (const EarlierClaim& claim : claims) {
    const EarlierClaim*& known = largest[claim.delta];
    if (known == nullptr || !(claim.epsilon <= known->epsilon)) known = &claim;
  }
  for (const auto& [delta, claim] : largest) {
    if (claim->epsilon <= 0) continue;
    double spent = 0;
    if (const auto at = Delta::Create(delta); at.ok()) {
      WISP_ASSIGN_OR_RETURN(spent, ledger.Spent(*at));
    }
    if (spent >= kSlack * claim->epsilon) continue;
    return PrivacyRefused(name, ": it was trained on '", claim->dataset, "' before, for epsilon ",
                          EpsilonText(claim->epsilon), " at delta ", DoubleText(delta),
                          ", and this ledger has epsilon ", EpsilonText(spent),
                          " spent at that delta: it is not the one that paid for it. ", kIfOtherData);
  }
  return OkStatus();
}

}  // namespace wisp::privacy
