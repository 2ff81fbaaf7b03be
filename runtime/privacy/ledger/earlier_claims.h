// Checks that a ledger is the one that paid for weights.
#ifndef WISP_RUNTIME_PRIVACY_LEDGER_EARLIER_CLAIMS_H_
#define WISP_RUNTIME_PRIVACY_LEDGER_EARLIER_CLAIMS_H_

#include <span>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/privacy/ledger/ledger.h"

namespace wisp::privacy {

// A model's claim about one run that made it.
struct EarlierClaim {
  std::string dataset;
  double epsilon, delta;
  Receipt receipt;  // empty: the model does not say who paid
};

// kPrivacyRefused, with a sentence that starts with `name`, unless the ledger paid for every one of the claims.
// Otherwise it is another ledger or an old copy, and its statement would omit what the weights reveal. A claim of
// epsilon 0 at delta 0 costs nothing.
Status CheckCharged(std::span<const EarlierClaim> claims, const std::string& name, const Ledger& ledger);

// A data set's label may be a path, as an app wrote it, or the name alone: the last part is the name.
std::string_view DatasetName(std::string_view label);

// Advice for people when two data sets have one name.
inline constexpr char kIfOtherData[] = "If that was other data of the same name, say so (`other_data`)";

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_EARLIER_CLAIMS_H_
