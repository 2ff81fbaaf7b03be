// Whether a ledger is the one that paid for weights.
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
  Receipt receipt;  // empty: the model does not say who paid
};

// kPrivacyRefused, with a sentence that starts with `name`, unless the ledger paid for every one of the claims: then it
// is another ledger, or a copy from before, and what it states would leave out what the weights show. A claim of
// epsilon 0 at delta 0 costs nothing.
Status CheckCharged(std::span<const EarlierClaim> claims, const std::string& name, const Ledger& ledger);

// A data set's label may be a path, as an app wrote it, or the name alone: the last part counts.
std::string_view DatasetName(std::string_view label);

// What people are told where two data sets have one name.
inline constexpr char kIfOtherData[] = "If that was other data of the same name, say so (`other_data`)";

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_LEDGER_EARLIER_CLAIMS_H_
