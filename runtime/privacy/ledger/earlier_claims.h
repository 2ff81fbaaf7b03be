// Whether a ledger has what weights were said to have cost before.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_EARLIER_CLAIMS_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_EARLIER_CLAIMS_H_

#include <span>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp::privacy {

// What a model says of one run that made it.
struct EarlierClaim {
  std::string dataset;
  double epsilon, delta;
};

// kPrivacyRefused, with a sentence that starts with `name`, where the ledger has less spent than one of the claims
// says: then it is not the one that was charged. Enough spent proves no more than that it may be.
Status CheckCharged(std::span<const EarlierClaim> claims, const std::string& name, const Ledger& ledger);

// A data set's label may be a path, as an app wrote it, or the name alone: the last part counts.
std::string_view DatasetName(std::string_view label);

// What people are told where two data sets have one name.
inline constexpr char kIfOtherData[] =
    "If that was other data of the same name, say so: --other-data (in the C interface: other_data)";

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_EARLIER_CLAIMS_H_
